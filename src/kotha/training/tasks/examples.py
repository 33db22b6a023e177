"""Tasks with examples in memory: the order of the examples, and tasks whose outputs are token sequences.

A turn is a position in the sequence of all examples over all epochs: turn 0 is the first example of the first epoch,
and the first turn of step s is s times the batch size. A run therefore does not have to save its position in the
training data. In each epoch, every example is used once, in a new order. Examples are batched with others of similar
length (length-sorted batches), to reduce padding.

``AnswerTokens`` is for instruction tuning, where only the assistant's tokens are targets. ``Translation`` predicts a
target from its source, with teacher forcing.
"""

import math
from abc import abstractmethod
from collections.abc import Iterable, Sequence
from functools import cached_property, lru_cache
from typing import Any, ClassVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from kotha.errors import DataError
from kotha.i18n.message import Message
from kotha.model.config import TextConfig
from kotha.model.gpt import GPT
from kotha.model.loss import IGNORED
from kotha.model.objectives import TokenHeadInputs, score_token_predictions, teacher_forcing, word_loss
from kotha.model.seq2seq import Seq2Seq
from kotha.text.corpus.dialogues import Dialogue
from kotha.text.held_out import Counts, frequency_nats
from kotha.text.tokenizer.chat import ChatTemplate
from kotha.text.tokenizer.tokenizer import Tokenizer
from kotha.training.config import TrainConfig
from kotha.training.tasks.task import Batch, Score, Task, Tensors, check_vocabulary, measuring_slices

# Distinguishes the random numbers of a turn from those of the epoch with the same number.
_TURN = 1
# Number of batches sorted by length together: enough to reduce padding, few enough to keep batches random.
_POOL = 20


class Order:
    """Examples in a new order in each epoch; with ``lengths``, batches contain examples of similar length."""

    def __init__(self, n_examples: int, batch_size: int, seed: int, lengths: NDArray[np.int64] | None = None) -> None:
        assert n_examples > 0, "an order needs examples"
        self.n_examples, self._batch_size, self._seed = n_examples, batch_size, seed
        self._lengths = lengths
        self._shuffled = lru_cache(maxsize=2)(self._shuffle)  # a batch can span two epochs

    def turns(self, step: int, first: int = 0, count: int | None = None) -> range:
        """Return the turns in a step, or ``count`` of them starting at ``first``.

        >>> Order(10, batch_size=4, seed=0).turns(step=2, first=1, count=2)
        range(9, 11)
        """
        start = step * self._batch_size + first
        return range(start, start + (self._batch_size - first if count is None else count))

    def example(self, turn: int) -> int:
        """Return the index of the example of a turn."""
        epoch, position = divmod(turn, self.n_examples)
        return int(self._shuffled(epoch)[position])

    def examples(self, step: int) -> list[int]:
        """Return the indices of the examples in a step."""
        return [self.example(turn) for turn in self.turns(step)]

    def generator(self, turn: int) -> np.random.Generator:
        """Return the random generator of a turn."""
        return np.random.default_rng([self._seed, turn, _TURN])

    def _shuffle(self, epoch: int) -> NDArray[np.int64]:
        draw = np.random.default_rng([self._seed, epoch])
        order = draw.permutation(self.n_examples)
        if self._lengths is None:
            return order
        pool = _POOL * self._batch_size
        for start in range(0, self.n_examples, pool):
            some = order[start : start + pool]
            order[start : start + pool] = some[np.argsort(self._lengths[some], kind="stable")]
        left = -epoch * self.n_examples % self._batch_size  # positions left in the last batch of the previous epoch
        first, rest = order[:left], order[left:]
        complete = len(rest) // self._batch_size * self._batch_size
        batches = rest[:complete].reshape(-1, self._batch_size)
        draw.shuffle(batches)  # otherwise lengths would rise within each pool
        return np.concatenate((first, batches.ravel(), rest[complete:]))


class Ragged:
    """Rows of ids with different lengths, stored in one array.

    >>> tokens, real = Ragged([[5, 6, 7], [8]]).padded([1], among=[0, 1], filling=0)
    >>> tokens, real
    (tensor([[8, 0, 0]]), tensor([[ True, False, False]]))
    """

    def __init__(self, rows: Iterable[Sequence[int] | NDArray[np.int64]]) -> None:
        arrays = [np.asarray(row, dtype=np.int32) for row in rows]
        self.lengths: NDArray[np.int64] = np.array([len(array) for array in arrays], dtype=np.int64)
        self.line: NDArray[np.int32] = np.concatenate(arrays) if arrays else np.empty(0, np.int32)
        self._ends = np.cumsum(self.lengths)

    def __len__(self) -> int:
        return len(self.lengths)

    def padded(self, rows: Sequence[int], among: Sequence[int], filling: int) -> tuple[Tensor, Tensor]:
        """Return some rows, padded to the longest of ``among``, and a mask without the padding: -> (n, T), (n, T)."""
        lengths = self.lengths[list(rows)]
        real = np.arange(self.lengths[list(among)].max()) < lengths[:, None]
        padded = np.full(real.shape, filling, dtype=np.int64)
        ends = self._ends[list(rows)]
        padded[real] = np.concatenate([self.line[end - n : end] for end, n in zip(ends, lengths, strict=True)])
        return torch.from_numpy(padded), torch.from_numpy(real)


Columns = tuple[Ragged | Tensor, ...]  # one entry per property of the examples: rows of ids, images, labels


class ExamplesTask(Task):
    """A task with training and held-out examples in memory; subclasses create the batches."""

    context_length = 0
    too_long = 0  # number of examples that do not fit the context
    part: ClassVar[str] = "tokens"  # the unit that the loss averages over
    reference_names: ClassVar[tuple[str, str]] = ("uniform", "unigram")

    def __init__(self, config: TrainConfig, n_answers: int, train: Columns, held_out: Columns) -> None:
        self._train, self._held_out, self._n_answers = train, held_out, n_answers
        self._label_smoothing, self._evaluate_tokens = config.label_smoothing, config.evaluate_tokens
        lengths = [each.lengths for each in train if isinstance(each, Ragged)]
        together = sum(lengths[1:], lengths[0]) if lengths else None
        self._order = Order(len(train[0]), config.batch_size, config.seed, together)

    @abstractmethod
    def _as_batch(self, some: Columns, rows: Sequence[int], among: Sequence[int]) -> Batch:
        """Return a batch of these examples, padded to the longest of ``among``."""

    @abstractmethod
    def _counts(self, some: Columns) -> Counts:
        """Return how often each answer is correct."""

    def _width(self, some: Columns) -> int:
        """Return the largest number of positions in an example."""
        return sum(int(each.lengths.max()) for each in some if isinstance(each, Ragged))

    def batch(self, step: int, first: int, count: int) -> Batch:
        """See Task; each part of a batch is padded to the width of the whole batch."""
        among = self._order.examples(step)
        return self._as_batch(self._train, among[first : first + count], among)

    def validation(self) -> list[Batch]:
        some = self._held_out
        slices = measuring_slices(len(some[0]), self._width(some), self._evaluate_tokens)
        return [self._as_batch(some, rows, rows) for rows in slices]

    def score(self, sums: dict[str, float], targets: dict[str, int]) -> Score:
        """See Task; loss and accuracy use the correct preceding tokens, and no label smoothing."""
        count = targets[self.part]
        return {"loss_nats": sums[self.part] / count, "accuracy": sums["right"] / count, self.part: count}

    def references(self) -> dict[str, float]:
        frequencies = frequency_nats(self._counts(self._train), self._counts(self._held_out))
        return dict(zip(self.reference_names, (math.log(self._n_answers), frequencies), strict=True))


# -- token sequences ---------------------------------------------------------------------------------------------------


class _Sequences(ExamplesTask):
    """Predict a token sequence; examples that do not fit the context are skipped."""

    tokenizer: Tokenizer

    def __init__(
        self,
        model: TextConfig,
        config: TrainConfig,
        given: Sequence[Any],
        held_out: Sequence[Any],
        tokenizer: Tokenizer,
    ) -> None:
        check_vocabulary(model, tokenizer)
        self.tokenizer, self.context_length = tokenizer, self._longest(model, config)
        self._pad = tokenizer.special.get("pad", 0)
        train = self._prepare(Message("training"), given)
        super().__init__(config, model.vocab_size, train, self._prepare(Message("validation"), held_out))

    def _longest(self, model: TextConfig, config: TrainConfig) -> int:
        """Return the length of the longest example that is used, in tokens."""
        return model.context_length

    @abstractmethod
    def _encode(self, example: Any) -> tuple[Sequence[int], Sequence[int]] | None:
        """Return the input and target rows of an example; None if it does not fit."""

    @abstractmethod
    def _predicted(self, model: Any, tensors: Tensors) -> TokenHeadInputs:
        """Return the inputs to the head, and the target tokens."""

    def _prepare(self, what: Message, examples: Sequence[Any]) -> Columns:
        found = [rows for rows in map(self._encode, examples) if rows is not None]
        if not found:
            raise DataError(
                "none of the {n:,} {what} examples can be used: each must have at most {most:,} tokens; provide "
                "other examples, or use a model with a longer context_length",
                n=len(examples),
                what=what,
                most=self.context_length,
            )
        self.too_long += len(examples) - len(found)
        return tuple(map(Ragged, zip(*found, strict=True)))

    def losses(self, model: Any, tensors: Tensors) -> Tensors:
        return {self.part: word_loss(model, self._predicted(model, tensors), self._label_smoothing)}

    def measure(self, model: Any, tensors: Tensors) -> Tensors:
        nats, right = score_token_predictions(model, self._predicted(model, tensors))
        return {self.part: nats, "right": right}


class AnswerTokens(_Sequences):
    """Predict the assistant's turns of a conversation token by token (instruction tuning).

    Conversations are formatted with the chat template. Only the assistant's tokens are targets: its text, and the token
    that ends its turn, so that the model learns to stop. The prompt's tokens do not contribute to the loss. A
    conversation longer than the context is skipped: without its beginning the answer could not be predicted, and
    without its end the answer would be incomplete.
    """

    name = "answers"

    def _longest(self, model: TextConfig, config: TrainConfig) -> int:
        return config.context_length or model.context_length

    @cached_property
    def chat_template(self) -> ChatTemplate | None:  # type: ignore[override]
        """The chat template, built from the special tokens of the tokenizer."""
        return ChatTemplate.of(self.tokenizer)

    def _encode(self, example: Dialogue) -> Any:
        """Return all tokens except the last, and for each the next token, or IGNORED if that is not a target."""
        assert self.chat_template is not None, "the tokenizer must have tokens for turns"
        tokens, is_target = self.chat_template.encode(self.tokenizer, example)
        return (
            (tokens[:-1], np.where(is_target, tokens, IGNORED)[1:]) if len(tokens) - 1 <= self.context_length else None
        )

    def _as_batch(self, some: Any, rows: Sequence[int], among: Sequence[int]) -> Batch:
        inputs, _ = some[0].padded(rows, among, self._pad)  # padding is at the end, where causal attention ignores it
        targets, _ = some[1].padded(rows, among, IGNORED)
        tensors = {"inputs": inputs, "targets": targets}
        return Batch(tensors, {self.part: int((targets != IGNORED).sum())}, inputs.numel())

    def _width(self, some: Any) -> int:
        return int(some[0].lengths.max())

    def _predicted(self, model: GPT, tensors: Tensors) -> TokenHeadInputs:
        return model.hidden(tensors["inputs"]), tensors["targets"]

    def _counts(self, some: Any) -> Counts:
        is_target = some[1].line
        return np.bincount(is_target[is_target != IGNORED], minlength=self._n_answers)


TextPair = tuple[Sequence[int], Sequence[int]]
"""A source and its target, as token ids, without special tokens."""


class Translation(_Sequences):
    """Predict a target token by token from its source (teacher forcing); suitable for any text-to-text task.

    The source ends with the end token; the target starts with the start token and ends with the end token. A batch is
    padded to its longest pair. A pair with an empty side is skipped, and so is a pair longer than the context, because
    a truncated target would teach the model to stop early.
    """

    name = "translation"

    @cached_property
    def _ends(self) -> tuple[int, int]:
        """Return the tokens that start and end a target."""
        special = self.tokenizer.special
        if not {"bos", "eos"} <= special.keys():
            raise DataError(
                "the tokenizer has no tokens that start and end a target; train one with `kotha tokenizer train`"
            )
        return special["bos"], special["eos"]

    def _encode(self, example: TextPair) -> Any:
        # The end token follows the source; the start token precedes the target.
        start, end = self._ends
        fits = all(0 < len(side) < self.context_length for side in example)
        return ([*example[0], end], [start, *example[1], end]) if fits else None

    def _as_batch(self, some: Any, rows: Sequence[int], among: Sequence[int]) -> Batch:
        source, real = some[0].padded(rows, among, self._pad)
        target, is_target = some[1].padded(rows, among, IGNORED)
        tensors = {"source": source, "real": real, "target": target}
        return Batch(tensors, {self.part: int(is_target[:, 1:].sum())}, source.numel() + target[:, 1:].numel())

    def _predicted(self, model: Seq2Seq, tensors: Tensors) -> TokenHeadInputs:
        return teacher_forcing(model, *(tensors[name] for name in ("source", "target", "real")))

    def _counts(self, some: Any) -> Counts:
        counts: Counts = np.bincount(some[1].line, minlength=self._n_answers)
        counts[self._ends[0]] -= len(some[1])  # the start token is an input, never a target
        return counts
