"""What one step of the sheet does to the matrices before it, in three readings that belong together.

Each operation computes its matrix (in double precision), writes the arithmetic of one cell as one would on paper, and
gives the same cell as a spreadsheet formula. Its operands are names of matrices; who holds the matrices, and in which
cells of a spreadsheet they stand, is not known here. The operations themselves are in ``projecting.py`` and
``weighing.py``.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from kotha.inside.worksheet.numerals import factor, sum_of

Array = NDArray[np.float64]
Matrices = Mapping[str, Array]
# Up to here a spreadsheet spells a sum out; beyond, a function over ranges does it.
SPELLED_OUT = 16


class Addresses(Protocol):
    """Where the matrices stand in a spreadsheet."""

    def cell(self, name: str, row: int, column: int) -> str:
        """The address of a cell, such as ``C7``."""

    def row(self, name: str, row: int) -> str:
        """The address of a whole row, such as ``C7:F7``."""

    def column(self, name: str, column: int) -> str:
        """The address of a whole column as a row of its own, where the matrix was laid out turned."""


@dataclass(frozen=True)
class Operation(ABC):
    """One step; its fields are the names of the matrices that it reads."""

    @property
    def operands(self) -> tuple[str, ...]:
        """The names of the matrices that are read."""
        return tuple(getattr(self, each.name) for each in fields(self))

    @abstractmethod
    def compute(self, given: Matrices) -> Array:
        """The whole matrix."""

    @abstractmethod
    def arithmetic(self, given: Matrices, row: int, column: int, precision: int) -> str:
        """The right-hand side of one cell, without its result."""

    @abstractmethod
    def formula(self, at: Addresses, given: Matrices, row: int, column: int) -> str:
        """The same cell in a spreadsheet."""


def factor_at(given: Matrices, name: str, row: int, column: int, precision: int) -> str:
    """One number of a matrix, as it stands inside a sum or product."""
    return factor(given[name][row, column], precision)


def products(left: Array, right: Array, precision: int) -> str:
    """Two rows of numbers multiplied one by one and added up."""
    pairs = zip(left.tolist(), right.tolist(), strict=True)
    return sum_of([f"{factor(a, precision)}×{factor(b, precision)}" for a, b in pairs])
