"""Translation: what a Seq2Seq learns from pairs of texts, by teacher forcing. Any text that becomes another will do.

The source ends with the end mark; the target starts with the start mark and ends with the end mark. Batches are as wide
as their longest pair. A pair that is empty on one side, or longer than the context, is left out and counted in
``left_out``: half of a translation would teach to stop in the middle.
"""

import math
from collections.abc import Sequence
from typing import NamedTuple, cast

import numpy as np

from kotha.errors import ConfigError, DataError
from kotha.i18n.message import Message
from kotha.model.config import ModelConfig, Seq2SeqConfig
from kotha.model.loss import IGNORED
from kotha.model.seq2seq import Seq2Seq
from kotha.text.held_out import Counts, frequency_nats
from kotha.text.tokenizer.tokenizer import Tokenizer
from kotha.training.config import TrainConfig
from kotha.training.objectives import forced, judge_words, teacher_forcing
from kotha.training.tasks.task import (
    TRAINING,
    VALIDATION,
    Batch,
    Order,
    Ragged,
    Score,
    Task,
    Tensors,
    check_vocabulary,
    measuring_slices,
)

_PART = "tokens"

TextPair = tuple[str, str] | tuple[Sequence[int], Sequence[int]]
"""A source and its target: as texts, or as ids without marks."""


class _Pairs(NamedTuple):
    """Pairs with their marks, ready to be padded; ``numbers`` says which of the given pairs each is."""

    sources: Ragged
    targets: Ragged
    numbers: list[int]


class Translation(Task):
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
            raise ConfigError(
                "a {family} model cannot be trained on translation; use a seq2seq preset", family=model.family
            )
        check_vocabulary(model, tokenizer)
        if not {"bos", "eos"} <= tokenizer.special.keys():
            raise DataError("the tokenizer has no mark to start and end a target; `kotha tokenizer train` makes one")
        self.context_length = model.context_length
        self._vocab_size, self._label_smoothing = model.vocab_size, config.label_smoothing
        self._evaluate_tokens = config.evaluate_tokens
        self.tokenizer = tokenizer
        self._start, self._end = tokenizer.special["bos"], tokenizer.special["eos"]
        self._pad = tokenizer.special.get("pad", self._end)
        self.left_out = 0
        self._pairs = self._prepare(TRAINING, pairs, tokenizer)
        self._held_out = self._prepare(VALIDATION, validation_pairs, tokenizer)
        lengths = self._pairs.sources.lengths + self._pairs.targets.lengths
        self._order = Order(len(lengths), config.batch_size, config.seed, lengths)

    # -- examples ---------------------------------------------------------------------------------------------------

    def _prepare(self, what: Message, pairs: Sequence[TextPair], tokenizer: Tokenizer) -> _Pairs:
        sources, targets = (_encode([pair[side] for pair in pairs], tokenizer) for side in (0, 1))
        most = self.context_length - 1  # a source has its end; what is read of a target has its start
        fits = [0 < len(s) <= most and 0 < len(t) <= most for s, t in zip(sources, targets, strict=True)]
        numbers = [number for number, fit in enumerate(fits) if fit]
        if not numbers:
            raise DataError(
                "none of {n:,} {what} pairs can be used; each side needs 1 to {most:,} tokens: give pairs of "
                "sentences, or use a longer context_length",
                n=len(pairs),
                what=what,
                most=most,
            )
        self.left_out += len(pairs) - len(numbers)
        read = Ragged([*sources[number], self._end] for number in numbers)
        written = Ragged([self._start, *targets[number], self._end] for number in numbers)
        line = np.concatenate((read.line, written.line))
        outside = line[(line < 0) | (line >= self._vocab_size)]
        if len(outside):
            raise DataError(
                "token id {token} in the {what} pairs is outside the vocabulary of {vocab_size:,}; encode them "
                "with the tokenizer that is given",
                token=outside[0],
                what=what,
                vocab_size=self._vocab_size,
            )
        return _Pairs(read, written, numbers)

    def batch(self, step: int, first: int, count: int) -> Batch:
        """See Task; a part of a batch is as wide as the whole."""
        whole = self._order.examples(step)
        return self._as_batch(self._pairs, whole[first : first + count], whole)

    def document_ids(self, step: int) -> list[int]:
        return sorted({self._pairs.numbers[example] for example in self._order.examples(step)})

    def validation(self) -> list[Batch]:
        pairs = self._held_out
        width = int(pairs.sources.lengths.max() + pairs.targets.lengths.max())
        slices = measuring_slices(len(pairs.sources), width, self._evaluate_tokens)
        return [self._as_batch(pairs, rows, rows) for rows in slices]

    def _as_batch(self, pairs: _Pairs, rows: Sequence[int], whole: Sequence[int]) -> Batch:
        source, real = pairs.sources.padded(rows, whole, self._pad)
        target, asked = pairs.targets.padded(rows, whole, IGNORED)
        tensors = {"source": source, "real": real, "target": target}
        return Batch(tensors, {_PART: int(asked[:, 1:].sum())}, source.numel() + target[:, 1:].numel())

    # -- learning and measuring -------------------------------------------------------------------------------------

    def losses(self, model: Seq2Seq, tensors: Tensors) -> Tensors:
        source, target, real = (tensors[name] for name in ("source", "target", "real"))
        return {_PART: teacher_forcing(model, source, target, real, self._label_smoothing)}

    def measure(self, model: Seq2Seq, tensors: Tensors) -> Tensors:
        hidden, targets = forced(model, tensors["source"], tensors["target"], tensors["real"])
        nats, right = judge_words(hidden, model.head, targets)
        return {_PART: nats, "right": right}

    def score(self, sums: dict[str, float], targets: dict[str, int]) -> Score:
        """See Task; both figures are of targets given the true tokens before them, without label smoothing."""
        count = targets[_PART]
        return {"loss_nats": sums[_PART] / count, "accuracy": sums["right"] / count, "tokens": count}

    def references(self) -> dict[str, float]:
        counts = [self._counts(pairs.targets) for pairs in (self._pairs, self._held_out)]
        return {"ln V": math.log(self._vocab_size), "unigram": frequency_nats(*counts)}

    def _counts(self, targets: Ragged) -> Counts:
        counts: Counts = np.bincount(targets.line, minlength=self._vocab_size)
        counts[self._start] -= len(targets)  # the start is given, never asked for
        return counts


def _encode(texts: list[str | Sequence[int]], tokenizer: Tokenizer) -> list[Sequence[int]]:
    """Ids of texts; what is ids already stays so."""
    if any(isinstance(text, str) for text in texts):
        if not all(isinstance(text, str) for text in texts):
            raise DataError("some pairs are texts and some are ids; give all of one kind")
        return cast("list[Sequence[int]]", tokenizer.encode_batch(cast("list[str]", texts)))
    return cast("list[Sequence[int]]", texts)
