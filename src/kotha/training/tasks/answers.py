"""Answers: what a GPT learns from conversations (instruction tuning), with loss on the answers alone.

A conversation is written by the chat template. Only what the assistant said is a target: its words, and the end of its
turn, which teaches it to stop. The words of the prompt are read and never asked for, so they contribute exactly nothing
to the loss. A conversation longer than the context is left out and counted in ``left_out``: without its beginning the
answer would be a guess, and without its end there would be none.
"""

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from kotha.errors import ConfigError, DataError
from kotha.i18n.message import Message
from kotha.model.config import GPTConfig, ModelConfig
from kotha.model.gpt import GPT
from kotha.model.loss import IGNORED
from kotha.text.corpus.dialogues import Dialogue
from kotha.text.held_out import Counts, frequency_nats
from kotha.text.tokenizer.chat import ChatTemplate
from kotha.text.tokenizer.tokenizer import Tokenizer
from kotha.training.config import TrainConfig
from kotha.training.objectives import asked_tokens, judge_words
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


class _Conversations(NamedTuple):
    """Conversations ready to be padded; ``numbers`` says which of the given ones each is."""

    inputs: Ragged  # each token but the last
    targets: Ragged  # the token after each: IGNORED where the assistant did not write it
    numbers: list[int]


class AnswerTokens(Task):
    """Write what the assistant said, token by token, after what was said to it."""

    name = "answers"

    def __init__(
        self,
        model: ModelConfig,
        config: TrainConfig,
        dialogues: Sequence[Dialogue],
        validation_dialogues: Sequence[Dialogue],
        tokenizer: Tokenizer,
    ) -> None:
        if type(model) is not GPTConfig:
            raise ConfigError("a {family} model does not take turns; teach a gpt", family=model.family)
        check_vocabulary(model, tokenizer)
        template = ChatTemplate.of(tokenizer)
        if template is None:
            raise DataError("the tokenizer has no marks for turns; `kotha tokenizer train` makes one that has")
        self.chat_template = self._template = template
        self.context_length = config.context_length or model.context_length
        self._vocab_size, self._label_smoothing = model.vocab_size, config.label_smoothing
        self._evaluate_tokens = config.evaluate_tokens
        self.tokenizer = tokenizer
        self._pad = tokenizer.special.get("pad", 0)
        self.left_out = 0
        self._learned = self._prepare(TRAINING, dialogues, tokenizer)
        self._held_out = self._prepare(VALIDATION, validation_dialogues, tokenizer)
        lengths = self._learned.inputs.lengths
        self._order = Order(len(lengths), config.batch_size, config.seed, lengths)

    # -- examples ---------------------------------------------------------------------------------------------------

    def _prepare(self, what: Message, dialogues: Sequence[Dialogue], tokenizer: Tokenizer) -> _Conversations:
        written = [self._template.encode(tokenizer, turns) for turns in dialogues]
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
        inputs, targets = [], []
        for number in fits:
            tokens, asked = written[number]
            inputs.append(tokens[:-1])
            targets.append([token if wanted else IGNORED for token, wanted in zip(tokens, asked, strict=True)][1:])
        return _Conversations(Ragged(inputs), Ragged(targets), fits)

    def batch(self, step: int, first: int, count: int) -> Batch:
        """See Task; a part of a batch is as wide as the whole."""
        whole = self._order.examples(step)
        return self._as_batch(self._learned, whole[first : first + count], whole)

    def document_ids(self, step: int) -> list[int]:
        return sorted({self._learned.numbers[example] for example in self._order.examples(step)})

    def validation(self) -> list[Batch]:
        held_out = self._held_out
        slices = measuring_slices(len(held_out.inputs), int(held_out.inputs.lengths.max()), self._evaluate_tokens)
        return [self._as_batch(held_out, rows, rows) for rows in slices]

    def _as_batch(self, some: _Conversations, rows: Sequence[int], whole: Sequence[int]) -> Batch:
        inputs, _ = some.inputs.padded(rows, whole, self._pad)  # padding comes last, and nothing before sees it
        targets, _ = some.targets.padded(rows, whole, IGNORED)
        return Batch({"inputs": inputs, "targets": targets}, {_PART: int((targets != IGNORED).sum())}, inputs.numel())

    # -- learning and measuring -------------------------------------------------------------------------------------

    def losses(self, model: GPT, tensors: Tensors) -> Tensors:
        return {_PART: asked_tokens(model, tensors["inputs"], tensors["targets"], self._label_smoothing)}

    def measure(self, model: GPT, tensors: Tensors) -> Tensors:
        nats, right = judge_words(model.hidden(tensors["inputs"]), model.head, tensors["targets"])
        return {_PART: nats, "right": right}

    def score(self, sums: dict[str, float], targets: dict[str, int]) -> Score:
        """See Task; both figures are of answer tokens, given the true ones before them."""
        count = targets[_PART]
        return {"loss_nats": sums[_PART] / count, "accuracy": sums["right"] / count, "tokens": count}

    def references(self) -> dict[str, float]:
        counts = [self._counts(some.targets) for some in (self._learned, self._held_out)]
        return {"ln V": math.log(self._vocab_size), "unigram": frequency_nats(*counts)}

    def _counts(self, targets: Ragged) -> Counts:
        return np.bincount(targets.line[targets.line != IGNORED], minlength=self._vocab_size)
