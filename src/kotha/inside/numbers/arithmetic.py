"""What made one number: the arithmetic of a cell, as lines that can be checked with a pencil.

An operation has a name, the sites that it reads, and a recipe: for one cell, which of their rows and columns made it,
and the lines of arithmetic that give it, in double precision from the numbers that the model really had. A cell that
takes several steps (a norm, a turn by its place, a softmax) has a line for each. Whatever the model computed in one
fused kernel must come out the same, up to rounding; tests hold every cell of every family to it.

The worksheet's operations (``worksheet/operations.py``) compute whole matrices of one head for paper; these explain
single cells of a whole model and compute nothing that was not there.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

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

    def row(self, head: int | None, row: int) -> list[float]:
        """The numbers of a row."""
        values: list[float] = self.matrix(head)[row].double().tolist()
        return values

    def column(self, head: int | None, column: int) -> list[float]:
        """The numbers of a column."""
        values: list[float] = self.matrix(head)[:, column].double().tolist()
        return values

    def cell(self, head: int | None, row: int, column: int) -> float:
        """One number."""
        return float(self.matrix(head)[row, column])

    def part(self, head: int | None, row: int | None = None, column: int | None = None) -> "CellSource":
        """A cell of it, or a line, as the source of another."""
        return CellSource(self.site, row, column, head if self.heads else None)

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns."""
        return int(self.values.shape[-2]), int(self.values.shape[-1])


Entries = Mapping[str, Entry]
# What made the cell of a head, a row and a column.
MakeRecipe = Callable[[Entries, int | None, int, int], Recipe]


@dataclass(frozen=True)
class CellOperation:
    """What makes a matrix from others."""

    name: str
    operands: tuple[str, ...]  # the sites that it reads
    recipe: MakeRecipe


def summed(gives: str, terms: Sequence[tuple[float, ...]]) -> CellLine:
    """Products, added up.

    >>> summed("product", [(2.0, 3.0), (1.0, -1.0)]).value
    5.0
    """
    return CellLine(gives, "sum", tuple(terms), math.fsum(math.prod(term) for term in terms))


def row_times_column(left: str, right: str, bias: str | None = None) -> CellOperation:
    """A row of one matrix times a column of another, and a bias where there is one."""

    def recipe(of: Entries, head: int | None, row: int, column: int) -> Recipe:
        pairs = zip(of[left].row(head, row), of[right].column(head, column), strict=True)
        terms: list[tuple[float, ...]] = list(pairs)
        sources = [of[left].part(head, row), of[right].part(head, None, column)]
        if bias is not None:
            terms.append((of[bias].cell(head, 0, column),))
            sources.append(of[bias].part(head, 0, column))
        return Recipe(tuple(sources), (summed("product", terms),))

    return CellOperation("product", (left, right, *([] if bias is None else [bias])), recipe)


def row_times_row(left: str, right: str) -> CellOperation:
    """A query times a key, over the root of their width."""

    def recipe(of: Entries, head: int | None, row: int, column: int) -> Recipe:
        product = summed("product", list(zip(of[left].row(head, row), of[right].row(head, column), strict=True)))
        root = math.sqrt(len(product.terms))
        scaled = CellLine("score", "over", ((product.value, root),), product.value / root)
        sources = CellSource(left, row, None, head), CellSource(right, column, None, head)
        return Recipe(sources, (product, scaled))

    return CellOperation("score", (left, right), recipe)


def sum_of_cells(operands: tuple[str, ...], factors: tuple[float, ...] = ()) -> CellOperation:
    """The same cell of several matrices, added; each may be multiplied first."""

    def recipe(of: Entries, head: int | None, row: int, column: int) -> Recipe:
        cells = [of[site].cell(None, row, column) for site in operands]
        pairs = zip(cells, factors or (1.0,) * len(cells), strict=True)
        terms = [(cell,) if factor == 1 else (cell, factor) for cell, factor in pairs]
        return Recipe(tuple(CellSource(site, row, column) for site in operands), (summed("sum", terms),))

    return CellOperation("sum", operands, recipe)


def copied(operands: tuple[str, ...], find: Callable[[int, int], CellSource], name: str = "copy") -> CellOperation:
    """A number that stands elsewhere too; ``find`` says in which matrix, head, row and column."""

    def recipe(of: Entries, head: int | None, row: int, column: int) -> Recipe:
        source = find(row, column)
        assert source.row is not None and source.column is not None, "a cell is copied from a cell"
        asked = head if source.head is None and of[source.site].heads else source.head
        value = of[source.site].cell(asked, source.row, source.column)
        return Recipe((replace(source, head=asked),), (CellLine("copy", "sum", ((value,),), value),))

    return CellOperation(name, operands, recipe)


def same(site: str) -> CellOperation:
    """The same cell of another matrix."""
    return copied((site,), lambda row, column: CellSource(site, row, column))


def looked_up(table: str, ids: Sequence[int]) -> CellOperation:
    """The row of a table that an id names."""
    return copied((table,), lambda row, column: CellSource(table, ids[row], column), "lookup")


def normed(site: str, gain: str, bias: str | None, eps: float) -> CellOperation:
    """A row brought to one size (RMSNorm), or also to a mean of zero (LayerNorm); then a gain, and a bias."""

    def recipe(of: Entries, head: int | None, row: int, column: int) -> Recipe:
        numbers, lines = of[site].row(head, row), []
        width = len(numbers)
        if bias is not None:
            mean = math.fsum(numbers) / width
            lines.append(CellLine("mean", "mean", tuple((each,) for each in numbers), mean))
            numbers = [each - mean for each in numbers]
            lines.append(CellLine("centred", "sum", ((numbers[column] + mean,), (-mean,)), numbers[column]))
        spread = math.sqrt(math.fsum(each * each for each in numbers) / width + eps)
        lines.append(CellLine("spread", "root", tuple((each, each) for each in numbers), spread, eps))
        unit = numbers[column] / spread
        lines.append(CellLine("unit", "over", ((numbers[column], spread),), unit))
        terms: list[tuple[float, ...]] = [(unit, of[gain].cell(None, 0, column))]
        sources = [of[site].part(head, row), CellSource(gain, 0, column)]
        if bias is not None:
            terms.append((of[bias].cell(None, 0, column),))
            sources.append(CellSource(bias, 0, column))
        return Recipe(tuple(sources), (*lines, summed("normed", terms)))

    return CellOperation("norm", (site, gain, *([] if bias is None else [bias])), recipe)


def rotated(site: str, cosines: str, sines: str) -> CellOperation:
    """Rotary positions: a number and its partner, turned by the angle of the place; first halves lose, second gain."""

    def recipe(of: Entries, head: int | None, row: int, column: int) -> Recipe:
        half = of[cosines].shape[1]
        partner, pair, sign = (column + half, column, -1.0) if column < half else (column - half, column - half, 1.0)
        cos, sin = (of[each].cell(None, row, pair) for each in (cosines, sines))
        terms = [(of[site].cell(head, row, column), cos), (of[site].cell(head, row, partner), sign * sin)]
        turned = (CellSource(site, row, each, head) for each in (column, partner))
        angles = (CellSource(each, row, pair) for each in (cosines, sines))
        return Recipe((*turned, *angles), (summed("turned", terms),))

    return CellOperation("turn", (site, cosines, sines), recipe)


def masked_score(scores: str, site: str) -> CellOperation:
    """A score, or −∞ where nobody may look; ``site`` is the matrix itself."""

    def recipe(of: Entries, head: int | None, row: int, column: int) -> Recipe:
        score = of[scores].cell(head, row, column)
        line = CellLine("masked", "sum", ((score,),), score)
        if of[site].cell(head, row, column) == -math.inf:
            line = CellLine("masked", "hidden", (), -math.inf)
        return Recipe((CellSource(scores, row, column, head),), (line,))

    return CellOperation("mask", (scores,), recipe)


def softmaxed(site: str) -> CellOperation:
    """e to each number of a row, as a share of their sum; the largest is taken off first, to keep e^ in bounds."""

    def recipe(of: Entries, head: int | None, row: int, column: int) -> Recipe:
        numbers, sources = of[site].row(head, row), (of[site].part(head, row),)
        if numbers[column] == -math.inf:
            return Recipe(sources, (CellLine("share", "hidden", (), 0.0),))
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
        return Recipe(sources, lines)

    return CellOperation("softmax", (site,), recipe)


def activated(site: str, bend: str, times: str | None = None) -> CellOperation:
    """A number through an activation function; multiplied by another where a gate has one (SwiGLU)."""

    def recipe(of: Entries, head: int | None, row: int, column: int) -> Recipe:
        number = of[site].cell(None, row, column)
        bent = BENDS[bend](number)
        lines, sources = [CellLine("bent", bend, ((number,),), bent)], [CellSource(site, row, column)]
        if times is not None:
            lines.append(summed("gated", [(bent, of[times].cell(None, row, column))]))
            sources.append(CellSource(times, row, column))
        return Recipe(tuple(sources), tuple(lines))

    return CellOperation("activation", (site, *([] if times is None else [times])), recipe)


def mixed_by_weights(weights: str, values: str, silent: tuple[int, ...] = ()) -> CellOperation:
    """Values, each times the weight of its position; of a silent head nothing is left."""

    def recipe(of: Entries, head: int | None, row: int, column: int) -> Recipe:
        pairs = zip(of[weights].row(head, row), of[values].column(head, column), strict=True)
        mixed = summed("mixed", list(pairs))
        sources = CellSource(weights, row, None, head), CellSource(values, None, column, head)
        lines = (mixed,) if head not in silent else (mixed, summed("silenced", [(mixed.value, 0.0)]))
        return Recipe(sources, lines)

    return CellOperation("mix", (weights, values), recipe)
