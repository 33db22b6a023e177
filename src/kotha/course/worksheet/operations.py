"""The operations used in worksheet steps.

An operation computes a matrix in double precision, writes the arithmetic for one cell as on paper, and writes the same
cell as a spreadsheet formula (with templates from ``sheets.json``). Operands are names of matrices; the callers supply
the matrices and their cells in a spreadsheet.

Most operations read one number from each operand, or one row from the first, so templates are sufficient. An operand
with a single row or column is broadcast, as in NumPy.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kotha.course.data import data_file

FILE = Path(__file__).with_name("sheets.json")
MINUS_INFINITY = "−∞"
Array = NDArray[np.float64]
Matrices = Mapping[str, Array]
# An operand, and the row and column of the cell that is read from it.
CellIndex = tuple[int, int, int]
_MOST_LEADING_ZEROS = 4


def decimals_for(value: float, precision: int) -> int:
    """Return the number of decimals to show: ``precision``, plus up to 4 for small numbers.

    If a number were shown to only one significant digit, products and quotients computed from it might not have a
    single correct digit. Numbers too small to show even with these decimals are rounding errors.

    >>> decimals_for(1.5, 4), decimals_for(0.0021, 4), decimals_for(1e-17, 4), decimals_for(0.0021, 0)
    (4, 6, 8, 0)
    """
    if not precision or not value or not math.isfinite(value):
        return precision
    leading_zeros = max(0, -1 - math.floor(math.log10(abs(value))))
    return precision + min(leading_zeros, _MOST_LEADING_ZEROS)


def written(value: float, precision: int) -> str:
    """Format a number with the decimals from ``decimals_for``, a real minus sign, and −∞ for masked scores.

    >>> written(0.5, 4), written(-0.33333, 4), written(0.00207654, 4), written(-math.inf, 4), written(1e-12, 4)
    ('0.5', '−0.3333', '0.002077', '−∞', '0.0')
    """
    return with_decimals(value, decimals_for(value, precision))


def with_decimals(value: float, decimals: int) -> str:
    """Format a number with at most ``decimals`` decimals, and at least one.

    >>> with_decimals(0.00207654, 4), with_decimals(-2.0, 4)
    ('0.0021', '−2.0')
    """
    if value == -math.inf:
        return MINUS_INFINITY
    integer, _, fraction = f"{value:.{decimals}f}".partition(".")
    text = f"{integer}.{fraction.rstrip('0') or '0'}" if decimals else integer
    return text.replace("-", "−") if float(text) else text.removeprefix("-")


def _factor(value: float, precision: int) -> str:
    """Format a number in a sum or product, with brackets if negative."""
    text = written(value, precision)
    return f"({text})" if text.startswith("−") else text


def ends_of(terms: list[str], ends: int = 3) -> list[str]:
    """Return the terms or, if there are many, only the first and last few.

    >>> " + ".join(ends_of([str(n) for n in range(9)], ends=2))
    '0 + 1 + … + 7 + 8'
    """
    return [*terms[:ends], "…", *terms[-ends:]] if len(terms) > 2 * ends + 2 else terms


@dataclass(frozen=True)
class _OnPaper:
    """One operand in a cell's arithmetic: ``{}`` plain, ``{:×}`` as a factor, ``{:g}`` unrounded, or its row."""

    name: str
    number: float
    numbers: list[float]
    precision: int

    def __format__(self, way: str) -> str:
        if way == "g":
            return f"{self.number:g}"
        return (_factor if way == "×" else written)(self.number, self.precision)

    @property
    def sum(self) -> str:
        return self._each("{:×}", " + ")

    @property
    def squares(self) -> str:
        return self._each("{:×}²", " + ")

    @property
    def list(self) -> str:
        return self._each("{}", ", ")

    @property
    def width(self) -> int:
        return len(self.numbers)

    def _each(self, way: str, between: str) -> str:
        """Format all numbers in the row in one way."""
        return between.join(ends_of([way.format(replace(self, number=number)) for number in self.numbers]))


def _same_cell(operands: list[Array], row: int, column: int) -> tuple[int, list[CellIndex]]:
    """Return the same cell in every operand, with broadcasting."""
    return 0, [(n, min(row, len(each) - 1), min(column, each.shape[1] - 1)) for n, each in enumerate(operands)]


def _pair(operands: list[Array], row: int, column: int) -> tuple[int, list[CellIndex]]:
    """Return the cells of a number, the angle for its pair, and its partner in the other half."""
    half = operands[1].shape[1]
    return column // half, [(0, row, column), (1, row, column % half), (0, row, (column + half) % (2 * half))]


def _beside(operands: list[Array], row: int, column: int) -> tuple[int, list[CellIndex]]:
    """Return the source of a cell in concatenated matrices."""
    for n, each in enumerate(operands):
        if column < each.shape[1]:
            return 0, [(n, row, column)]
        column -= each.shape[1]
    raise AssertionError("column beyond the last matrix")


def _wave(operands: list[Array], row: int, column: int) -> tuple[int, list[CellIndex]]:
    return column % 2, [(0, row, column // 2)]


def _turn(left: Array, angles: Array) -> Array:
    first, second = np.split(left, 2, axis=1)
    cos, sin = np.cos(angles), np.sin(angles)
    return np.concatenate((first * cos - second * sin, second * cos + first * sin), axis=1)


def _waves(angles: Array) -> Array:
    return np.stack((np.sin(angles), np.cos(angles)), axis=-1).reshape(len(angles), -1)


# Keys are the kinds of operations, which pages and spreadsheets also use.
COMPUTE: dict[str, Callable[..., Array]] = {
    # (T, C) times (C, D) -> (T, D); by rows with the right one as (D, C).
    "product": np.matmul,
    "product_by_rows": lambda left, right: left @ right.T,
    # From vectors to queries, keys and values. A bias added to every row.
    "add_row": np.add,
    # The size of each row, with ε to keep it above zero: (T, D) and (1, 1) -> (T, 1).
    "root_mean_square": lambda of, eps: np.sqrt(np.square(of).mean(axis=1, keepdims=True) + eps),
    # Each row divided by its size, times a learned gain: (T, D), (T, 1), (1, D) -> (T, D).
    "normed": lambda x, size, gain: x / size * gain,
    # Rotary positions: each pair (i, i + D/2) rotated by its angle: (T, D) and (T, D/2) -> (T, D).
    "turned": _turn,
    # From queries and keys to weights. Every number divided by the root of a width: (T, S) and (1, 1) -> (T, S).
    "over_root": lambda left, width: left / np.sqrt(width),
    # A spreadsheet has no infinity, so masked cells hold text, which MAX and SUM ignore.
    "masked": lambda left, mask: np.where(mask == 1, left, -math.inf),
    # The largest number, and the sum, of each row: (T, S) -> (T, 1).
    "largest": lambda of: of.max(axis=1, keepdims=True),
    "row_sums": lambda of: of.sum(axis=1, keepdims=True),
    "powers": np.exp,
    # Minus the row's largest number to avoid overflow: (T, S) and (T, 1) -> (T, S).
    "shifted_powers": lambda of, most: np.exp(of - most),
    # Each number divided by its row's sum, so that every row sums to 1.
    "shares": np.divide,
    # Around attention, and to the vocabulary. Matrices concatenated: (T, D), (T, D), … -> (T, all columns).
    "joined": lambda *matrices: np.concatenate(matrices, axis=1),
    "added": np.add,
    # The mean of each row, and each number minus its row's mean: (T, C) -> (T, 1), (T, C) and (T, 1) -> (T, C).
    "means": lambda of: of.mean(axis=1, keepdims=True),
    "less": np.subtract,
    "kept_positive": lambda of: np.maximum(of, 0),
    # Counted from 1: (T, V) -> (T, 1).
    "column_of_largest": lambda of: of.argmax(axis=1, keepdims=True).astype(np.float64) + 1,
    # Sinusoidal positions. The frequency of each pair, from its number and the width: (1, C/2) and (1, 1) -> (1, C/2).
    "speeds": lambda pairs, width: 10_000.0 ** (-2 * pairs / width),
    # The sine and the cosine of each angle, interleaved: (T, C/2) -> (T, C).
    "waves": _waves,
}
# The template for a cell, and the cells that it uses if they are not the same cell in every operand.
_READS = {"turned": _pair, "joined": _beside, "waves": _wave}


@dataclass(frozen=True)
class Operation:
    """An operation: its kind, and the names of its operands."""

    kind: str
    operands: tuple[str, ...]

    @property
    def is_product(self) -> bool:
        """Whether this is a matrix product."""
        return self.kind.startswith("product")

    def compute(self, given: Matrices) -> Array:
        """Compute the matrix."""
        return COMPUTE[self.kind](*(given[name] for name in self.operands))

    def factors(self, given: Matrices, row: int, column: int) -> tuple[Array, Array]:
        """Return the two lines that are multiplied for one cell in a product."""
        left, right = (given[name] for name in self.operands)
        return left[row], (right.T if self.kind == "product" else right)[column]

    def cell(self, given: Matrices, row: int, column: int, form: str, write: Callable[[str, int, int], Any]) -> str:
        """Fill in the template for a cell in a ``form``; ``write`` formats each operand by name, row and column."""
        way, places = _READS.get(self.kind, _same_cell)([given[name] for name in self.operands], row, column)
        filling = [write(self.operands[n], down, across) for n, down, across in places]
        template: str = data_file(FILE)["operations"][self.kind][form][way]
        return template.format(*filling)

    def arithmetic(self, given: Matrices, row: int, column: int, precision: int) -> str:
        """Write the arithmetic for one cell as on paper."""
        if self.is_product:
            pairs = zip(*(line.tolist() for line in self.factors(given, row, column)), strict=True)
            return " + ".join(ends_of([f"{_factor(a, precision)}×{_factor(b, precision)}" for a, b in pairs]))

        def write(name: str, r: int, c: int) -> _OnPaper:
            return _OnPaper(f"{name}[{r + 1},{c + 1}]", given[name][r, c], given[name][r].tolist(), precision)

        return self.cell(given, row, column, "paper", write)
