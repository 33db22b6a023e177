"""What a step of the sheet does to the matrices before it, in three readings that belong together.

Each operation computes its matrix (in double precision), writes the arithmetic of one cell as one would on paper, and
gives the same cell as a spreadsheet formula. Its operands are names of matrices; who holds the matrices, and in which
cells of a spreadsheet they stand, is not known here.

Most read one number of each operand, or one row of the first: a table says what they do, with a template for paper and
one for the spreadsheet. As NumPy does, an operand of one row or one column lends it to all.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

MINUS_INFINITY = "−∞"
Array = NDArray[np.float64]
Matrices = Mapping[str, Array]
_MOST_LEADING_ZEROS = 4
# Up to here a spreadsheet spells a sum out; beyond, a function over ranges does it.
SPELLED_OUT = 16


def decimals_for(value: float, precision: int) -> int:
    """How many decimals a number needs: so many, and a small one more, for as many digits that count.

    Divided or multiplied, a number that kept one digit would give a result with none that is right. What is smaller
    still, beside the others, is nothing: it comes of rounding.

    >>> decimals_for(1.5, 4), decimals_for(0.0021, 4), decimals_for(1e-17, 4), decimals_for(0.0021, 0)
    (4, 6, 8, 0)
    """
    if not precision or not value or not math.isfinite(value):
        return precision
    leading_zeros = max(0, -1 - math.floor(math.log10(abs(value))))
    return precision + min(leading_zeros, _MOST_LEADING_ZEROS)


def written(value: float, precision: int) -> str:
    """A number as it stands in arithmetic, by ``decimals_for``; a true minus, and −∞ for what is hidden.

    >>> written(0.5, 4), written(-0.33333, 4), written(0.00207654, 4), written(-math.inf, 4), written(1e-12, 4)
    ('0.5', '−0.3333', '0.002077', '−∞', '0.0')
    """
    return with_decimals(value, decimals_for(value, precision))


def with_decimals(value: float, decimals: int) -> str:
    """A number with at most so many decimals, and at least one.

    >>> with_decimals(0.00207654, 4), with_decimals(-2.0, 4)
    ('0.0021', '−2.0')
    """
    if value == -math.inf:
        return MINUS_INFINITY
    whole, _, fraction = f"{value:.{decimals}f}".partition(".")
    text = f"{whole}.{fraction.rstrip('0') or '0'}" if decimals else whole
    return text.replace("-", "−") if float(text) else text.removeprefix("-")


def factor(value: float, precision: int) -> str:
    """A number inside a sum or product: a negative one in brackets.

    >>> factor(-0.5, 2)
    '(−0.5)'
    """
    text = written(value, precision)
    return f"({text})" if text.startswith("−") else text


def sum_of(terms: list[str], ends: int = 3) -> str:
    """Terms with plus signs between them; of a long sum the first and the last few.

    >>> sum_of([str(n) for n in range(9)], ends=2)
    '0 + 1 + … + 7 + 8'
    """
    return " + ".join(ends_of(terms, ends))


def ends_of(terms: list[str], ends: int = 3) -> list[str]:
    """Terms, or of many the first and the last few."""
    return [*terms[:ends], "…", *terms[-ends:]] if len(terms) > 2 * ends + 2 else terms


class Addresses(Protocol):
    """Where the matrices stand in a spreadsheet."""

    def cell(self, name: str, row: int, column: int) -> str:
        """The address of a cell, such as ``C7``."""

    def row(self, name: str, row: int) -> str:
        """The address of a whole row, such as ``C7:F7``."""

    def column(self, name: str, column: int) -> str:
        """The address of a whole column as a row of its own, where the matrix was laid out turned."""


@dataclass(frozen=True)
class _OnPaper:
    """One operand of a cell, written: ``{}`` as it is, ``{:×}`` as a factor, ``{:g}`` unrounded, or its whole row."""

    number: float
    numbers: list[float]
    precision: int

    def __format__(self, way: str) -> str:
        if way == "g":
            return f"{self.number:g}"
        return (factor if way == "×" else written)(self.number, self.precision)

    @property
    def sum(self) -> str:
        return sum_of([factor(each, self.precision) for each in self.numbers])

    @property
    def squares(self) -> str:
        return sum_of([f"{factor(each, self.precision)}²" for each in self.numbers])

    @property
    def list(self) -> str:
        return ", ".join(ends_of([written(each, self.precision) for each in self.numbers]))

    @property
    def width(self) -> int:
        return len(self.numbers)


@dataclass(frozen=True)
class _InCells:
    """One operand of a cell, by its address: ``{}`` its cell, ``{.row}`` its whole row."""

    cell: str
    row: str
    width: int

    def __format__(self, _way: str) -> str:
        return self.cell


def _lent(matrix: Array, row: int, column: int) -> tuple[int, int]:
    """Where a matrix has its number for a cell: one row, or one column, is there for all."""
    return min(row, matrix.shape[0] - 1), min(column, matrix.shape[1] - 1)


@dataclass(frozen=True)
class Cellwise:
    """What can be said with a template."""

    kind: str  # by which others, such as a page that computes along, know it
    computed: Callable[..., Array]
    on_paper: str
    in_cells: str
    operands: tuple[str, ...] = ()

    def __call__(self, *operands: str) -> "Cellwise":
        """The same of some matrices."""
        return Cellwise(self.kind, self.computed, self.on_paper, self.in_cells, operands)

    def compute(self, given: Matrices) -> Array:
        """The whole matrix."""
        return self.computed(*(given[name] for name in self.operands))

    def arithmetic(self, given: Matrices, row: int, column: int, precision: int) -> str:
        """The template for paper, filled."""
        read = [(given[name], *_lent(given[name], row, column)) for name in self.operands]
        return self.on_paper.format(*(_OnPaper(m[r, c], m[r].tolist(), precision) for m, r, c in read))

    def formula(self, at: Addresses, given: Matrices, row: int, column: int) -> str:
        """The template for a spreadsheet, filled."""
        read = [(name, given[name].shape[1], *_lent(given[name], row, column)) for name in self.operands]
        return self.in_cells.format(*(_InCells(at.cell(n, r, c), at.row(n, r), width) for n, width, r, c in read))


# -- from a token's vector to its query, key and value ----------------------------------------------------------------

# The same row (a bias) added to every row: (T, D) and (1, D) -> (T, D).
add_row = Cellwise("add_row", np.add, "{:×} + {:×}", "{}+{}")
# The size of each row, with the little (ε) that keeps it above zero: (T, D) and (1, 1) -> (T, 1).
root_mean_square = Cellwise(
    "root_mean_square",
    lambda of, eps: np.sqrt(np.square(of).mean(axis=1, keepdims=True) + eps),
    "√(({0.squares})/{0.width} + {1:g})",
    "SQRT(SUMSQ({0.row})/{0.width}+{1})",
)
# Each row over its size, times a learned gain: (T, D), (T, 1), (1, D) -> (T, D).
normed = Cellwise("normed", lambda left, size, gain: left / size * gain, "{} / {} × {:×}", "{}/{}*{}")

# -- from queries and keys to weights ---------------------------------------------------------------------------------

# Every number over the root of a width: (T, S) and (1, 1) -> (T, S).
over_root = Cellwise("over_root", lambda left, width: left / np.sqrt(width), "{} / √{:g}", "{}/SQRT({})")
# −∞ where the mask has a 0: (T, S) and (T, S) -> (T, S). A spreadsheet has no infinity, so a hidden cell is a word
# there, which MAX and SUM pass over.
masked_scores = Cellwise(
    "masked", lambda left, mask: np.where(mask == 1, left, -math.inf), "{} (mask {:g})", 'IF({1}=1,{0},"−∞")'
)
# The largest number, and the sum, of each row: (T, S) -> (T, 1).
largest = Cellwise("largest", lambda of: of.max(axis=1, keepdims=True), "max({0.list})", "MAX({0.row})")
row_sums = Cellwise("row_sums", lambda of: of.sum(axis=1, keepdims=True), "{0.sum}", "SUM({0.row})")
# e to each number: (T, S) -> (T, S); hidden ones become 0.
powers = Cellwise("powers", np.exp, "e^{:×}", "IF(ISNUMBER({0}),EXP({0}),0)")
# e to each number less its row's largest, so that nothing overflows: (T, S) and (T, 1) -> (T, S).
shifted_powers = Cellwise(
    "shifted_powers", lambda of, most: np.exp(of - most), "e^({} − {:×})", "IF(ISNUMBER({0}),EXP({0}-{1}),0)"
)
# Each number over its row's sum: (T, S) and (T, 1) -> (T, S); every row then sums to one.
shares = Cellwise("shares", np.divide, "{} / {}", "{}/{}")


# -- around attention, and on to the vocabulary -----------------------------------------------------------------------

# What went in, added to what came out, cell by cell: twice (T, C) -> (T, C).
added = Cellwise("added", np.add, "{:×} + {:×}", "{}+{}")
# The mean of each row, and each number less its row's: (T, C) -> (T, 1), (T, C) and (T, 1) -> (T, C).
means = Cellwise("means", lambda of: of.mean(axis=1, keepdims=True), "({0.sum})/{0.width}", "AVERAGE({0.row})")
less = Cellwise("less", np.subtract, "{} − {:×}", "{}-{}")
# What is negative becomes 0 (ReLU): (T, C) -> (T, C).
kept_positive = Cellwise("kept_positive", lambda of: np.maximum(of, 0), "max(0, {})", "MAX(0,{})")
# In which column the largest number of each row stands, counted from 1: (T, V) -> (T, 1).
column_of_largest = Cellwise(
    "column_of_largest",
    lambda of: of.argmax(axis=1, keepdims=True).astype(np.float64) + 1,
    "the column of max({0.list})",
    "MATCH(MAX({0.row}),{0.row},0)",
)
# How fast each pair of positions turns, from the number of the pair and the width: (1, C/2) and (1, 1) -> (1, C/2).
speeds_of_pairs = Cellwise(
    "speeds",
    lambda pairs, width: 10_000.0 ** (-2 * pairs / width),
    "1 / 10000^(2×{:g}/{:g})",
    "1/10000^(2*{}/{})",
)

# -- what reads more than a cell or a row of each ---------------------------------------------------------------------


@dataclass(frozen=True)
class Product:
    """A matrix product: (T, C) times (C, D) -> (T, D); by rows of the right, (D, C), where that is to be turned."""

    operands: tuple[str, str]
    by_rows: bool = False

    @property
    def kind(self) -> str:
        """By which others know it."""
        return "product_by_rows" if self.by_rows else "product"

    def compute(self, given: Matrices) -> Array:
        """Rows times columns, or rows times rows."""
        left, right = (given[name] for name in self.operands)
        product: Array = left @ (right.T if self.by_rows else right)
        return product

    def arithmetic(self, given: Matrices, row: int, column: int, precision: int) -> str:
        """Each product of two lines of numbers, added up."""
        left, right = (given[name] for name in self.operands)
        pairs = zip(left[row].tolist(), (right if self.by_rows else right.T)[column].tolist(), strict=True)
        return sum_of([f"{factor(a, precision)}×{factor(b, precision)}" for a, b in pairs])

    def formula(self, at: Addresses, given: Matrices, row: int, column: int) -> str:
        """A sum of products, spelled out while it is short."""
        left, right = self.operands
        n_inner = given[left].shape[1]
        if n_inner > SPELLED_OUT:
            return f"SUMPRODUCT({at.row(left, row)},{(at.row if self.by_rows else at.column)(right, column)})"
        places = [(column, inner) if self.by_rows else (inner, column) for inner in range(n_inner)]
        return "+".join(f"{at.cell(left, row, inner)}*{at.cell(right, *at_)}" for inner, at_ in enumerate(places))


@dataclass(frozen=True)
class Turned:
    """Rotary positions: each pair (i, i + D/2) turned by its angle: (T, D) and (T, D/2) -> (T, D)."""

    operands: tuple[str, str]
    kind = "turned"

    def compute(self, given: Matrices) -> Array:
        """First halves lose, second halves gain."""
        left, angles = (given[name] for name in self.operands)
        first, second = np.split(left, 2, axis=1)
        cos, sin = np.cos(angles), np.sin(angles)
        return np.concatenate((first * cos - second * sin, second * cos + first * sin), axis=1)

    def arithmetic(self, given: Matrices, row: int, column: int, precision: int) -> str:
        """The number and its partner, by cosine and sine of the angle."""
        left, angles = (given[name] for name in self.operands)
        partner, pair, sign = self._pair(given, column)
        number, other = (factor(left[row, each], precision) for each in (column, partner))
        angle = written(angles[row, pair], precision)
        return f"{number}×cos({angle}) {sign.replace('-', '−')} {other}×sin({angle})"

    def formula(self, at: Addresses, given: Matrices, row: int, column: int) -> str:
        """COS and SIN of the angle's cell."""
        left, angles = self.operands
        partner, pair, sign = self._pair(given, column)
        angle = at.cell(angles, row, pair)
        return f"{at.cell(left, row, column)}*COS({angle}){sign}{at.cell(left, row, partner)}*SIN({angle})"

    def _pair(self, given: Matrices, column: int) -> tuple[int, int, str]:
        """A column's partner, the angle that both share, and the sign of the partner's part."""
        half = given[self.operands[1]].shape[1]
        return (column + half, column, "-") if column < half else (column - half, column - half, "+")


@dataclass(frozen=True)
class Joined:
    """Matrices side by side: (T, D) and (T, D) and so on -> (T, all of their columns)."""

    operands: tuple[str, ...]
    kind = "joined"

    def compute(self, given: Matrices) -> Array:
        """One behind the other, row by row."""
        return np.concatenate([given[name] for name in self.operands], axis=1)

    def arithmetic(self, given: Matrices, row: int, column: int, precision: int) -> str:
        """Where the number was."""
        name, at = self._source(given, column)
        return f"{name}[{row + 1},{at + 1}]"

    def formula(self, at: Addresses, given: Matrices, row: int, column: int) -> str:
        """The cell where it was."""
        name, place = self._source(given, column)
        return at.cell(name, row, place)

    def _source(self, given: Matrices, column: int) -> tuple[str, int]:
        for name in self.operands:
            width = given[name].shape[1]
            if column < width:
                return name, column
            column -= width
        raise AssertionError("a column beyond the last matrix")


@dataclass(frozen=True)
class Waves:
    """Sinusoidal positions: the sine and the cosine of each angle, one after the other: (T, C/2) -> (T, C)."""

    operands: tuple[str]
    kind = "waves"

    def compute(self, given: Matrices) -> Array:
        """Even columns are sines, odd ones cosines."""
        angles = given[self.operands[0]]
        return np.stack((np.sin(angles), np.cos(angles)), axis=-1).reshape(len(angles), -1)

    def arithmetic(self, given: Matrices, row: int, column: int, precision: int) -> str:
        """The sine or the cosine of the pair's angle."""
        angle = written(given[self.operands[0]][row, column // 2], precision)
        return f"{'cos' if column % 2 else 'sin'}({angle})"

    def formula(self, at: Addresses, given: Matrices, row: int, column: int) -> str:
        """SIN or COS of the angle's cell."""
        return f"{'COS' if column % 2 else 'SIN'}({at.cell(self.operands[0], row, column // 2)})"


Operation = Cellwise | Product | Turned | Joined | Waves
