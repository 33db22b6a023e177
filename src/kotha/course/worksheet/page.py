"""A sheet as a reader sees it: tables of readable numbers with the arithmetic of some cells, and one offline page.

Where a step is worked out, small numbers have more decimals, so that it comes out by hand; in a table all have as many
as its largest needs. A small matrix is shown whole, with every cell worked out; of a large one the first and last
columns and rows, with a remark, and the arithmetic of its last row: where nobody looks ahead, that is the one that sees
all. Terminal and page show the same.

The page is also to be worked on, as in the studio's By hand, and with a score file. It holds numbers and, in both
languages, titles and labels; what grades, hints and finds the mistake is the studio's own (``web/src/rooms/hand``). Of
a model's head the part that a pencil can do is asked for, and more is shown.
"""

import hashlib
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from kotha.course.data import both
from kotha.course.worksheet.builtin_sheets import for_paper
from kotha.course.worksheet.operations import Array, decimals_for, with_decimals
from kotha.course.worksheet.sheet import Sheet, SheetStep
from kotha.course.worksheet.spreadsheet import spreadsheet
from kotha.errors import UsageError
from kotha.i18n.catalogue import translate
from kotha.i18n.message import Message, Text
from kotha.i18n.numbers import LANGUAGES, Language
from kotha.inside.view import View
from kotha.report.single_file import sheet_page
from kotha.storage.atomic import atomic_file

# Up to this many cells each one is worked out; above, only the last row.
_ALL_CELLS = 24
# Weights have a row for each number of a vector and nothing to work out.
_MOST_COLUMNS, _MOST_ROWS, _MOST_WEIGHT_ROWS = 10, 16, 8
_GAP = "…"
# What has no decimals to show.
_WHOLE = ("mask", "places", "pairs", "width", "d_k", "eps", "guess")


@dataclass(frozen=True)
class Shown:
    """A step as it is written."""

    name: str
    title: Text
    given: bool
    header: list[Text]  # the column labels, after an empty corner
    rows: list[list[Text]]  # each with its label first
    shares: list[list[float | None]]  # for weights, each shown cell's share of its row; empty for other steps
    sums: list[str]  # lines such as Q[1,1] = 1.0×0.1 + 0.5×0.3 = 0.25
    remark: Text


@dataclass(frozen=True, repr=False)
class SheetView(View[Sheet]):
    """A sheet to look at; also as a spreadsheet of live formulas."""

    steps: tuple[Shown, ...] = field(default=(), repr=False)
    language: Language = "en"

    def save_spreadsheet(self, path: str | Path) -> Path:
        """Write the sheet as .xlsx, whole or not at all."""
        made = spreadsheet(self.found, self.language)
        with atomic_file(Path(path), ".xlsx") as stream:
            stream.buffer.write(made)
        return Path(path)


def sheet_view(sheet: Sheet, *, language: Language = "en") -> SheetView:
    """A sheet to look at."""
    # A sheet with more numbers than the workshop's has less room for each; of small ones as many digits count.
    precision = 4 if sheet.place or sheet.heading else 6
    steps = tuple(_show(sheet, step, precision) for step in sheet.steps.values())
    page, told = partial(_page, sheet, steps, language), partial(as_json, sheet, language)
    remarks = tuple(translate(each, language) for each in sheet.remarks)
    return SheetView(translate(sheet.title, language), sheet, page, told, remarks, steps, language)


def _show(sheet: Sheet, step: SheetStep, precision: int) -> Shown:
    """One step of a sheet."""
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
    labels = [_GAP if row is None else step.rows[row] for row in rows]
    part = Message(
        "Part of a {height:,} × {width:,} matrix; the JSON output has all of it.", height=height, width=width
    )
    return Shown(
        name=step.name,
        title=step.title,
        given=step.operation is None,
        header=["", *(_GAP if column is None else step.columns[column] for column in columns)],
        rows=[[label, *line] for label, line in zip(labels, cells, strict=True)],
        shares=values if step.name.startswith(("weights", "chances")) else [],
        sums=list(_worked_out(sheet, step, precision, columns)),
        remark=part if None in (*rows, *columns) else "",
    )


def _worked_out(sheet: Sheet, step: SheetStep, precision: int, columns: Sequence[int | None]) -> Iterator[str]:
    """The arithmetic of the cells that are written out: all of a small matrix, the last row of a large one."""
    if step.operation is None:
        return
    height, width = step.values.shape
    for row in range(0 if height * width <= _ALL_CELLS else height - 1, height):
        for column in columns:
            yield _GAP if column is None else sheet.arithmetic(step.name, row, column, precision)


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
        **{name: _plain(step.values) for name, step in sheet.steps.items()},
        **({"masked": _plain(sheet.masked)} if "scores" in sheet.steps else {}),
        "steps": {name: translate(step.title, language) for name, step in sheet.steps.items()},
    }


def _plain(values: Array) -> list[list[float | None]]:
    """Numbers for JSON: −∞ is null."""
    return [[None if value == -math.inf else value for value in row] for row in values.tolist()]


def steps_of(sheet: Sheet) -> list[dict[str, Any]]:
    """The matrices of a sheet and what makes each, ready for JSON; −∞ is null."""
    return [
        {
            "name": step.name,
            "title": str(step.title),
            "rows": list(map(str, step.rows)),
            "columns": list(map(str, step.columns)),
            "values": _plain(step.values),
            "operation": None if step.operation is None else step.operation.kind,
            "operands": [] if step.operation is None else list(step.operation.operands),
        }
        for step in sheet.steps.values()
    ]


def _page(sheet: Sheet, shown: Sequence[Shown], language: Language) -> str:
    """The HTML of a sheet, in both languages; ``language`` is the one that it opens in."""
    asked, why_not = None, ""
    try:  # all of a sheet that was made for it, of a model's head what a pencil can do
        asked = _in_short(for_paper(sheet) if sheet.place else sheet)
    except UsageError as error:
        why_not = str(error)
    data = {
        "title": both(sheet.title),
        "lead": both(Message("{lead} {cells}", lead=_lead(sheet), cells=Message("Q[2,1] means row 2, column 1."))),
        "remarks": {each: [translate(remark, each) for remark in sheet.remarks] for each in LANGUAGES},
        "text": str(sheet.text),
        "target": sheet.target,
        "asked": asked,
        "why_not": why_not,
        "called": sheet.called,
        "solved": [
            {
                "given": step.given,
                "cells": [row[1:] for row in step.rows],
                "shares": step.shares,
                "sums": step.sums,
                "columns": _labels(step.header[1:]),
                "rows": _labels([row[0] for row in step.rows]),
                "title": both(step.title),
                "remark": both(step.remark),
            }
            for step in shown
        ],
    }
    data["kept_as"] = hashlib.sha256(repr(asked).encode()).hexdigest()[:16]
    title = translate(sheet.title, language)
    return sheet_page("sheet", title, data, made_by="kotha inside worksheet", language=language)


def _in_short(sheet: Sheet) -> dict[str, Any]:
    """A sheet's steps with as many digits as grading looks at; of the other language the labels that differ."""
    steps, others = steps_of(sheet), []
    for step, made in zip(steps, sheet.steps.values(), strict=True):
        step["values"] = [[None if each is None else float(f"{each:.12g}") for each in row] for row in step["values"]]
        told = {"rows": _labels(made.rows), "columns": _labels(made.columns)}
        others.append({name: labels["bn"] for name, labels in told.items() if "bn" in labels})
    return {"en": steps, "bn": others}


def _lead(sheet: Sheet) -> Text:
    if sheet.place:
        return Message(
            "One attention head as arithmetic: each number is computed from those above it, and each was "
            "compared with torch."
        )
    return sheet.lead or Message("One attention head as arithmetic: each number is computed from those above it.")


def _labels(labels: Sequence[Text]) -> dict[str, list[str]]:
    """Labels by language; once where they are the same."""
    english, bangla = ([translate(each, language) for each in labels] for language in LANGUAGES)
    return {"en": english} if english == bangla else {"en": english, "bn": bangla}
