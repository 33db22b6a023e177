"""The sheet as a reader sees it: tables of readable numbers with the arithmetic of some cells.

Where a step is worked out, small numbers have more decimals, so that it comes out by hand; in a table all have as many
as its largest needs. A small matrix is shown whole, with every cell worked out; of a large one the first and last
columns and rows, with a remark, and the arithmetic of its last row: where nobody looks ahead, that is the one that sees
all. Terminal and page show the same.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

from kotha.course.worksheet.operations import Array, decimals_for, with_decimals, written
from kotha.course.worksheet.sheet import Sheet, SheetStep
from kotha.i18n.catalogue import translate
from kotha.i18n.message import Message
from kotha.i18n.numbers import Language

# Up to this many cells each one is worked out; above, only the last row.
_ALL_CELLS = 24
# Weights have a row for each number of a vector and nothing to work out.
_MOST_COLUMNS, _MOST_ROWS, _MOST_WEIGHT_ROWS = 10, 16, 8
_GAP = "…"
# What has no decimals to show.
_WHOLE = ("mask", "places", "pairs", "width", "d_k", "eps", "guess")


@dataclass(frozen=True)
class Shown:
    """A step as strings, in a reader's language."""

    name: str
    title: str
    is_given: bool
    header: list[str]  # the column labels, after an empty corner
    rows: list[list[str]]  # each with its label first
    shares: list[list[float | None]]  # for weights, each shown cell's share of its row; empty for other steps
    sums: list[str]  # lines such as Q[1,1] = 1.0×0.1 + 0.5×0.3 = 0.25
    remark: str


def show(sheet: Sheet, step: SheetStep, precision: int, n_rows: int | None = None, language: Language = "en") -> Shown:
    """One step of a sheet, with the arithmetic of ``n_rows``, counted from the last."""
    height, width = step.values.shape
    most_rows = _MOST_WEIGHT_ROWS if step.name.startswith("W_") else _MOST_ROWS
    rows, columns = _some(height, most_rows), _some(width, _MOST_COLUMNS)
    values = [[None if r is None or c is None else float(step.values[r, c]) for c in columns] for r in rows]
    # Counts and marks have no decimals to show, and ε would round to nothing.
    spell = "{:g}".format
    if step.name not in _WHOLE:
        largest = max((abs(value) for row in values for value in row if value not in (None, -math.inf)), default=0.0)
        spell = partial(with_decimals, decimals=decimals_for(largest, precision))
    cells = _aligned([[_GAP if value is None else spell(value) for value in row] for row in values])
    labels = [_GAP if row is None else translate(step.rows[row], language) for row in rows]
    part = Message("Part of {height:,} × {width:,} numbers; the JSON has them all.", height=height, width=width)
    return Shown(
        name=step.name,
        title=translate(step.title, language),
        is_given=step.operation is None,
        header=["", *(_GAP if column is None else translate(step.columns[column], language) for column in columns)],
        rows=[[label, *line] for label, line in zip(labels, cells, strict=True)],
        shares=values if step.name.startswith(("weights", "chances")) else [],
        sums=list(worked_out(sheet, step, precision, n_rows, columns)),
        remark=translate(part, language) if None in (*rows, *columns) else "",
    )


def worked_out(
    sheet: Sheet, step: SheetStep, precision: int, n_rows: int | None = None, columns: list[int | None] | None = None
) -> Iterator[str]:
    """The arithmetic of the cells that are written out: all of a small matrix, the last row of a large one."""
    if step.operation is None:
        return
    height, width = step.values.shape
    few = n_rows if n_rows is not None else (height if height * width <= _ALL_CELLS else 1)
    for row in range(max(0, height - few), height):
        for column in columns if columns is not None else range(width):
            yield _GAP if column is None else arithmetic(sheet, step, row, column, precision)


def arithmetic(sheet: Sheet, step: SheetStep, row: int, column: int, precision: int) -> str:
    """One cell, worked out: its name, what is done, and the result."""
    assert step.operation is not None, f"{step.name} is given, not worked out"
    place = f"{row + 1}" if step.values.shape[1] == 1 else f"{row + 1},{column + 1}"
    done = step.operation.arithmetic(sheet.matrices, row, column, precision)
    return f"{step.name}[{place}] = {done} = {written(step.values[row, column], precision)}"


def as_json(sheet: Sheet, language: Language = "en") -> dict[str, Any]:
    """All numbers in full; what is hidden (−∞) is null."""
    lists = ("tokens", "key_tokens", "remarks")
    return {
        "text": translate(sheet.text, language),
        "target": sheet.target,
        "place": sheet.place or None,
        "layer": sheet.layer,
        "head": sheet.head,
        **{name: [translate(each, language) for each in getattr(sheet, name)] for name in lists},
        **{name: plain(step.values) for name, step in sheet.steps.items()},
        **({"masked": plain(sheet.masked)} if "scores" in sheet.steps else {}),
        "steps": {name: translate(step.title, language) for name, step in sheet.steps.items()},
    }


def plain(values: Array) -> list[list[float | None]]:
    """Numbers for JSON: −∞ is null."""
    return [[None if value == -math.inf else value for value in row] for row in values.tolist()]


def _aligned(cells: list[list[str]]) -> list[list[str]]:
    """Numbers with equally many decimals, so that their points stand below each other.

    >>> _aligned([["0.3", "−∞"], ["0.55", "…"]])
    [['0.30', '−∞'], ['0.55', '…']]
    """
    most = max((len(cell.partition(".")[2]) for row in cells for cell in row), default=0)
    return [
        [cell.ljust(len(cell.partition(".")[0]) + 1 + most, "0") if "." in cell else cell for cell in row]
        for row in cells
    ]


def _some(count: int, most: int) -> list[int | None]:
    """All indexes, or of many the first ones, a gap, and the last two.

    >>> _some(9, 6)
    [0, 1, 2, None, 7, 8]
    """
    return list(range(count)) if count <= most else [*range(most - 3), None, count - 2, count - 1]
