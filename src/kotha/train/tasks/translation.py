"""Translation: what a Seq2Seq learns from pairs of texts, by teacher forcing. Any text that becomes another will do.

The source ends with the end mark; the target starts with the start mark and ends with the end mark. Batches are as wide
as their longest pair. A pair that is empty on one side, or longer than the context, is left out and counted in
``left_out``: half of a translation would teach to stop in the middle.
"""

import math
from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import NamedTuple, cast

import numpy as np
import torch

from kotha.errors import ConfigError, DataError
from kotha.model.config import ModelConfig, Seq2SeqConfig
from kotha.model.loss import IGNORED
from kotha.model.seq2seq import Seq2Seq
from kotha.text.frequencies import frequency_nats
from kotha.text.tokenizer.tokenizer import Tokenizer
from kotha.train.config import TrainConfig
from kotha.train.objectives import forced, judge_words, teacher_forcing
from kotha.train.tasks.order import Order, measuring_slices
from kotha.train.tasks.ragged import Ragged
from kotha.train.tasks.task import Batch, Score, Tensors

_PART = "tokens"

TextPair = tuple[str, str] | tuple[Sequence[int], Sequence[int]]
"""A source and its target: as texts, or as ids without marks."""


class _Pairs(NamedTuple):
    """Pairs with their marks, ready to be padded."""

    sources: Ragged
    targets: Ragged
    numbers: list[int]
    """Which of the given pairs each is."""
    left_out: int


class Translation:
    """Write a target, token by token, from its source."""

    name = "translation"

    def __init__(
        self,
        model: ModelConfig,
        config: TrainConfig,
        pairs: Sequence[TextPair],
        tokenizer: Tokenizer,
        validation_pairs: Sequence[TextPair],
    ) -> None:
        if not isinstance(model, Seq2SeqConfig):
            raise ConfigError(f"a {model.family} model cannot be trained on translation; use a seq2seq preset")
        if model.vocab_size < tokenizer.vocab_size:
            raise ConfigError(
                f"the model knows {model.vocab_size:,} tokens and the tokenizer has {tokenizer.vocab_size:,}; "
                f"use vocab_size={tokenizer.vocab_size}"
            )
        if not {"bos", "eos"} <= tokenizer.special.keys():
            raise DataError("the tokenizer has no mark to start and end a target; `kotha tokenizer train` makes one")
        self.context_length = model.context_length
        self._vocab_size, self._label_smoothing = model.vocab_size, config.label_smoothing
        self._evaluate_tokens = config.evaluate_tokens
        self._start, self._end = tokenizer.special["bos"], tokenizer.special["eos"]
        self._pad = tokenizer.special.get("pad", self._end)
        self._pairs = self._prepare("training", pairs, tokenizer)
        self._held_out = self._prepare("validation", validation_pairs, tokenizer)
        self._order = Order(len(self._pairs.sources), config.batch_size, config.seed)

    @property
    def left_out(self) -> int:
        """Pairs of both sets that are empty on one side or too long."""
        return self._pairs.left_out + self._held_out.left_out

    # -- examples ---------------------------------------------------------------------------------------------------

    def _prepare(self, what: str, pairs: Sequence[TextPair], tokenizer: Tokenizer) -> _Pairs:
        sources, targets = (_encode([pair[side] for pair in pairs], tokenizer) for side in (0, 1))
        most = self.context_length - 1  # a source has its end; what is read of a target has its start
        fits = [0 < len(s) <= most and 0 < len(t) <= most for s, t in zip(sources, targets, strict=True)]
        numbers = [number for number, fit in enumerate(fits) if fit]
        if not numbers:
            raise DataError(
                f"none of {len(pairs):,} {what} pairs can be used; each side needs 1 to {most:,} tokens: "
                "give pairs of sentences, or use a longer context_length"
            )
        found = _Pairs(
            Ragged([*sources[number], self._end] for number in numbers),
            Ragged([self._start, *targets[number], self._end] for number in numbers),
            numbers,
            len(pairs) - len(numbers),
        )
        lines = (found.sources.line, found.targets.line)
        lowest, highest = min(int(line.min()) for line in lines), max(int(line.max()) for line in lines)
        if lowest < 0 or highest >= self._vocab_size:
            raise DataError(
                f"token id {lowest if lowest < 0 else highest} in the {what} pairs is outside the vocabulary of "
                f"{self._vocab_size:,}; encode them with the tokenizer that is given"
            )
        return found

    def batch(self, step: int, first: int, count: int) -> Batch:
        """See Task; a part of a batch is as wide as the whole."""
        whole = self._order.examples(step)
        return self._as_batch(self._pairs, whole[first : first + count], whole)

    def sources(self, step: int) -> list[int]:
        """See Task."""
        return sorted({self._pairs.numbers[example] for example in self._order.examples(step)})

    def validation(self) -> list[Batch]:
        """See Task."""
        return self._validation

    def _as_batch(self, pairs: _Pairs, rows: Sequence[int], whole: Sequence[int]) -> Batch:
        width = pairs.sources.longest(whole)
        source = pairs.sources.padded(rows, width, self._pad)
        real = np.arange(width) < pairs.sources.lengths[list(rows)][:, None]
        target = pairs.targets.padded(rows, pairs.targets.longest(whole), IGNORED)
        n_targets = int((target[:, 1:] != IGNORED).sum())
        arrays = {"source": source, "real": real, "target": target}
        tensors = {name: torch.from_numpy(each) for name, each in arrays.items()}
        return Batch(tensors, {_PART: n_targets}, source.size + target[:, 1:].size)

    @cached_property
    def _validation(self) -> list[Batch]:
        pairs = self._held_out
        width = int(pairs.sources.lengths.max() + pairs.targets.lengths.max())
        slices = measuring_slices(len(pairs.sources), width, self._evaluate_tokens)
        return [self._as_batch(pairs, rows, rows) for rows in slices]

    # -- learning and measuring -------------------------------------------------------------------------------------

    def losses(self, model: Seq2Seq, tensors: Tensors) -> Tensors:
        """See Task."""
        source, target, real = (tensors[name] for name in ("source", "target", "real"))
        return {_PART: teacher_forcing(model, source, target, real, self._label_smoothing)}

    def measure(self, model: Seq2Seq, tensors: Tensors) -> Tensors:
        """See Task."""
        hidden, targets = forced(model, tensors["source"], tensors["target"], tensors["real"])
        nats, right = judge_words(hidden, model.head, targets)
        return {_PART: nats, "right": right}

    def score(self, sums: dict[str, float], targets: dict[str, int]) -> Score:
        """See Task; both figures are of targets given the true tokens before them, without label smoothing."""
        count = targets[_PART]
        return {"loss_nats": sums[_PART] / count, "accuracy": sums["right"] / count, "tokens": count}

    def references(self) -> dict[str, float]:
        """See Task."""
        counts = [
            np.bincount(pairs.targets.line, minlength=self._vocab_size) for pairs in (self._pairs, self._held_out)
        ]
        for count, pairs in zip(counts, (self._pairs, self._held_out), strict=True):
            count[self._start] -= len(pairs.targets)  # the start is given, never asked for
        return {"ln V": math.log(self._vocab_size), "unigram": frequency_nats(*counts)}


def _encode(texts: Iterable[str | Sequence[int]], tokenizer: Tokenizer) -> list[Sequence[int]]:
    """Ids of texts; what is ids already stays so."""
    texts = list(texts)
    if any(isinstance(text, str) for text in texts):
        if not all(isinstance(text, str) for text in texts):
            raise DataError("some pairs are texts and some are ids; give all of one kind")
        return cast("list[Sequence[int]]", tokenizer.encode_batch(cast("list[str]", texts)))
    return cast("list[Sequence[int]]", texts)
