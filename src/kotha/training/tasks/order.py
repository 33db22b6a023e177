"""Examples: which of them a step reads, and how those of different lengths are kept.

What a step reads is a function of seed and step, each example once an epoch, in a new order each time.
Examples have numbers, and turns follow each other for ever: turn 0 is the first example of the first epoch, and step s
has the turns from s times the batch size on. Nothing about the data needs to be saved with a run. Examples of different
lengths share a batch with others of about their length (length-sorted batches), so that little of it is filling.
"""

from collections.abc import Iterable, Sequence
from functools import lru_cache

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

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
