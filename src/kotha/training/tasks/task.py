"""What the loop asks of a task, so that one loop serves them all; and which examples a step reads.

A task makes batches, each a function of seed and step; gives the losses of a batch; and measures a model on examples
that it does not learn from. It knows nothing of optimizers, checkpoints or machines.

Examples have numbers, and turns follow each other for ever: turn 0 is the first example of the first epoch, and step s
has the turns from s times the batch size on; each example has one turn an epoch, in a new order each time. Nothing
about the data needs to be saved with a run. Examples of different lengths share a batch with others of about their
length (length-sorted batches), so that little of it is filling.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from kotha.errors import ConfigError, KothaError
from kotha.i18n.message import Message
from kotha.model.config import TextConfig
from kotha.text.tokenizer.chat import ChatTemplate
from kotha.text.tokenizer.tokenizer import Tokenizer

Tensors = dict[str, Tensor]
Score = dict[str, float]
# The examples that a message speaks of.
TRAINING, VALIDATION = Message("training"), Message("validation")


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

    tokenizer: Tokenizer | None = None  # of the texts that it reads, which goes with the model
    chat_template: ChatTemplate | None = None  # how a model that learned this takes turns, if it does

    @property
    def name(self) -> str:
        """What it is called in a run's config."""

    def batch(self, step: int, first: int, count: int) -> Batch:
        """``count`` examples of a step's batch, from ``first`` on."""

    def document_ids(self, step: int) -> list[int]:
        """Which documents or examples a step reads, to be named when something is wrong with them."""

    def set_total_steps(self, steps: int) -> None:
        """How many steps there will be, if on the way that becomes another number than the config's."""
        return

    def losses(self, model: Any, tensors: Tensors) -> Tensors:
        """The loss to go down on, in nats: for each part the mean over its targets."""

    @property
    def auxiliary_models(self) -> Sequence[nn.Module]:
        """Models that the losses read beside the one that learns."""
        return ()

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


def check_vocabulary(model: TextConfig, tokenizer: Tokenizer, error: type[KothaError] = ConfigError) -> None:
    """Refuse a tokenizer with more tokens than a model knows."""
    if model.vocab_size < tokenizer.vocab_size:
        raise error(
            "the model knows {n:,} tokens and the tokenizer has {vocab_size:,}; use vocab_size={vocab_size}",
            n=model.vocab_size,
            vocab_size=tokenizer.vocab_size,
        )


# -- the order of examples ---------------------------------------------------------------------------------------------


# Positions that go through a model at once when it is measured.
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

    def __init__(self, rows: Iterable[Sequence[int]]) -> None:
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
