"""Rendering of sheets: tables of readable numbers with the arithmetic for some cells, and a single offline page.

In arithmetic, small numbers get more decimals so that results can be reproduced by hand; in a table, all numbers have
as many decimals as the largest number. A small matrix is shown in full, with the arithmetic for every cell. For a large
one, only the first and last rows and columns are shown, with a remark. Its arithmetic is shown only for the last row,
which attends to all tokens under a causal mask. The terminal and the page show the same content.

The page is also an exercise with a score file, as in the studio's room “By hand”. The page contains the numbers, with
titles and labels in both languages; grading, hints and diagnosis use the studio's code (``web/src/rooms/hand``). For a
model's head, the user computes the part that is feasible by hand, and the rest is shown.
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

# Up to this number of cells, the arithmetic for every cell is shown; above it, only for the last row.
_ALL_CELLS = 24
# Weight matrices have many rows and no arithmetic, so fewer of their rows are shown.
_MOST_COLUMNS, _MOST_ROWS, _MOST_WEIGHT_ROWS = 10, 16, 8
_GAP = "…"
# Matrices without decimals.
_WHOLE = ("mask", "places", "pairs", "width", "d_k", "eps", "guess")


@dataclass(frozen=True)
class Shown:
    """A rendered step."""

    name: str
    title: Text
    given: bool
    header: list[Text]  # column labels, after an empty corner cell
    rows: list[list[Text]]  # rows, each starting with its label
    shares: list[list[float | None]]  # for attention weights and probabilities, the displayed values; otherwise empty
    sums: list[str]  # lines such as Q[1,1] = 1.0×0.1 + 0.5×0.3 = 0.25
    remark: Text


@dataclass(frozen=True, repr=False)
class SheetView(View[Sheet]):
    """A view of a sheet that can also be saved as a spreadsheet."""

    steps: tuple[Shown, ...] = field(default=(), repr=False)
    language: Language = "en"

    def save_spreadsheet(self, path: str | Path) -> Path:
        """Write the sheet as .xlsx, atomically."""
        content = spreadsheet(self.found, self.language)
        with atomic_file(Path(path), ".xlsx") as stream:
            stream.buffer.write(content)
        return Path(path)


def sheet_view(sheet: Sheet, *, language: Language = "en") -> SheetView:
    """Make a view of a sheet."""
    # Sheets larger than the workshop's have less space per number.
    precision = 4 if sheet.place or sheet.heading else 6
    steps = tuple(_show(sheet, step, precision) for step in sheet.steps.values())
    page, data = partial(_page, sheet, steps, language), partial(as_json, sheet, language)
    remarks = tuple(translate(each, language) for each in sheet.remarks)
    return SheetView(translate(sheet.title, language), sheet, page, data, remarks, steps, language)


def _show(sheet: Sheet, step: SheetStep, precision: int) -> Shown:
    """Render one step of a sheet."""
    height, width = step.values.shape
    most_rows = _MOST_WEIGHT_ROWS if step.name.startswith("W_") else _MOST_ROWS
    rows, columns = _some(height, most_rows), _some(width, _MOST_COLUMNS)
    values = [[None if r is None or c is None else float(step.values[r, c]) for c in columns] for r in rows]
    # Counts and masks have no decimals, and ε would round to 0.
    spell = "{:g}".format
    if step.name not in _WHOLE:
        largest = max((abs(value) for row in values for value in row if value not in (None, -math.inf)), default=0.0)
        spell = partial(with_decimals, decimals=decimals_for(largest, precision))
    cells = _aligned([[_GAP if value is None else spell(value) for value in row] for row in values])
    labels = [_GAP if row is None else step.rows[row] for row in rows]
    part = Message(
        "Part of a {height:,} × {width:,} matrix; the JSON output contains the full matrix.", height=height, width=width
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
    """Yield the arithmetic for the shown cells: all cells in a small matrix, the last row in a large one."""
    if step.operation is None:
        return
    height, width = step.values.shape
    for row in range(0 if height * width <= _ALL_CELLS else height - 1, height):
        for column in columns:
            yield _GAP if column is None else sheet.arithmetic(step.name, row, column, precision)


def _aligned(cells: list[list[str]]) -> list[list[str]]:
    """Pad numbers to the same number of decimals, so that decimal points line up.

    >>> _aligned([["0.3", "−∞"], ["0.55", "…"]])
    [['0.30', '−∞'], ['0.55', '…']]
    """
    most = max((len(cell.partition(".")[2]) for row in cells for cell in row), default=0)
    return [
        [cell.ljust(len(cell.partition(".")[0]) + 1 + most, "0") if "." in cell else cell for cell in row]
        for row in cells
    ]


def _some(count: int, most: int) -> list[int | None]:
    """Return all indices or, if there are many, the first ones, None for a gap, and the last two.

    >>> _some(9, 6)
    [0, 1, 2, None, 7, 8]
    """
    return list(range(count)) if count <= most else [*range(most - 3), None, count - 2, count - 1]


def as_json(sheet: Sheet, language: Language = "en") -> dict[str, Any]:
    """Return all numbers at full precision; masked scores (−∞) become null."""
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
    """Convert numbers for JSON; −∞ becomes null."""
    return [[None if value == -math.inf else value for value in row] for row in values.tolist()]


def steps_of(sheet: Sheet) -> list[dict[str, Any]]:
    """Return the matrices in a sheet and their operations for JSON; −∞ becomes null."""
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
    """Render the bilingual HTML page for a sheet; ``language`` is the initial language."""
    exercise, why_not = None, ""
    try:  # a model's head is reduced to what can be computed by hand
        exercise = _compact(for_paper(sheet) if sheet.place else sheet)
    except UsageError as error:
        why_not = str(error)
    data = {
        "title": both(sheet.title),
        "lead": both(Message("{lead} {cells}", lead=_lead(sheet), cells=Message("Q[2,1] means row 2, column 1."))),
        "remarks": {each: [translate(remark, each) for remark in sheet.remarks] for each in LANGUAGES},
        "text": str(sheet.text),
        "target": sheet.target,
        "asked": exercise,
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
    data["kept_as"] = hashlib.sha256(repr(exercise).encode()).hexdigest()[:16]
    title = translate(sheet.title, language)
    return sheet_page("sheet", title, data, made_by="kotha inside worksheet", language=language)


def _compact(sheet: Sheet) -> dict[str, Any]:
    """Return the steps with 12 significant digits, enough for grading, and the Bangla labels that differ."""
    steps, others = steps_of(sheet), []
    for step, made in zip(steps, sheet.steps.values(), strict=True):
        step["values"] = [[None if each is None else float(f"{each:.12g}") for each in row] for row in step["values"]]
        labels_of = {"rows": _labels(made.rows), "columns": _labels(made.columns)}
        others.append({name: labels["bn"] for name, labels in labels_of.items() if "bn" in labels})
    return {"en": steps, "bn": others}


def _lead(sheet: Sheet) -> Text:
    if sheet.place:
        return Message(
            "One attention head as arithmetic: each number is computed from those above it, and was checked "
            "against torch."
        )
    return sheet.lead or Message("One attention head as arithmetic: each number is computed from those above it.")


def _labels(labels: Sequence[Text]) -> dict[str, list[str]]:
    """Return labels by language, or only the English ones if the two are the same."""
    english, bangla = ([translate(each, language) for each in labels] for language in LANGUAGES)
    return {"en": english} if english == bangla else {"en": english, "bn": bangla}
