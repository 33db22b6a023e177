"""What made one number: the arithmetic of a cell, as lines that can be checked with a pencil.

An operation has a name, the sites that it reads, and its lines of arithmetic for one cell, in double precision from
the numbers that the model really had. They take their numbers from ``Operands``, which notes what was read: a cell's
sources. A cell that takes several steps (a norm, a turn by its place, a softmax) has a line for each. Whatever the
model computed in one fused kernel must come out the same, up to rounding; tests hold every cell of every family to it.

The worksheet's operations (``worksheet/operations.py``) compute whole matrices of one head for paper; these explain
single cells of a whole model and compute nothing that was not there.
"""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

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


class Operands:
    """The matrices that a cell of one head is made from; what is read of them is noted."""

    def __init__(self, entries: Entries, head: int | None) -> None:
        self.entries, self.head = entries, head
        self.sources: list[CellSource] = []

    def _matrix(self, site: str, row: int | None, column: int | None, head: int | None = None) -> Tensor:
        if head is None and self.entries[site].heads:
            head = self.head
        self.sources.append(CellSource(site, row, column, head))
        return self.entries[site].matrix(head)

    def row(self, site: str, row: int) -> list[float]:
        """The numbers of a row."""
        values: list[float] = self._matrix(site, row, None)[row].double().tolist()
        return values

    def column(self, site: str, column: int) -> list[float]:
        """The numbers of a column."""
        values: list[float] = self._matrix(site, None, column)[:, column].double().tolist()
        return values

    def cell(self, site: str, row: int, column: int, head: int | None = None) -> float:
        """One number."""
        return float(self._matrix(site, row, column, head)[row, column])


# The lines of arithmetic that make the cell of a row and a column.
Lines = Callable[[Operands, int, int], Iterator[CellLine]]


@dataclass(frozen=True)
class CellOperation:
    """What makes a matrix from others."""

    name: str
    operands: tuple[str, ...]  # the sites that it reads
    lines: Lines

    def recipe(self, entries: Entries, head: int | None, row: int, column: int) -> Recipe:
        """What made the cell of a head, a row and a column."""
        operands = Operands(entries, head)
        lines = tuple(self.lines(operands, row, column))
        return Recipe(tuple(operands.sources), lines)


def summed(gives: str, terms: Sequence[tuple[float, ...]]) -> CellLine:
    """Products, added up.

    >>> summed("product", [(2.0, 3.0), (1.0, -1.0)]).value
    5.0
    """
    return CellLine(gives, "sum", tuple(terms), math.fsum(math.prod(term) for term in terms))


def divided(gives: str, number: float, by: float) -> CellLine:
    """One number over another."""
    return CellLine(gives, "over", ((number, by),), number / by)


def row_times_column(left: str, right: str, bias: str | None = None) -> CellOperation:
    """A row of one matrix times a column of another, and a bias where there is one."""

    def lines(of: Operands, row: int, column: int) -> Iterator[CellLine]:
        terms: list[tuple[float, ...]] = [*zip(of.row(left, row), of.column(right, column), strict=True)]
        if bias is not None:
            terms.append((of.cell(bias, 0, column),))
        yield summed("product", terms)

    return CellOperation("product", (left, right, *([] if bias is None else [bias])), lines)


def row_times_row(left: str, right: str) -> CellOperation:
    """A query times a key, over the root of their width."""

    def lines(of: Operands, row: int, column: int) -> Iterator[CellLine]:
        product = summed("product", list(zip(of.row(left, row), of.row(right, column), strict=True)))
        yield product
        yield divided("score", product.value, math.sqrt(len(product.terms)))

    return CellOperation("score", (left, right), lines)


def mixed_by_weights(weights: str, values: str, silent: tuple[int, ...] = ()) -> CellOperation:
    """Values, each times the weight of its position; of a silent head nothing is left."""

    def lines(of: Operands, row: int, column: int) -> Iterator[CellLine]:
        mixed = summed("mixed", list(zip(of.row(weights, row), of.column(values, column), strict=True)))
        yield mixed
        if of.head in silent:
            yield summed("silenced", [(mixed.value, 0.0)])

    return CellOperation("mix", (weights, values), lines)


def sum_of_cells(operands: tuple[str, ...], factors: tuple[float, ...] = ()) -> CellOperation:
    """The same cell of several matrices, added; each may be multiplied first."""

    def lines(of: Operands, row: int, column: int) -> Iterator[CellLine]:
        pairs = zip(operands, factors or (1.0,) * len(operands), strict=True)
        cells = ((of.cell(site, row, column), factor) for site, factor in pairs)
        yield summed("sum", [(cell,) if factor == 1 else (cell, factor) for cell, factor in cells])

    return CellOperation("sum", operands, lines)


def copied(operands: tuple[str, ...], find: Callable[[int, int], CellSource], name: str = "copy") -> CellOperation:
    """A number that stands elsewhere too; ``find`` says in which matrix, head, row and column."""

    def lines(of: Operands, row: int, column: int) -> Iterator[CellLine]:
        source = find(row, column)
        assert source.row is not None and source.column is not None, "a cell is copied from a cell"
        yield summed("copy", [(of.cell(source.site, source.row, source.column, source.head),)])

    return CellOperation(name, operands, lines)


def same(site: str) -> CellOperation:
    """The same cell of another matrix."""
    return copied((site,), lambda row, column: CellSource(site, row, column))


def looked_up(table: str, ids: Sequence[int]) -> CellOperation:
    """The row of a table that an id names."""
    return copied((table,), lambda row, column: CellSource(table, ids[row], column), "lookup")


def normed(site: str, gain: str, bias: str | None, eps: float) -> CellOperation:
    """A row brought to one size (RMSNorm), or also to a mean of zero (LayerNorm); then a gain, and a bias."""

    def lines(of: Operands, row: int, column: int) -> Iterator[CellLine]:
        numbers = of.row(site, row)
        if bias is not None:
            mean = math.fsum(numbers) / len(numbers)
            yield CellLine("mean", "mean", tuple((each,) for each in numbers), mean)
            number, numbers = numbers[column], [each - mean for each in numbers]
            yield CellLine("centred", "sum", ((number,), (-mean,)), numbers[column])
        spread = math.sqrt(math.fsum(each * each for each in numbers) / len(numbers) + eps)
        yield CellLine("spread", "root", tuple((each, each) for each in numbers), spread, eps)
        unit = divided("unit", numbers[column], spread)
        yield unit
        terms: list[tuple[float, ...]] = [(unit.value, of.cell(gain, 0, column))]
        yield summed("normed", terms if bias is None else [*terms, (of.cell(bias, 0, column),)])

    return CellOperation("norm", (site, gain, *([] if bias is None else [bias])), lines)


def rotated(site: str, cosines: str, sines: str) -> CellOperation:
    """Rotary positions: a number and its partner, turned by the angle of the place; first halves lose, second gain."""

    def lines(of: Operands, row: int, column: int) -> Iterator[CellLine]:
        half = of.entries[cosines].shape[1]
        partner, pair, sign = (column + half, column, -1.0) if column < half else (column - half, column - half, 1.0)
        number, other = (of.cell(site, row, each) for each in (column, partner))
        cos, sin = (of.cell(each, row, pair) for each in (cosines, sines))
        yield summed("turned", [(number, cos), (other, sign * sin)])

    return CellOperation("turn", (site, cosines, sines), lines)


def masked_score(scores: str, hidden: Callable[[int, int], bool]) -> CellOperation:
    """A score, or −∞ where nobody may look."""

    def lines(of: Operands, row: int, column: int) -> Iterator[CellLine]:
        score = of.cell(scores, row, column)
        yield CellLine("masked", "hidden", (), -math.inf) if hidden(row, column) else summed("masked", [(score,)])

    return CellOperation("mask", (scores,), lines)


def softmaxed(site: str) -> CellOperation:
    """e to each number of a row, as a share of their sum; the largest is taken off first, to keep e^ in bounds."""

    def lines(of: Operands, row: int, column: int) -> Iterator[CellLine]:
        numbers = of.row(site, row)
        if numbers[column] == -math.inf:
            yield CellLine("share", "hidden", (), 0.0)
            return
        seen = [each for each in numbers if each != -math.inf]
        most = max(seen)
        total = math.fsum(math.exp(each - most) for each in seen)
        power = math.exp(numbers[column] - most)
        yield CellLine("largest", "largest", tuple((each,) for each in seen), most)
        yield CellLine("total", "powers", tuple((each, most) for each in seen), total)
        yield CellLine("power", "powers", ((numbers[column], most),), power)
        yield divided("share", power, total)

    return CellOperation("softmax", (site,), lines)


def activated(site: str, bend: str, times: str | None = None) -> CellOperation:
    """A number through an activation function; multiplied by another where a gate has one (SwiGLU)."""

    def lines(of: Operands, row: int, column: int) -> Iterator[CellLine]:
        number = of.cell(site, row, column)
        bent = BENDS[bend](number)
        yield CellLine("bent", bend, ((number,),), bent)
        if times is not None:
            yield summed("gated", [(bent, of.cell(times, row, column))])

    return CellOperation("activation", (site, *([] if times is None else [times])), lines)
