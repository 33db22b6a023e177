"""Decoding on a CPU without torch: weights and cache in NumPy arrays, steps in C (``native.c``), sampling in NumPy.

A decoder runs the steps that the engine schedules: it owns the KV cache, processes prompts, and samples tokens. This
decoder waits for each step; ``torch_decoder.py`` handles all cases that need torch.
"""

from collections.abc import Callable, Iterable, Sequence

import numpy as np

from kotha.errors import NotFiniteError
from kotha.generation.cache_memory import CacheMemory
from kotha.generation.native import NativeModel, NativeStep
from kotha.generation.request import Answer, Seen
from kotha.generation.row_sampling import Floats, draw, penalize, report

# Waits for steps and yields each answer with its tokens and their probabilities (empty if not requested).
Drawn = Callable[[], Iterable[tuple[Answer, list[int], list[Seen]]]]


class NativeDecoder:
    """Runs the steps of a model in C for the rows of a batch; the rows in use are always the first ones."""

    block, overlaps = 1, False  # steps between checks for ended rows, and whether checks overlap with later steps
    piece = 64  # tokens per chunk of a long prompt

    def __init__(self, model: NativeModel, max_rows: int, vocab_size: int, ends: frozenset[int]) -> None:
        self._vocab_size, self._ends = vocab_size, ends  # end tokens are exempt from the repetition penalty
        self.cache, self._step = CacheMemory(model.config, max_rows), NativeStep(model, max_rows)
        self._seen: list[set[int]] = [set() for _ in range(max_rows)]  # the tokens of each row's text

    def new_cache(self, n_tokens: int) -> CacheMemory:
        """Return a cache for one prompt."""
        return CacheMemory(self.cache.config, 1, n_tokens)

    def put(self, first: int, answers: Sequence[Answer]) -> None:
        """Assign rows to answers, starting at ``first``."""
        for row, answer in enumerate(answers, first):
            self._seen[row] = {*answer.start, *answer.ids} - self._ends

    def move(self, source: int, target: int) -> None:
        """Copy one row over another."""
        self.cache.move(source, target)
        self._seen[target] = self._seen[source]

    def read(self, cache: CacheMemory, first: int, texts: Sequence[Sequence[int]], start: int = 0) -> None:
        """Process texts into rows of a cache, starting at row ``first``, after the ``start`` tokens already cached."""
        rows = enumerate(texts, first)
        places = [(token, index, row) for row, text in rows for index, token in enumerate(text, start)]
        if places:
            self._step.read(cache, *zip(*places, strict=True))

    def start(self, answers: Sequence[Answer], count: int) -> Drawn:
        """Process the last token of each answer and sample the next one."""
        assert count == 1, "a step samples one token"
        logits = self._step(self.cache, [answer.last for answer in answers])[:, : self._vocab_size]  # (B, V)
        self.cache.lengths[: len(answers)] += 1
        if not np.isfinite(logits.max(axis=-1)).all():
            raise NotFiniteError
        drawn = [self._draw(row, answer, logits[row]) for row, answer in enumerate(answers)]
        return lambda: drawn

    def _draw(self, row: int, answer: Answer, logits: Floats) -> tuple[Answer, list[int], list[Seen]]:
        settings, seen, count = answer.request.settings, self._seen[row], answer.request.alternatives
        penalty = settings.repetition_penalty
        scores = logits if penalty is None else penalize(logits, penalty, seen)
        token = draw(scores, settings, next(answer.numbers))
        seen.add(token)
        return answer, [token], [] if count is None else [report(logits, token, count)]
