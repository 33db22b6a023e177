"""From a token's vector to its query, key and value: products, biases, norms, and turning by place."""

from dataclasses import dataclass

import numpy as np

from kotha.inside.worksheet.numerals import factor, sum_of, written
from kotha.inside.worksheet.operation import (
    SPELLED_OUT,
    Addresses,
    Array,
    Matrices,
    Operation,
    factor_at,
    products,
)


@dataclass(frozen=True)
class Product(Operation):
    """A matrix product: (T, C) times (C, D) -> (T, D)."""

    left: str
    right: str

    def compute(self, given: Matrices) -> Array:
        """Rows times columns."""
        product: Array = given[self.left] @ given[self.right]
        return product

    def arithmetic(self, given: Matrices, row: int, column: int, precision: int) -> str:
        """Each product of the row and the column, added up."""
        return products(given[self.left][row], given[self.right][:, column], precision)

    def formula(self, at: Addresses, given: Matrices, row: int, column: int) -> str:
        """A sum of products, spelled out while it is short."""
        n_inner = given[self.left].shape[1]
        if n_inner > SPELLED_OUT:
            return f"SUMPRODUCT({at.row(self.left, row)},{at.column(self.right, column)})"
        pairs = ((at.cell(self.left, row, inner), at.cell(self.right, inner, column)) for inner in range(n_inner))
        return "+".join(f"{left}*{right}" for left, right in pairs)


@dataclass(frozen=True)
class AddRow(Operation):
    """The same row (a bias) added to every row: (T, D) and (1, D) -> (T, D)."""

    left: str
    added: str

    def compute(self, given: Matrices) -> Array:
        """Each row plus the one."""
        total: Array = given[self.left] + given[self.added]
        return total

    def arithmetic(self, given: Matrices, row: int, column: int, precision: int) -> str:
        """The number plus its column's."""
        return sum_of(
            [factor_at(given, self.left, row, column, precision), factor_at(given, self.added, 0, column, precision)]
        )

    def formula(self, at: Addresses, given: Matrices, row: int, column: int) -> str:
        """Two cells added."""
        return f"{at.cell(self.left, row, column)}+{at.cell(self.added, 0, column)}"


@dataclass(frozen=True)
class RootMeanSquare(Operation):
    """The size of each row: the root of the mean of its squares: (T, D) -> (T, 1)."""

    of: str
    eps: str

    def compute(self, given: Matrices) -> Array:
        """Root mean square, with the little that keeps it above zero."""
        mean = np.square(given[self.of]).mean(axis=1, keepdims=True)
        size: Array = np.sqrt(mean + given[self.eps])
        return size

    def arithmetic(self, given: Matrices, row: int, column: int, precision: int) -> str:
        """Squares added, divided, and the root."""
        squares = sum_of([f"{factor(value, precision)}²" for value in given[self.of][row]])
        return f"√(({squares})/{given[self.of].shape[1]} + {given[self.eps][0, 0]:g})"

    def formula(self, at: Addresses, given: Matrices, row: int, column: int) -> str:
        """SUMSQ over the row."""
        return f"SQRT(SUMSQ({at.row(self.of, row)})/{given[self.of].shape[1]}+{at.cell(self.eps, 0, 0)})"


@dataclass(frozen=True)
class Normed(Operation):
    """Each row over its size, times a learned gain: (T, D), (T, 1), (1, D) -> (T, D)."""

    left: str
    size: str
    gain: str

    def compute(self, given: Matrices) -> Array:
        """Divide, then scale."""
        normed: Array = given[self.left] / given[self.size] * given[self.gain]
        return normed

    def arithmetic(self, given: Matrices, row: int, column: int, precision: int) -> str:
        """The number over its row's size, times its column's gain."""
        number, size = written(given[self.left][row, column], precision), written(given[self.size][row, 0], precision)
        return f"{number} / {size} × {factor_at(given, self.gain, 0, column, precision)}"

    def formula(self, at: Addresses, given: Matrices, row: int, column: int) -> str:
        """A quotient and a product."""
        return f"{at.cell(self.left, row, column)}/{at.cell(self.size, row, 0)}*{at.cell(self.gain, 0, column)}"


@dataclass(frozen=True)
class Turned(Operation):
    """Rotary positions: each pair (i, i + D/2) turned by its angle: (T, D) and (T, D/2) -> (T, D)."""

    left: str
    angles: str

    def compute(self, given: Matrices) -> Array:
        """First halves lose, second halves gain."""
        first, second = np.split(given[self.left], 2, axis=1)
        cos, sin = np.cos(given[self.angles]), np.sin(given[self.angles])
        return np.concatenate((first * cos - second * sin, second * cos + first * sin), axis=1)

    def arithmetic(self, given: Matrices, row: int, column: int, precision: int) -> str:
        """The number and its partner, by cosine and sine of the angle."""
        partner, pair, sign = self._pair(given, column)
        number, other = (factor_at(given, self.left, row, each, precision) for each in (column, partner))
        angle = written(given[self.angles][row, pair], precision)
        return f"{number}×cos({angle}) {sign.replace('-', '−')} {other}×sin({angle})"

    def formula(self, at: Addresses, given: Matrices, row: int, column: int) -> str:
        """COS and SIN of the angle's cell."""
        partner, pair, sign = self._pair(given, column)
        number, other = (at.cell(self.left, row, each) for each in (column, partner))
        angle = at.cell(self.angles, row, pair)
        return f"{number}*COS({angle}){sign}{other}*SIN({angle})"

    def _pair(self, given: Matrices, column: int) -> tuple[int, int, str]:
        """A column's partner, the angle that both share, and the sign of the partner's part."""
        half = given[self.angles].shape[1]
        return (column + half, column, "-") if column < half else (column - half, column - half, "+")
