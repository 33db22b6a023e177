"""Decoding on a CPU without torch: a model in NumPy arrays, ``native.c`` for its steps, NumPy for sampling.

``torch_decoder.py`` is its counterpart for everything else. Both do for the engine what ``decoder.py`` describes.
"""

import ctypes
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from kotha.errors import KothaError
from kotha.generation.cache_memory import CacheMemory
from kotha.generation.decoder import BatchShape, Drawn
from kotha.generation.native import Arrays, NativeStep
from kotha.generation.request import NO_NUMBERS, Answer, Seen
from kotha.generation.row_sampling import Floats, best, draw, penalize
from kotha.model.config import GPTConfig


@dataclass(frozen=True)
class NativeModel:
    """A GPT as arrays, with the compiled step that runs it."""

    config: GPTConfig
    weights: Arrays
    library: ctypes.CDLL
    threads: int = 1


class NativeDecoder:
    """Runs steps of a model in C for the rows of a batch."""

    block, overlaps, piece = 1, False, 64

    def __init__(self, model: NativeModel, batch: BatchShape) -> None:
        self._batch = batch
        self.cache = CacheMemory(model.config, batch.max_rows)
        self._step = NativeStep(model.config, model.weights, model.library, batch.max_rows, model.threads)
        # For each row with a repetition penalty, the tokens that its text has: booleans (V,).
        self._seen: list[NDArray[np.bool_] | None] = [None] * batch.max_rows

    def at_work(self) -> AbstractContextManager[None]:
        """Nothing needs to be prepared for a step."""
        return nullcontext()

    def new_cache(self, n_tokens: int) -> CacheMemory:
        """A cache for one prompt."""
        return CacheMemory(self.cache.config, 1, n_tokens)

    def make_room(self, positions: int) -> None:
        """Make room in the cache for this number of positions."""
        self.cache.make_room(positions)

    def put(self, first: int, answers: Sequence[Answer]) -> None:
        """Assign rows to answers, starting at ``first``."""
        for row, answer in enumerate(answers, first):
            self._seen[row] = None
            if answer.request.settings.repetition_penalty is not None:
                present = [token for token in (*answer.start, *answer.ids) if token not in self._batch.ends]
                self._seen[row] = seen = np.zeros(self._batch.vocab_size, bool)
                seen[present] = True

    def move(self, source: int, target: int) -> None:
        """Copy a row over another."""
        self.cache.move(source, target)
        self._seen[target] = self._seen[source]

    def read(self, cache: CacheMemory, first: int, texts: Sequence[Sequence[int]], start: int = 0) -> None:
        """Read texts into rows of a cache, starting at row ``first``, after the ``start`` tokens already there."""
        places = [
            (token, index, row) for row, text in enumerate(texts, first) for index, token in enumerate(text, start)
        ]
        if places:
            self._step.read(cache, *zip(*places, strict=True))

    def start(self, answers: Sequence[Answer], count: int) -> Drawn:
        """Read each answer's last token and sample its next one."""
        assert count == 1, "a step writes one token"
        n = len(answers)
        logits = self._step(self.cache, [answer.last for answer in answers])[:, : self._batch.vocab_size]  # (B, V)
        self.cache.lengths[:n] += 1
        drawn = [self._draw(row, answer, logits[row]) for row, answer in enumerate(answers)]
        return lambda: drawn

    def _draw(self, row: int, answer: Answer, logits: Floats) -> tuple[Answer, list[int], list[Seen]]:
        settings, seen, count = answer.request.settings, self._seen[row], answer.request.alternatives
        if not np.isfinite(logits.max()):
            raise KothaError(NO_NUMBERS)
        scores = logits
        if settings.repetition_penalty is not None and seen is not None:
            scores = penalize(logits, settings.repetition_penalty, seen)
        token = draw(scores, settings, float(answer.numbers[answer.scheduled]))
        if seen is not None:
            seen[token] = True
        return answer, [token], [] if count is None else [_note(logits, token, min(count, len(logits)))]


def _note(logits: Floats, token: int, count: int) -> Seen:
    """The probabilities of the model, before any sampling setting."""
    shifted = logits - logits.max()
    chances = shifted - np.log(np.exp(shifted).sum())
    ids = [token, *best(chances, count).tolist()] if count else [token]
    likelier = chances > chances[token]
    above = float(np.exp(chances[likelier]).sum())
    return ids, chances[ids].tolist(), [int(likelier.sum()) + 1], [above]
