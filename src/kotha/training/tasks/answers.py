"""Answers: what a GPT learns from conversations (instruction tuning), with loss on the answers alone.

A conversation is written by the chat template. Only what the assistant said is a target: its words, and the end of its
turn, which teaches it to stop. The words of the prompt are read and never asked for, so they contribute exactly nothing
to the loss. A conversation longer than the context is left out and counted in ``left_out``: without its beginning the
answer would be a guess, and without its end there would be none.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from kotha.errors import DataError
from kotha.i18n.message import Message
from kotha.model.config import GPTConfig
from kotha.model.gpt import GPT
from kotha.model.loss import IGNORED
from kotha.text.corpus.dialogues import Dialogue
from kotha.text.held_out import Counts
from kotha.text.tokenizer.chat import ChatTemplate
from kotha.text.tokenizer.tokenizer import Tokenizer
from kotha.training.config import TrainConfig
from kotha.training.objectives import asked_tokens, judge_words
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


class AnswerTokens(ExamplesTask):
    """Write what the assistant said, token by token, after what was said to it."""

    name = "answers"

    def __init__(
        self,
        model: GPTConfig,
        config: TrainConfig,
        dialogues: Sequence[Dialogue],
        validation_dialogues: Sequence[Dialogue],
        tokenizer: Tokenizer,
    ) -> None:
        check_vocabulary(model, tokenizer)
        self.chat_template = ChatTemplate.of(tokenizer)
        self.context_length = config.context_length or model.context_length
        self.tokenizer, self._pad = tokenizer, tokenizer.special.get("pad", 0)
        self.left_out = 0
        learned, held_out = self._prepare(TRAINING, dialogues), self._prepare(VALIDATION, validation_dialogues)
        super().__init__(config, model.vocab_size, learned, held_out)

    def _prepare(self, what: Message, dialogues: Sequence[Dialogue]) -> Numbered:
        """Which conversations fit, each token but the last, and the token after each: IGNORED in what was not asked."""
        assert self.chat_template is not None and self.tokenizer is not None, "a tokenizer with marks for turns"
        written = [self.chat_template.encode(self.tokenizer, turns) for turns in dialogues]
        fits = [number for number, (tokens, _) in enumerate(written) if len(tokens) - 1 <= self.context_length]
        if not fits:
            raise DataError(
                "none of {n:,} {what} conversations fits into {context_length:,} tokens; give shorter ones, or a "
                "model with a longer context_length",
                n=len(dialogues),
                what=what,
                context_length=self.context_length,
            )
        self.left_out += len(dialogues) - len(fits)
        targets = [np.where(asked, tokens, IGNORED)[1:] for tokens, asked in written]
        return fits, (Ragged(written[each][0][:-1] for each in fits), Ragged(targets[each] for each in fits))

    def _as_batch(self, some: Any, rows: Sequence[int], among: Sequence[int]) -> Batch:
        inputs, _ = some[0].padded(rows, among, self._pad)  # padding comes last, and nothing before sees it
        targets, _ = some[1].padded(rows, among, IGNORED)
        tensors = {"inputs": inputs, "targets": targets}
        return Batch(tensors, {self.part: int((targets != IGNORED).sum())}, inputs.numel())

    def _width(self, some: Any) -> int:
        return int(some[0].lengths.max())

    def losses(self, model: GPT, tensors: Tensors) -> Tensors:
        return {self.part: asked_tokens(model, tensors["inputs"], tensors["targets"], self._label_smoothing)}

    def measure(self, model: GPT, tensors: Tensors) -> Tensors:
        nats, right = judge_words(model.hidden(tensors["inputs"]), model.head, tensors["targets"])
        return {self.part: nats, "right": right}

    def _counts(self, some: Any) -> Counts:
        asked = some[1].line
        return np.bincount(asked[asked != IGNORED], minlength=self._n_answers)
