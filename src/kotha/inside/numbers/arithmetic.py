"""The arithmetic of one matrix cell, as lines that can be checked by hand.

An operation has a name, the matrices that it reads, and a function that returns the lines of arithmetic for one cell,
computed in double precision from the model's actual numbers. This function reads its numbers through ``Cell``, which
records them as sources. A cell computed in several steps (a norm, a rotation, a softmax) has a line for each step. Up
to rounding, the result must equal what the model computed, even in a fused kernel; tests check every cell in every
architecture.

The worksheet's operations (``worksheet/operations.py``) compute all matrices of one head for printing; the ones here
explain single cells in a full model.
"""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import wraps
from typing import Any, Concatenate, ParamSpec

from torch import Tensor

Options = ParamSpec("Options")
_GELU_SLOPE, _GELU_BEND = math.sqrt(2 / math.pi), 0.044715
BENDS: dict[str, Callable[[float], float]] = {
    "relu": lambda x: max(x, 0.0),
    "gelu": lambda x: x * 0.5 * (1 + math.erf(x / math.sqrt(2))),
    "gelu-tanh": lambda x: x * 0.5 * (1 + math.tanh(_GELU_SLOPE * (x + _GELU_BEND * x**3))),
    "silu": lambda x: x / (1 + math.exp(-x)),
}


@dataclass(frozen=True)
class CellLine:
    """One line of arithmetic. ``kind`` defines how the terms give the value:

    ``sum`` products of each term's factors, added · ``mean`` the same divided by their number · ``root`` of that mean
    plus a constant · ``over`` the first divided by the second · ``powers`` e^(a − b) of each, added · ``largest`` ·
    ``hidden`` −∞, or 0 after the softmax · the name of an activation function (``relu``, ``gelu``, ``gelu-tanh``,
    ``silu``).
    """

    gives: str  # name of the result: product, turned, mean, spread, share, …
    kind: str
    terms: tuple[tuple[float, ...], ...]
    value: float
    constant: float = 0.0  # the ε under a root


@dataclass(frozen=True)
class CellSource:
    """The part of a matrix that a cell was computed from: a cell, or a row or column if the other index is None."""

    site: str
    row: int | None = None
    column: int | None = None
    head: int | None = None


@dataclass(frozen=True)
class Recipe:
    """How a cell was computed."""

    sources: tuple[CellSource, ...]
    lines: tuple[CellLine, ...]


@dataclass(frozen=True)
class Entry:
    """A matrix computed during the forward pass: (rows, columns), or one such matrix for each head."""

    site: str
    values: Tensor  # (T, C), or (n, T, C)
    rows: str  # what its rows are: the name of a line of pieces, or another label
    columns: str
    operation: "CellOperation | None" = None  # None for given matrices such as weights and pixels
    heads: tuple[int, ...] = ()
    places: tuple[int, ...] = ()  # index of each head's matrix; heads that share keys share an index

    def matrix(self, head: int | None = None) -> Tensor:
        """Return a head's matrix, or the shared matrix if all heads use the same one."""
        return self.values[self.places[self.heads.index(head or 0)]] if self.heads else self.values

    @property
    def shape(self) -> tuple[int, int]:
        """The number of rows and the number of columns."""
        return int(self.values.shape[-2]), int(self.values.shape[-1])


Entries = Mapping[str, Entry]


class Cell:
    """A cell at one head, row and column; every number read for it is recorded in ``sources``."""

    def __init__(self, entries: Entries, head: int | None, row: int, column: int) -> None:
        self.entries, self.head, self.at = entries, head, (row, column)
        self.sources: list[CellSource] = []

    def read(self, site: str, row: int | None, column: int | None, head: int | None = None) -> Any:
        """Return the numbers in a row or a column, or a single number."""
        if head is None and self.entries[site].heads:
            head = self.head
        self.sources.append(CellSource(site, row, column, head))
        where = tuple(slice(None) if each is None else each for each in (row, column))
        return self.entries[site].matrix(head)[where].double().tolist()

    def row(self, site: str, row: int | None = None) -> list[float]:
        """Return this row, or another ``row``, of a matrix."""
        values: list[float] = self.read(site, self.at[0] if row is None else row, None)
        return values

    def column(self, site: str) -> list[float]:
        """Return this column of a matrix."""
        values: list[float] = self.read(site, None, self.at[1])
        return values

    def same(self, *sites: str, row: int | None = None) -> list[tuple[float]]:
        """Return the same cell in other matrices, or the one in another ``row``, each as a term."""
        return [(self.read(site, self.at[0] if row is None else row, self.at[1]),) for site in sites]


Lines = Iterator[CellLine]


@dataclass(frozen=True)
class CellOperation:
    """An operation that computes a matrix from others."""

    name: str
    operands: tuple[str, ...]  # names of the matrices that it reads
    lines: Callable[[Cell], Lines]

    def recipe(self, entries: Entries, head: int | None, row: int, column: int) -> Recipe:
        """Return how the cell at a head, row and column was computed."""
        cell = Cell(entries, head, row, column)
        lines = tuple(self.lines(cell))
        return Recipe(tuple(cell.sources), lines)


def operation(name: str) -> Callable[[Callable[Concatenate[Cell, Options], Lines]], Callable[Options, CellOperation]]:
    """Convert a function that returns lines of arithmetic to one that makes an operation from sites and options."""

    def decorate(lines: Callable[Concatenate[Cell, Options], Lines]) -> Callable[Options, CellOperation]:
        def make(*sites: Options.args, **options: Options.kwargs) -> CellOperation:
            return CellOperation(name, tuple(map(str, sites)), lambda cell: lines(cell, *sites, **options))

        return wraps(lines)(make)

    return decorate


def summed(gives: str, terms: Sequence[tuple[float, ...]]) -> CellLine:
    """Return one line that writes out a sum of products.

    >>> summed("product", [(2.0, 3.0), (1.0, -1.0)]).value
    5.0
    """
    return CellLine(gives, "sum", tuple(terms), math.fsum(math.prod(term) for term in terms))


def divided(gives: str, number: float, by: float) -> CellLine:
    """Return a line with one number divided by another."""
    return CellLine(gives, "over", ((number, by),), number / by)


@operation("product")
def row_times_column(cell: Cell, left: str, right: str, *bias: str) -> Lines:
    """A row of one matrix times a column of another, plus an optional bias."""
    yield summed("product", [*zip(cell.row(left), cell.column(right), strict=True), *cell.same(*bias, row=0)])


@operation("score")
def row_times_row(cell: Cell, left: str, right: str) -> Lines:
    """A query times a key, divided by the root of their width."""
    product = summed("product", list(zip(cell.row(left), cell.row(right, cell.at[1]), strict=True)))
    yield product
    yield divided("score", product.value, math.sqrt(len(product.terms)))


@operation("mix")
def mixed_by_weights(cell: Cell, weights: str, values: str, *, silent: Sequence[int]) -> Lines:
    """Values multiplied by the weights of their positions; 0 for a silenced head."""
    mixed = summed("mixed", list(zip(cell.row(weights), cell.column(values), strict=True)))
    yield mixed
    if cell.head in silent:
        yield summed("silenced", [(mixed.value, 0.0)])


@operation("sum")
def sum_of_cells(cell: Cell, *sites: str, factor: float = 1.0) -> Lines:
    """The sum of the same cell in several matrices; the first is multiplied by ``factor``."""
    first, *others = cell.same(*sites)
    yield summed("sum", [first if factor == 1 else (*first, factor), *others])


@operation("copy")
def same(cell: Cell, site: str) -> Lines:
    """The same cell in another matrix."""
    yield summed("copy", cell.same(site))


@operation("copy")
def behind(cell: Cell, first: str, others: str) -> Lines:
    """One row, followed by the rows of another matrix."""
    row = cell.at[0]
    yield summed("copy", cell.same(others, row=row - 1) if row else cell.same(first))


@operation("lookup")
def looked_up(cell: Cell, table: str, *, ids: Sequence[int]) -> Lines:
    """One row of a table, selected by id."""
    yield summed("copy", cell.same(table, row=ids[cell.at[0]]))


@operation("join")
def joined(cell: Cell, site: str, *, heads: Sequence[int], width: int) -> Lines:
    """The matrices of all heads, side by side."""
    row, (head, column) = cell.at[0], divmod(cell.at[1], width)
    yield summed("copy", [(cell.read(site, row, column, heads[head]),)])


@operation("norm")
def normed(cell: Cell, site: str, gain: str, *bias: str, eps: float) -> Lines:
    """A row scaled to unit size (RMSNorm) and, with a bias, centred (LayerNorm); then the gain and the bias."""
    numbers, column = cell.row(site), cell.at[1]
    if bias:
        mean = math.fsum(numbers) / len(numbers)
        yield CellLine("mean", "mean", tuple((each,) for each in numbers), mean)
        number, numbers = numbers[column], [each - mean for each in numbers]
        yield CellLine("centred", "sum", ((number,), (-mean,)), numbers[column])
    spread = math.sqrt(math.fsum(each * each for each in numbers) / len(numbers) + eps)
    yield CellLine("spread", "root", tuple((each, each) for each in numbers), spread, eps)
    unit = divided("unit", numbers[column], spread)
    yield unit
    (gained,) = cell.same(gain, row=0)
    yield summed("normed", [(unit.value, *gained), *cell.same(*bias, row=0)])


@operation("turn")
def rotated(cell: Cell, site: str, cosines: str, sines: str) -> Lines:
    """Rotary positions: a number and its partner in the other half, rotated by the angle of the position."""
    (row, column), half = cell.at, cell.entries[cosines].shape[1]
    partner, sign = (column + half, -1.0) if column < half else (column - half, 1.0)
    number, other = (cell.read(site, row, each) for each in (column, partner))
    cos, sin = (cell.read(each, row, column % half) for each in (cosines, sines))
    yield summed("turned", [(number, cos), (other, sign * sin)])


@operation("mask")
def masked_score(cell: Cell, scores: str, *, hidden: Tensor) -> Lines:
    """A score, or −∞ where ``hidden`` (T, S) is true."""
    score = cell.same(scores)
    yield CellLine("masked", "hidden", (), -math.inf) if hidden[cell.at] else summed("masked", score)


@operation("softmax")
def softmaxed(cell: Cell, site: str) -> Lines:
    """The exponentials of a row, divided by their sum; the largest number is subtracted first to avoid overflow."""
    numbers = cell.row(site)
    number = numbers[cell.at[1]]
    if number == -math.inf:
        yield CellLine("share", "hidden", (), 0.0)
        return
    seen = [each for each in numbers if each != -math.inf]
    most = max(seen)
    total, power = math.fsum(math.exp(each - most) for each in seen), math.exp(number - most)
    yield CellLine("largest", "largest", tuple((each,) for each in seen), most)
    yield CellLine("total", "powers", tuple((each, most) for each in seen), total)
    yield CellLine("power", "powers", ((number, most),), power)
    yield divided("share", power, total)


@operation("activation")
def activated(cell: Cell, site: str, *times: str, bend: str) -> Lines:
    """An activation function applied to a number, and multiplied by another number in a gated unit (SwiGLU)."""
    (number,) = cell.same(site)
    bent = BENDS[bend](*number)
    yield CellLine("bent", bend, (number,), bent)
    yield from (summed("gated", [(bent, *other)]) for other in cell.same(*times))
