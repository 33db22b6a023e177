"""What the loop asks of a task, so that one loop serves them all; and which examples a step reads.

A task makes batches, each a function of seed and step; gives the losses of a batch; and measures a model on examples
that it does not learn from. It knows nothing of optimizers, checkpoints or machines.

Examples have numbers, and turns follow each other for ever: turn 0 is the first example of the first epoch, and step s
has the turns from s times the batch size on; each example has one turn an epoch, in a new order each time. Nothing
about the data needs to be saved with a run. Examples of different lengths share a batch with others of about their
length (length-sorted batches), so that little of it is filling.
"""

import math
from abc import abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, ClassVar, Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from kotha.errors import ConfigError
from kotha.i18n.message import Message
from kotha.model.config import TextConfig
from kotha.text.held_out import Counts, frequency_nats
from kotha.text.tokenizer.chat import ChatTemplate
from kotha.text.tokenizer.tokenizer import Tokenizer
from kotha.training.config import TrainConfig

Tensors = dict[str, Tensor]
Score = dict[str, float]
TRAINING, VALIDATION = Message("training"), Message("validation")  # the examples that a message speaks of


@dataclass(frozen=True)
class Batch:
    """Some examples, ready for a model."""

    tensors: Tensors  # what the losses are computed from, by name; the first dimension counts the examples
    targets: dict[str, int]  # how many guesses each part of the loss is the mean of
    tokens: int  # positions that go through the model

    def to(self, device: torch.device) -> Tensors:
        """The tensors on a device; a GPU reads them while it still computes."""
        if device.type != "cuda":
            return self.tensors
        return {name: each.pin_memory().to(device, non_blocking=True) for name, each in self.tensors.items()}


class Task(Protocol):
    """Something to learn, and the examples to learn it from."""

    name: str  # what it is called in a run's config
    tokenizer: Tokenizer | None = None  # of the texts that it reads, which goes with the model
    chat_template: ChatTemplate | None = None  # how a model that learned this takes turns, if it does

    auxiliary_models: Sequence[nn.Module] = ()  # that the losses read beside the one that learns

    def batch(self, step: int, first: int, count: int) -> Batch:
        """``count`` examples of a step's batch, from ``first`` on."""

    def document_ids(self, step: int) -> list[int]:
        """Which documents or examples a step reads, to be named when something is wrong with them."""

    def set_total_steps(self, steps: int) -> None:
        """How many steps there will be, if on the way that becomes another number than the config's."""
        return

    def losses(self, model: Any, tensors: Tensors) -> Tensors:
        """The loss to go down on, in nats: for each part the mean over its targets."""

    def measure(self, model: Any, tensors: Tensors) -> Tensors:
        """Sums over a batch that a score is made from: nats for each part, and what else counts."""

    def validation(self) -> Sequence[Batch]:
        """The examples that are never learned from."""

    def score(self, sums: dict[str, float], targets: dict[str, int]) -> Score:
        """How well a model does, from what ``measure`` gave, ``loss_nats`` among it."""

    def error(self, score: Score) -> float:
        """What a model still lacks by its score, 0 or more; the one that lacks least is the best."""
        return score["loss_nats"]

    def references(self) -> dict[str, float]:
        """Losses in nats to compare with, by name: what one reaches who knows nothing, or very little."""


class Learner(nn.Module):
    """A model with its task: one module to call and to wrap, in training and in measuring."""

    def __init__(self, model: nn.Module, task: Task) -> None:
        super().__init__()
        self.model = model
        self._task = task

    def forward(self, tensors: Tensors) -> Tensors:
        """Mean losses in training mode; sums to score by otherwise."""
        return (self._task.losses if self.training else self._task.measure)(self.model, tensors)


def check_vocabulary(model: TextConfig, tokenizer: Tokenizer) -> None:
    """Refuse a tokenizer with more tokens than a model knows."""
    if model.vocab_size < tokenizer.vocab_size:
        raise ConfigError(
            "the model knows {n:,} tokens and the tokenizer has {vocab_size:,}; use vocab_size={vocab_size}",
            n=model.vocab_size,
            vocab_size=tokenizer.vocab_size,
        )


# -- the order of examples ---------------------------------------------------------------------------------------------


# Positions that go through a model at once when it is measured.
Columns = tuple["Ragged | Tensor", ...]
Numbered = tuple[Sequence[int], Columns]  # which of the given examples each is, and what is known of it
POSITIONS_AT_ONCE = {"cuda": 1 << 15, "cpu": 1 << 12}
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


def measuring_slices(n_examples: int, width: int, positions: int | None) -> list[range]:
    """Examples to measure on, as many at a time as a machine likes; ``positions`` limits how many in all.

    >>> measuring_slices(100, width=1024, positions=7000)
    [range(0, 4), range(4, 6)]
    """
    wanted = n_examples if positions is None else min(n_examples, max(1, positions // width))
    size = max(1, POSITIONS_AT_ONCE["cuda" if torch.cuda.is_available() else "cpu"] // width)
    return [range(start, min(start + size, wanted)) for start in range(0, wanted, size)]


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


class ExamplesTask(Task):
    """A task over examples in memory, to learn from and held out; how some of them become a batch is each task's own.

    Columns are what is known of each example: rows of ids, images, labels.
    """

    part: ClassVar[str] = "tokens"  # what the loss is a mean over
    reference_names: ClassVar[tuple[str, str]] = ("ln V", "unigram")

    def __init__(self, config: TrainConfig, n_answers: int, given: Numbered, validation: Numbered) -> None:
        self._numbers, learned = given
        self._learned, self._held_out, self._n_answers = learned, validation[1], n_answers
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

    def document_ids(self, step: int) -> list[int]:
        return sorted({self._numbers[example] for example in self._order.examples(step)})

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
