"""Translation: what a Seq2Seq learns from pairs of texts, by teacher forcing. Any text that becomes another will do.

The source ends with the end mark; the target starts with the start mark and ends with the end mark. Batches are as wide
as their longest pair. A pair that is empty on one side, or longer than the context, is left out and counted in
``left_out``: half of a translation would teach to stop in the middle.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from kotha.errors import DataError
from kotha.i18n.message import Message
from kotha.model.config import Seq2SeqConfig
from kotha.model.loss import IGNORED
from kotha.model.seq2seq import Seq2Seq
from kotha.text.held_out import Counts
from kotha.text.tokenizer.tokenizer import Tokenizer
from kotha.training.config import TrainConfig
from kotha.training.objectives import forced, judge_words, teacher_forcing
from kotha.training.tasks.task import (
    TRAINING,
    VALIDATION,
    Batch,
    ExamplesTask,
    Numbered,
    Ragged,
    Tensors,
    check_vocabulary,
)

TextPair = tuple[Sequence[int], Sequence[int]]
"""A source and its target, as ids without marks."""


class Translation(ExamplesTask):
    """Write a target, token by token, from its source."""

    name = "translation"

    def __init__(
        self,
        model: Seq2SeqConfig,
        config: TrainConfig,
        pairs: Sequence[TextPair],
        tokenizer: Tokenizer,
        validation_pairs: Sequence[TextPair],
    ) -> None:
        check_vocabulary(model, tokenizer)
        if not {"bos", "eos"} <= tokenizer.special.keys():
            raise DataError("the tokenizer has no mark to start and end a target; `kotha tokenizer train` makes one")
        self.context_length, self.tokenizer = model.context_length, tokenizer
        self._start, self._end = tokenizer.special["bos"], tokenizer.special["eos"]
        self._pad = tokenizer.special.get("pad", self._end)
        self.left_out = 0
        learned, held_out = self._prepare(TRAINING, pairs), self._prepare(VALIDATION, validation_pairs)
        super().__init__(config, model.vocab_size, learned, held_out)

    def _prepare(self, what: Message, pairs: Sequence[TextPair]) -> Numbered:
        """Which pairs can be used, their sources and their targets with marks."""
        most = self.context_length - 1  # a source has its end; what is read of a target has its start
        numbers = [number for number, pair in enumerate(pairs) if all(0 < len(side) <= most for side in pair)]
        if not numbers:
            raise DataError(
                "none of {n:,} {what} pairs can be used; each side needs 1 to {most:,} tokens: give pairs of "
                "sentences, or use a longer context_length",
                n=len(pairs),
                what=what,
                most=most,
            )
        self.left_out += len(pairs) - len(numbers)
        sources = Ragged([*pairs[number][0], self._end] for number in numbers)
        targets = Ragged([self._start, *pairs[number][1], self._end] for number in numbers)
        return numbers, (sources, targets)

    def _as_batch(self, some: Any, rows: Sequence[int], among: Sequence[int]) -> Batch:
        source, real = some[0].padded(rows, among, self._pad)
        target, asked = some[1].padded(rows, among, IGNORED)
        tensors = {"source": source, "real": real, "target": target}
        return Batch(tensors, {self.part: int(asked[:, 1:].sum())}, source.numel() + target[:, 1:].numel())

    def losses(self, model: Seq2Seq, tensors: Tensors) -> Tensors:
        source, target, real = (tensors[name] for name in ("source", "target", "real"))
        return {self.part: teacher_forcing(model, source, target, real, self._label_smoothing)}

    def measure(self, model: Seq2Seq, tensors: Tensors) -> Tensors:
        hidden, targets = forced(model, tensors["source"], tensors["target"], tensors["real"])
        nats, right = judge_words(hidden, model.head, targets)
        return {self.part: nats, "right": right}

    def _counts(self, some: Any) -> Counts:
        counts: Counts = np.bincount(some[1].line, minlength=self._n_answers)
        counts[self._start] -= len(some[1])  # the start is given, never asked for
        return counts
