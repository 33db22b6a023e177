"""From queries and keys to weights: scores, scaling, causal mask, and softmax in its steps."""

import math
from dataclasses import dataclass

import numpy as np

from kotha.inside.worksheet.numerals import ends_of, factor, sum_of, written
from kotha.inside.worksheet.operation import (
    SPELLED_OUT,
    Addresses,
    Array,
    Matrices,
    Operation,
    products,
)


@dataclass(frozen=True)
class RowsProduct(Operation):
    """Rows of one times rows of the other, which is left times right turned: (T, D) and (S, D) -> (T, S)."""

    left: str
    right: str

    def compute(self, given: Matrices) -> Array:
        """Rows times rows."""
        product: Array = given[self.left] @ given[self.right].T
        return product

    def arithmetic(self, given: Matrices, row: int, column: int, precision: int) -> str:
        """Each product of the two rows, added up."""
        return products(given[self.left][row], given[self.right][column], precision)

    def formula(self, at: Addresses, given: Matrices, row: int, column: int) -> str:
        """A sum of products over two rows."""
        n_inner = given[self.left].shape[1]
        if n_inner > SPELLED_OUT:
            return f"SUMPRODUCT({at.row(self.left, row)},{at.row(self.right, column)})"
        pairs = ((at.cell(self.left, row, inner), at.cell(self.right, column, inner)) for inner in range(n_inner))
        return "+".join(f"{left}*{right}" for left, right in pairs)


@dataclass(frozen=True)
class OverRoot(Operation):
    """Every number over the root of a width: (T, S) and (1, 1) -> (T, S)."""

    left: str
    width: str

    def compute(self, given: Matrices) -> Array:
        """Divide by the root."""
        scaled: Array = given[self.left] / np.sqrt(given[self.width])
        return scaled

    def arithmetic(self, given: Matrices, row: int, column: int, precision: int) -> str:
        """The number over the root."""
        return f"{written(given[self.left][row, column], precision)} / √{given[self.width][0, 0]:g}"

    def formula(self, at: Addresses, given: Matrices, row: int, column: int) -> str:
        """SQRT of the width's cell."""
        return f"{at.cell(self.left, row, column)}/SQRT({at.cell(self.width, 0, 0)})"


@dataclass(frozen=True)
class MaskedScores(Operation):
    """−∞ where the mask has a 0: (T, S) and (T, S) -> (T, S)."""

    left: str
    mask: str

    def compute(self, given: Matrices) -> Array:
        """Keep or hide."""
        return np.where(given[self.mask] == 1, given[self.left], -math.inf)

    def arithmetic(self, given: Matrices, row: int, column: int, precision: int) -> str:
        """What the mask says."""
        mask = given[self.mask][row, column]
        return f"{written(given[self.left][row, column], precision)} (mask {mask:g})"

    def formula(self, at: Addresses, given: Matrices, row: int, column: int) -> str:
        """A spreadsheet has no infinity, so a hidden cell is a word, which MAX and SUM pass over."""
        return f'IF({at.cell(self.mask, row, column)}=1,{at.cell(self.left, row, column)},"−∞")'


@dataclass(frozen=True)
class Largest(Operation):
    """The largest number of each row: (T, S) -> (T, 1)."""

    of: str

    def compute(self, given: Matrices) -> Array:
        """Row by row."""
        largest: Array = given[self.of].max(axis=1, keepdims=True)
        return largest

    def arithmetic(self, given: Matrices, row: int, column: int, precision: int) -> str:
        """The numbers to choose from."""
        return f"max({', '.join(ends_of([written(value, precision) for value in given[self.of][row]]))})"

    def formula(self, at: Addresses, given: Matrices, row: int, column: int) -> str:
        """MAX passes over words."""
        return f"MAX({at.row(self.of, row)})"


@dataclass(frozen=True)
class Powers(Operation):
    """e to each number: (T, S) -> (T, S); hidden ones become 0."""

    of: str

    def compute(self, given: Matrices) -> Array:
        """e to the number."""
        return np.exp(given[self.of])

    def arithmetic(self, given: Matrices, row: int, column: int, precision: int) -> str:
        """The power as it is written."""
        return f"e^{factor(given[self.of][row, column], precision)}"

    def formula(self, at: Addresses, given: Matrices, row: int, column: int) -> str:
        """EXP, or 0 for what is hidden."""
        cell = at.cell(self.of, row, column)
        return f"IF(ISNUMBER({cell}),EXP({cell}),0)"


@dataclass(frozen=True)
class ShiftedPowers(Operation):
    """e to each number less its row's largest, so that nothing overflows: (T, S) and (T, 1) -> (T, S)."""

    of: str
    largest: str

    def compute(self, given: Matrices) -> Array:
        """e to the difference."""
        return np.exp(given[self.of] - given[self.largest])

    def arithmetic(self, given: Matrices, row: int, column: int, precision: int) -> str:
        """The power of a difference."""
        number = written(given[self.of][row, column], precision)
        return f"e^({number} − {factor(given[self.largest][row, 0], precision)})"

    def formula(self, at: Addresses, given: Matrices, row: int, column: int) -> str:
        """EXP of the difference, or 0 for what is hidden."""
        cell = at.cell(self.of, row, column)
        return f"IF(ISNUMBER({cell}),EXP({cell}-{at.cell(self.largest, row, 0)}),0)"


@dataclass(frozen=True)
class RowSums(Operation):
    """The sum of each row: (T, S) -> (T, 1)."""

    of: str

    def compute(self, given: Matrices) -> Array:
        """Row by row."""
        total: Array = given[self.of].sum(axis=1, keepdims=True)
        return total

    def arithmetic(self, given: Matrices, row: int, column: int, precision: int) -> str:
        """The numbers added."""
        return sum_of([factor(value, precision) for value in given[self.of][row]])

    def formula(self, at: Addresses, given: Matrices, row: int, column: int) -> str:
        """SUM over the row."""
        return f"SUM({at.row(self.of, row)})"


@dataclass(frozen=True)
class Shares(Operation):
    """Each number over its row's sum: (T, S) and (T, 1) -> (T, S)."""

    left: str
    sums: str

    def compute(self, given: Matrices) -> Array:
        """Divide; every row then sums to one."""
        shares: Array = given[self.left] / given[self.sums]
        return shares

    def arithmetic(self, given: Matrices, row: int, column: int, precision: int) -> str:
        """A quotient."""
        number = written(given[self.left][row, column], precision)
        return f"{number} / {written(given[self.sums][row, 0], precision)}"

    def formula(self, at: Addresses, given: Matrices, row: int, column: int) -> str:
        """A quotient of cells."""
        return f"{at.cell(self.left, row, column)}/{at.cell(self.sums, row, 0)}"
