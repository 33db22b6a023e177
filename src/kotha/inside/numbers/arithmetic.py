"""What made one number: the arithmetic of a cell, as lines that can be checked with a pencil.

Each operation knows which matrices it reads and, for one cell, which of their rows and columns; it writes the lines of
arithmetic that give the cell, in double precision from the numbers that the model really had. A cell that takes several
steps (a norm, a turn by its place, a softmax) has a line for each. Whatever the model computed in one fused kernel must
come out the same, up to rounding; tests hold every cell of every family to it.

The worksheet's operations (``worksheet/operations.py``) compute whole matrices of one head for paper; these explain
single cells of a whole model and compute nothing that was not there.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from torch import Tensor

_GELU_SLOPE, _GELU_BEND = math.sqrt(2 / math.pi), 0.044715
BENDS: dict[str, Callable[[float], float]] = {
    "relu": lambda x: max(x, 0.0),
    "gelu": lambda x: x * 0.5 * (1 + math.erf(x / math.sqrt(2))),
    "gelu-tanh": lambda x: x * 0.5 * (1 + math.tanh(_GELU_SLOPE * (x + _GELU_BEND * x**3))),
    "silu": lambda x: x / (1 + math.exp(-x)),
}


@dataclass(frozen=True)
class CellLine:
    """One line of arithmetic. ``kind`` says how the terms make the value:

    ``sum`` products of each term's factors, added · ``mean`` the same over their count · ``root`` of that mean plus a
    constant · ``over`` the first by the second · ``powers`` e^(a − b) of each, added · ``largest`` · ``hidden`` −∞, or
    0 after the softmax · a bend by its name (``relu``, ``gelu``, ``gelu-tanh``, ``silu``).
    """

    gives: str  # what the line makes: product, turned, mean, spread, share, …
    kind: str
    terms: tuple[tuple[float, ...], ...]
    value: float
    constant: float = 0.0  # the ε under a root


@dataclass(frozen=True)
class CellSource:
    """Which part of a matrix a cell was made from: a cell, or where row or column is left out, a whole line."""

    site: str
    row: int | None = None
    column: int | None = None
    head: int | None = None


@dataclass(frozen=True)
class Recipe:
    """What made a cell."""

    sources: tuple[CellSource, ...]
    lines: tuple[CellLine, ...]


@dataclass(frozen=True)
class Entry:
    """A matrix that was there in a pass: (rows, columns), or one for each head."""

    site: str
    values: Tensor  # (T, C), or (n, T, C)
    rows: str  # the line of pieces that its rows are, or what else they count
    columns: str
    operation: "CellOperation | None" = None  # None: given, as weights and pixels are
    heads: tuple[int, ...] = ()
    places: tuple[int, ...] = ()  # where each head's matrix stands; heads that share keys share a place

    def matrix(self, head: int | None = None) -> Tensor:
        """The matrix of a head, or the one that there is."""
        return self.values[self.places[self.heads.index(head or 0)]] if self.heads else self.values

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns."""
        return int(self.values.shape[-2]), int(self.values.shape[-1])


Entries = Mapping[str, Entry]


class CellOperation(Protocol):
    """What makes a matrix from others."""

    @property
    def name(self) -> str:
        """How it is called."""

    @property
    def operands(self) -> tuple[str, ...]:
        """The sites that it reads."""

    def recipe(self, of: Entries, head: int | None, row: int, column: int) -> Recipe:
        """What made one cell."""


def _row(entry: Entry, head: int | None, row: int) -> list[float]:
    values: list[float] = entry.matrix(head)[row].double().tolist()
    return values


def _column(entry: Entry, head: int | None, column: int) -> list[float]:
    values: list[float] = entry.matrix(head)[:, column].double().tolist()
    return values


def _cell(entry: Entry, head: int | None, row: int, column: int) -> float:
    return float(entry.matrix(head)[row, column])


def _own(entry: Entry, head: int | None) -> int | None:
    return head if entry.heads else None


def summed(gives: str, terms: Sequence[tuple[float, ...]]) -> CellLine:
    """Products, added up.

    >>> summed("product", [(2.0, 3.0), (1.0, -1.0)]).value
    5.0
    """
    return CellLine(gives, "sum", tuple(terms), math.fsum(math.prod(term) for term in terms))


@dataclass(frozen=True)
class RowTimesColumn:
    """A row of one matrix times a column of another, and a bias where there is one."""

    left: str
    right: str
    bias: str | None = None
    name = "product"

    @property
    def operands(self) -> tuple[str, ...]:
        """Both factors, and the bias."""
        return (self.left, self.right) + (() if self.bias is None else (self.bias,))

    def recipe(self, of: Entries, head: int | None, row: int, column: int) -> Recipe:
        """Pairs along the row and the column."""
        left, right = of[self.left], of[self.right]
        terms: list[tuple[float, ...]] = list(zip(_row(left, head, row), _column(right, head, column), strict=True))
        sources = [
            CellSource(self.left, row, None, _own(left, head)),
            CellSource(self.right, None, column, _own(right, head)),
        ]
        if self.bias is not None:
            bias = of[self.bias]
            terms.append((_cell(bias, head, 0, column),))
            sources.append(CellSource(self.bias, 0, column, _own(bias, head)))
        return Recipe(tuple(sources), (summed("product", terms),))


@dataclass(frozen=True)
class RowTimesRow:
    """A query times a key, over the root of their width."""

    left: str
    right: str
    name = "score"

    @property
    def operands(self) -> tuple[str, ...]:
        """Queries and keys."""
        return self.left, self.right

    def recipe(self, of: Entries, head: int | None, row: int, column: int) -> Recipe:
        """Pairs along two rows, then the division."""
        left, right = of[self.left], of[self.right]
        product = summed("product", list(zip(_row(left, head, row), _row(right, head, column), strict=True)))
        root = math.sqrt(len(product.terms))
        scaled = CellLine("score", "over", ((product.value, root),), product.value / root)
        sources = (CellSource(self.left, row, None, head), CellSource(self.right, column, None, head))
        return Recipe(sources, (product, scaled))


@dataclass(frozen=True)
class Added:
    """The same cell of several matrices, added; each may be multiplied first."""

    operands: tuple[str, ...]
    factors: tuple[float, ...] = ()
    name = "sum"

    def recipe(self, of: Entries, head: int | None, row: int, column: int) -> Recipe:
        """A term for each."""
        cells = [_cell(of[site], None, row, column) for site in self.operands]
        factors = self.factors or (1.0,) * len(cells)
        terms = [(cell,) if factor == 1 else (cell, factor) for cell, factor in zip(cells, factors, strict=True)]
        sources = tuple(CellSource(site, row, column) for site in self.operands)
        return Recipe(sources, (summed("sum", terms),))


@dataclass(frozen=True)
class Copied:
    """A number that stands elsewhere too; ``find`` says in which matrix, head, row and column."""

    operands: tuple[str, ...]
    find: Callable[[int, int], CellSource]
    name: str = "copy"

    def recipe(self, of: Entries, head: int | None, row: int, column: int) -> Recipe:
        """The one cell."""
        source = self.find(row, column)
        assert source.row is not None and source.column is not None, "a cell is copied from a cell"
        asked = head if source.head is None and of[source.site].heads else source.head
        source = CellSource(source.site, source.row, source.column, asked)
        assert source.row is not None and source.column is not None, "as above"
        value = _cell(of[source.site], asked, source.row, source.column)
        return Recipe((source,), (CellLine("copy", "sum", ((value,),), value),))


def same(site: str) -> Copied:
    """The same cell of another matrix."""
    return Copied((site,), lambda row, column: CellSource(site, row, column))


def looked_up(table: str, ids: Sequence[int]) -> Copied:
    """The row of a table that an id names."""
    return Copied((table,), lambda row, column: CellSource(table, ids[row], column), "lookup")


@dataclass(frozen=True)
class Normed:
    """A row brought to one size (RMSNorm), or also to a mean of zero (LayerNorm); then a gain, and a bias."""

    of_site: str
    gain: str
    bias: str | None
    eps: float
    name = "norm"

    @property
    def operands(self) -> tuple[str, ...]:
        """What is normed, and by which learned numbers."""
        return (self.of_site, self.gain) + (() if self.bias is None else (self.bias,))

    def recipe(self, of: Entries, head: int | None, row: int, column: int) -> Recipe:
        """Mean where there is one, spread, then the cell."""
        entry = of[self.of_site]
        numbers, lines = _row(entry, head, row), []
        width = len(numbers)
        if self.bias is not None:
            mean = math.fsum(numbers) / width
            lines.append(CellLine("mean", "mean", tuple((each,) for each in numbers), mean))
            numbers = [each - mean for each in numbers]
            lines.append(CellLine("centred", "sum", ((numbers[column] + mean,), (-mean,)), numbers[column]))
        spread = math.sqrt(math.fsum(each * each for each in numbers) / width + self.eps)
        lines.append(CellLine("spread", "root", tuple((each, each) for each in numbers), spread, self.eps))
        unit = numbers[column] / spread
        lines.append(CellLine("unit", "over", ((numbers[column], spread),), unit))
        gain = _cell(of[self.gain], None, 0, column)
        terms: list[tuple[float, ...]] = [(unit, gain)]
        sources = [CellSource(self.of_site, row, None, _own(entry, head)), CellSource(self.gain, 0, column)]
        if self.bias is not None:
            terms.append((_cell(of[self.bias], None, 0, column),))
            sources.append(CellSource(self.bias, 0, column))
        return Recipe(tuple(sources), (*lines, summed("normed", terms)))


@dataclass(frozen=True)
class Rotated:
    """Rotary positions: a number and its partner, turned by the angle of the place."""

    of_site: str
    cosines: str
    sines: str
    name = "turn"

    @property
    def operands(self) -> tuple[str, ...]:
        """What is turned, and by what."""
        return self.of_site, self.cosines, self.sines

    def recipe(self, of: Entries, head: int | None, row: int, column: int) -> Recipe:
        """First halves lose, second halves gain."""
        half = of[self.cosines].shape[1]
        partner, pair, sign = (column + half, column, -1.0) if column < half else (column - half, column - half, 1.0)
        entry = of[self.of_site]
        cos, sin = (_cell(of[site], None, row, pair) for site in (self.cosines, self.sines))
        terms = [(_cell(entry, head, row, column), cos), (_cell(entry, head, row, partner), sign * sin)]
        sources = (
            CellSource(self.of_site, row, column, head),
            CellSource(self.of_site, row, partner, head),
            CellSource(self.cosines, row, pair),
            CellSource(self.sines, row, pair),
        )
        return Recipe(sources, (summed("turned", terms),))


@dataclass(frozen=True)
class Masked:
    """A score, or −∞ where nobody may look."""

    scores: str
    site: str
    name = "mask"

    @property
    def operands(self) -> tuple[str, ...]:
        """The scores."""
        return (self.scores,)

    def recipe(self, of: Entries, head: int | None, row: int, column: int) -> Recipe:
        """The score itself, or nothing."""
        value = _cell(of[self.site], head, row, column)
        score = _cell(of[self.scores], head, row, column)
        line = CellLine("masked", "sum", ((score,),), score)
        if value == -math.inf:
            line = CellLine("masked", "hidden", (), -math.inf)
        return Recipe((CellSource(self.scores, row, column, head),), (line,))


@dataclass(frozen=True)
class Softmaxed:
    """e to each number of a row, as a share of their sum."""

    of_site: str
    name = "softmax"

    @property
    def operands(self) -> tuple[str, ...]:
        """What is made shares of."""
        return (self.of_site,)

    def recipe(self, of: Entries, head: int | None, row: int, column: int) -> Recipe:
        """The largest, which keeps e^ in bounds; the sum of powers; the share."""
        numbers = _row(of[self.of_site], head, row)
        source = (CellSource(self.of_site, row, None, _own(of[self.of_site], head)),)
        if numbers[column] == -math.inf:
            return Recipe(source, (CellLine("share", "hidden", (), 0.0),))
        seen = [each for each in numbers if each != -math.inf]
        most = max(seen)
        total = math.fsum(math.exp(each - most) for each in seen)
        power = math.exp(numbers[column] - most)
        lines = (
            CellLine("largest", "largest", tuple((each,) for each in seen), most),
            CellLine("total", "powers", tuple((each, most) for each in seen), total),
            CellLine("power", "powers", ((numbers[column], most),), power),
            CellLine("share", "over", ((power, total),), power / total),
        )
        return Recipe(source, lines)


@dataclass(frozen=True)
class Bent:
    """A number through an activation function; multiplied by another where a gate has one (SwiGLU)."""

    of_site: str
    bend: str
    times: str | None = None
    name = "activation"

    @property
    def operands(self) -> tuple[str, ...]:
        """What is bent, and what it lets through."""
        return (self.of_site,) + (() if self.times is None else (self.times,))

    def recipe(self, of: Entries, head: int | None, row: int, column: int) -> Recipe:
        """The bend, then the product."""
        number = _cell(of[self.of_site], None, row, column)
        bent = BENDS[self.bend](number)
        lines = [CellLine("bent", self.bend, ((number,),), bent)]
        sources = [CellSource(self.of_site, row, column)]
        if self.times is not None:
            lines.append(summed("gated", [(bent, _cell(of[self.times], None, row, column))]))
            sources.append(CellSource(self.times, row, column))
        return Recipe(tuple(sources), tuple(lines))


@dataclass(frozen=True)
class MixedByWeights:
    """Values, each times the weight of its position; of a silent head nothing is left."""

    weights: str
    values: str
    silent: tuple[int, ...] = ()
    name = "mix"

    @property
    def operands(self) -> tuple[str, ...]:
        """Weights and values."""
        return self.weights, self.values

    def recipe(self, of: Entries, head: int | None, row: int, column: int) -> Recipe:
        """Pairs along the row of weights and the column of values."""
        pairs = zip(_row(of[self.weights], head, row), _column(of[self.values], head, column), strict=True)
        mixed = summed("mixed", list(pairs))
        sources = (CellSource(self.weights, row, None, head), CellSource(self.values, None, column, head))
        lines = (mixed,) if head not in self.silent else (mixed, summed("silenced", [(mixed.value, 0.0)]))
        return Recipe(sources, lines)
