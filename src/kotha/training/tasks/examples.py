"""Tasks over examples in memory: which of them a step reads, and those whose answers are sequences of words.

Examples have numbers, and turns follow each other for ever: turn 0 is the first example of the first epoch, and step s
has the turns from s times the batch size on; each example has one turn an epoch, in a new order each time. Nothing
about the data needs to be saved with a run. Examples of different lengths share a batch with others of about their
length (length-sorted batches), so that little of it is filling.

``AnswerTokens`` is instruction tuning: only what the assistant says is learned. ``Translation`` reads a source and
learns its target by teacher forcing.
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
from kotha.model.objectives import Asked, judge_words, teacher_forcing, word_loss
from kotha.model.seq2seq import Seq2Seq
from kotha.text.corpus.dialogues import Dialogue
from kotha.text.held_out import Counts, frequency_nats
from kotha.text.tokenizer.chat import ChatTemplate
from kotha.text.tokenizer.tokenizer import Tokenizer
from kotha.training.config import TrainConfig
from kotha.training.tasks.task import Batch, Score, Task, Tensors, check_vocabulary, measuring_slices

# Keeps what is drawn for a turn apart from what is drawn for an epoch of the same number.
_TURN = 1
# Batches that are sorted by length together: enough for little filling, few enough for chance to decide who meets whom.
_POOL = 20


class Order:
    """Examples in a new order each epoch, epoch after epoch; with ``lengths``, like beside like."""

    def __init__(self, n_examples: int, batch_size: int, seed: int, lengths: NDArray[np.int64] | None = None) -> None:
        assert n_examples > 0, "an order of nothing"
        self.n_examples, self._batch_size, self._seed = n_examples, batch_size, seed
        self._lengths = lengths
        self._shuffled = lru_cache(maxsize=2)(self._shuffle)  # a batch may reach from one epoch into the next

    def turns(self, step: int, first: int = 0, count: int | None = None) -> range:
        """The turns of a step, or ``count`` of them from ``first`` on.

        >>> Order(10, batch_size=4, seed=0).turns(step=2, first=1, count=2)
        range(9, 11)
        """
        start = step * self._batch_size + first
        return range(start, start + (self._batch_size - first if count is None else count))

    def example(self, turn: int) -> int:
        """The example whose turn it is."""
        epoch, place = divmod(turn, self.n_examples)
        return int(self._shuffled(epoch)[place])

    def examples(self, step: int) -> list[int]:
        """The examples of a step."""
        return [self.example(turn) for turn in self.turns(step)]

    def chance(self, turn: int) -> np.random.Generator:
        """Where whatever is drawn for one turn comes from."""
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
        begun = -epoch * self.n_examples % self._batch_size  # places that the last batch of the epoch before still has
        first, rest = order[:begun], order[begun:]
        whole = len(rest) // self._batch_size * self._batch_size
        batches = rest[:whole].reshape(-1, self._batch_size)
        draw.shuffle(batches)  # or steps would go from short to long, over and over
        return np.concatenate((first, batches.ravel(), rest[whole:]))


class Ragged:
    """Rows of ids, one after the other in one array: a million short texts take the room of their tokens.

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
        """Some rows as wide as the longest ``among`` others, and where they are real: -> (n, T), (n, T)."""
        lengths = self.lengths[list(rows)]
        real = np.arange(self.lengths[list(among)].max()) < lengths[:, None]
        padded = np.full(real.shape, filling, dtype=np.int64)
        ends = self._ends[list(rows)]
        padded[real] = np.concatenate([self.line[end - n : end] for end, n in zip(ends, lengths, strict=True)])
        return torch.from_numpy(padded), torch.from_numpy(real)


Columns = tuple[Ragged | Tensor, ...]  # what is known of each example: rows of ids, images, labels


class ExamplesTask(Task):
    """A task over examples in memory, to learn from and held out; each makes batches in its own way."""

    context_length = 0
    too_long = 0  # how many examples do not fit the context
    part: ClassVar[str] = "tokens"  # what the loss is a mean over
    reference_names: ClassVar[tuple[str, str]] = ("ln V", "unigram")

    def __init__(self, config: TrainConfig, n_answers: int, learned: Columns, held_out: Columns) -> None:
        self._learned, self._held_out, self._n_answers = learned, held_out, n_answers
        self._label_smoothing, self._evaluate_tokens = config.label_smoothing, config.evaluate_tokens
        lengths = [each.lengths for each in learned if isinstance(each, Ragged)]
        together = sum(lengths[1:], lengths[0]) if lengths else None
        self._order = Order(len(learned[0]), config.batch_size, config.seed, together)

    @abstractmethod
    def _as_batch(self, some: Columns, rows: Sequence[int], among: Sequence[int]) -> Batch:
        """Some examples, as wide as the longest ``among`` others."""

    @abstractmethod
    def _counts(self, some: Columns) -> Counts:
        """How often each answer is the right one."""

    def _width(self, some: Columns) -> int:
        """Positions of one example, at most."""
        return sum(int(each.lengths.max()) for each in some if isinstance(each, Ragged))

    def batch(self, step: int, first: int, count: int) -> Batch:
        """See Task; a part of a batch is as wide as the whole."""
        among = self._order.examples(step)
        return self._as_batch(self._learned, among[first : first + count], among)

    def validation(self) -> list[Batch]:
        some = self._held_out
        slices = measuring_slices(len(some[0]), self._width(some), self._evaluate_tokens)
        return [self._as_batch(some, rows, rows) for rows in slices]

    def score(self, sums: dict[str, float], targets: dict[str, int]) -> Score:
        """See Task; both figures are without label smoothing, of tokens given the true ones before them."""
        count = targets[self.part]
        return {"loss_nats": sums[self.part] / count, "accuracy": sums["right"] / count, self.part: count}

    def references(self) -> dict[str, float]:
        frequencies = frequency_nats(self._counts(self._learned), self._counts(self._held_out))
        return dict(zip(self.reference_names, (math.log(self._n_answers), frequencies), strict=True))


# -- sequences of words ------------------------------------------------------------------------------------------------


class _Sequences(ExamplesTask):
    """Write a sequence of words, given what comes before it; examples that do not fit are left out."""

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
        learned = self._prepare(Message("training"), given)
        super().__init__(config, model.vocab_size, learned, self._prepare(Message("validation"), held_out))

    def _longest(self, model: TextConfig, config: TrainConfig) -> int:
        """Tokens of the longest example that is learned."""
        return model.context_length

    @abstractmethod
    def _encode(self, example: Any) -> tuple[Sequence[int], Sequence[int]] | None:
        """Two rows of an example, what is read and what is asked; None where it does not fit."""

    @abstractmethod
    def _asked(self, model: Any, tensors: Tensors) -> Asked:
        """What the head reads, and the words that it should say."""

    def _prepare(self, what: Message, examples: Sequence[Any]) -> Columns:
        found = [rows for rows in map(self._encode, examples) if rows is not None]
        if not found:
            raise DataError(
                "none of the {n:,} {what} examples can be used: each needs a text of at most {most:,} "
                "tokens; provide other examples, or use a model with a longer context_length",
                n=len(examples),
                what=what,
                most=self.context_length,
            )
        self.too_long += len(examples) - len(found)
        return tuple(map(Ragged, zip(*found, strict=True)))

    def losses(self, model: Any, tensors: Tensors) -> Tensors:
        return {self.part: word_loss(model, self._asked(model, tensors), self._label_smoothing)}

    def measure(self, model: Any, tensors: Tensors) -> Tensors:
        nats, right = judge_words(model, self._asked(model, tensors))
        return {self.part: nats, "right": right}


class AnswerTokens(_Sequences):
    """Write what the assistant said, token by token, after what was said to it (instruction tuning).

    A conversation is written by the chat template. Only what the assistant said is a target: its words, and the end of
    its turn, which teaches it to stop. The words of the prompt are read and never asked for, so they contribute exactly
    nothing to the loss. A conversation longer than the context is left out: without its beginning the answer would be a
    guess, and without its end there would be none.
    """

    name = "answers"

    def _longest(self, model: TextConfig, config: TrainConfig) -> int:
        return config.context_length or model.context_length

    @cached_property
    def chat_template(self) -> ChatTemplate | None:  # type: ignore[override]
        """How the model takes turns, by the marks of its tokenizer."""
        return ChatTemplate.of(self.tokenizer)

    def _encode(self, example: Dialogue) -> Any:
        """Each token but the last, and the token after each: IGNORED in what was not asked."""
        assert self.chat_template is not None, "a tokenizer with marks for turns"
        tokens, asked = self.chat_template.encode(self.tokenizer, example)
        return (tokens[:-1], np.where(asked, tokens, IGNORED)[1:]) if len(tokens) - 1 <= self.context_length else None

    def _as_batch(self, some: Any, rows: Sequence[int], among: Sequence[int]) -> Batch:
        inputs, _ = some[0].padded(rows, among, self._pad)  # padding comes last, and nothing before sees it
        targets, _ = some[1].padded(rows, among, IGNORED)
        tensors = {"inputs": inputs, "targets": targets}
        return Batch(tensors, {self.part: int((targets != IGNORED).sum())}, inputs.numel())

    def _width(self, some: Any) -> int:
        return int(some[0].lengths.max())

    def _asked(self, model: GPT, tensors: Tensors) -> Asked:
        return model.hidden(tensors["inputs"]), tensors["targets"]

    def _counts(self, some: Any) -> Counts:
        asked = some[1].line
        return np.bincount(asked[asked != IGNORED], minlength=self._n_answers)


TextPair = tuple[Sequence[int], Sequence[int]]
"""A source and its target, as ids without marks."""


class Translation(_Sequences):
    """Write a target, token by token, from its source (teacher forcing). Any text that becomes another will do.

    The source ends with the end mark; the target starts with the start mark and ends with the end mark. Batches are as
    wide as their longest pair. A pair that is empty on one side, or longer than the context, is left out: half of a
    translation would teach to stop in the middle.
    """

    name = "translation"

    @cached_property
    def _ends(self) -> tuple[int, int]:
        """The marks that start and end a target."""
        special = self.tokenizer.special
        if not {"bos", "eos"} <= special.keys():
            raise DataError(
                "the tokenizer has no tokens that start and end a target; train one with `kotha tokenizer train`"
            )
        return special["bos"], special["eos"]

    def _encode(self, example: TextPair) -> Any:
        # A source has its end; what is read of a target has its start.
        start, end = self._ends
        fits = all(0 < len(side) < self.context_length for side in example)
        return ([*example[0], end], [start, *example[1], end]) if fits else None

    def _as_batch(self, some: Any, rows: Sequence[int], among: Sequence[int]) -> Batch:
        source, real = some[0].padded(rows, among, self._pad)
        target, asked = some[1].padded(rows, among, IGNORED)
        tensors = {"source": source, "real": real, "target": target}
        return Batch(tensors, {self.part: int(asked[:, 1:].sum())}, source.numel() + target[:, 1:].numel())

    def _asked(self, model: Seq2Seq, tensors: Tensors) -> Asked:
        return teacher_forcing(model, *(tensors[name] for name in ("source", "target", "real")))

    def _counts(self, some: Any) -> Counts:
        counts: Counts = np.bincount(some[1].line, minlength=self._n_answers)
        counts[self._ends[0]] -= len(some[1])  # the start is given, never asked for
        return counts
