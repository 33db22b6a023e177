"""Rows of different lengths, one after the other in one array: a million short texts take the room of their tokens."""

from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray


class Ragged:
    """Rows of ids.

    >>> rows = Ragged([[5, 6, 7], [8]])
    >>> rows.padded([1, 0], width=3, filling=0)
    array([[8, 0, 0],
           [5, 6, 7]])
    """

    def __init__(self, rows: Iterable[Sequence[int]]) -> None:
        arrays = [np.asarray(row, dtype=np.int32) for row in rows]
        self.lengths: NDArray[np.int64] = np.array([len(array) for array in arrays], dtype=np.int64)
        self.line: NDArray[np.int32] = np.concatenate(arrays) if arrays else np.empty(0, np.int32)
        self._ends = np.cumsum(self.lengths)

    def __len__(self) -> int:
        return len(self.lengths)

    def __getitem__(self, row: int) -> NDArray[np.int32]:
        end = int(self._ends[row])
        return self.line[end - int(self.lengths[row]) : end]

    def longest(self, rows: Iterable[int]) -> int:
        """The length of the longest of some rows."""
        return int(self.lengths[list(rows)].max())

    def padded(self, rows: Sequence[int], width: int, filling: int) -> NDArray[np.int64]:
        """Some rows of one width: n rows -> (n, width)."""
        padded = np.full((len(rows), width), filling, dtype=np.int64)
        for place, row in enumerate(rows):
            padded[place, : self.lengths[row]] = self[row]
        return padded
