"""Export of a sheet as a spreadsheet with live formulas, which show the effect of changing a number.

Given numbers are blue. Every other cell is a formula that uses earlier cells, with its current value stored for
programs that do not evaluate formulas. A small worksheet fits on a single page; the given matrices of a wide model are
on a separate page.
"""

from dataclasses import dataclass
from io import BytesIO
from typing import Any

import numpy as np
from xlsxwriter import Workbook, utility  # type: ignore[import-untyped]

from kotha.course.data import bilingual, data_file
from kotha.course.worksheet.operations import FILE, MINUS_INFINITY, Operation
from kotha.course.worksheet.sheet import Sheet, SheetStep
from kotha.errors import UsageError
from kotha.i18n.catalogue import translate
from kotha.i18n.message import Text
from kotha.i18n.numbers import Language

STEPS, INPUTS, README = "steps", "inputs", "Read me"
MOST_TOKENS, MOST_HEAD_WIDTH, MOST_WIDTH = 16, 128, 2048
# Sums of up to this many terms are written out; longer ones use a function over ranges.
_SPELLED_OUT = 16
# The first matrix starts below the title, and after the column of row labels.
_TOP, _LEFT = 2, 1


@dataclass(frozen=True)
class Area:
    """The location of a matrix: the page, row and column of its first number, and its size."""

    page: str
    row: int
    column: int
    height: int
    width: int

    def range(self, top: int, left: int, bottom: int, right: int) -> str:
        """Return the address of part of the matrix, such as ``C7:F7``, for use on the page with the steps."""
        prefix = f"{self.page}!" if self.page == INPUTS else ""
        inside = utility.xl_range(self.row + top, self.column + left, self.row + bottom, self.column + right)
        return f"{prefix}{inside}"


class Areas:
    """The locations of all matrices on a sheet, and the formulas in their cells."""

    def __init__(self, sheet: Sheet) -> None:
        self.given = sheet.matrices
        self.is_wide = any(max(step.values.shape) > _SPELLED_OUT for step in sheet.steps.values())
        self.of: dict[str, Area] = {}
        next_row = {STEPS: _TOP, INPUTS: _TOP}
        for name, step in sheet.steps.items():
            page = INPUTS if self.is_wide and step.operation is None else STEPS
            height, width = step.values.shape
            # One line for the title and one for the column labels above, one empty line below.
            self.of[name] = Area(page, next_row[page] + 2, _LEFT, height, width)
            next_row[page] += height + 3

    def cell(self, name: str, row: int, column: int) -> str:
        """Return the address of a cell, such as ``C7``."""
        return self.of[name].range(row, column, row, column)

    def line(self, name: str, row: int) -> str:
        """Return the address of a full row, such as ``C7:F7``."""
        return self.of[name].range(row, 0, row, self.of[name].width - 1)

    def _operand(self, name: str, row: int, column: int) -> "_InCells":
        return _InCells(self.cell(name, row, column), self.line(name, row), self.of[name].width)

    def formula(self, operation: Operation, row: int, column: int) -> str:
        """Return the formula for a cell; short sums of products are written out."""
        if not operation.is_product:
            return operation.cell(self.given, row, column, "cells", self._operand)
        (left, right), n_inner = operation.operands, self.given[operation.operands[0]].shape[1]
        by_rows = operation.kind == "product_by_rows"
        if n_inner > _SPELLED_OUT and by_rows:
            return f"SUMPRODUCT({self.line(left, row)},{self.line(right, column)})"
        if n_inner > _SPELLED_OUT:
            return f"MMULT({self.line(left, row)},{self.of[right].range(0, column, n_inner - 1, column)})"
        inner = [(column, n) if by_rows else (n, column) for n in range(n_inner)]
        return "+".join(f"{self.cell(left, row, n)}*{self.cell(right, *at)}" for n, at in enumerate(inner))


@dataclass(frozen=True)
class _InCells:
    """The addresses of one operand in a formula: ``{}`` for its cell, ``{.row}`` for its row."""

    cell: str
    row: str
    width: int

    def __format__(self, _way: str) -> str:
        return self.cell


def spreadsheet(sheet: Sheet, language: Language = "en") -> bytes:
    """Return the sheet as the bytes of an .xlsx file."""
    _check_size(sheet)
    stream = BytesIO()
    book = Workbook(stream, {"in_memory": True})
    areas, content = Areas(sheet), data_file(FILE)["spreadsheet"]
    formats = {name: book.add_format(how) for name, how in content["formats"].items()}
    pages = {STEPS: book.add_worksheet(STEPS)}
    if areas.is_wide:
        pages[INPUTS] = book.add_worksheet(INPUTS)
    for page in pages.values():
        page.write_string(0, 0, translate(sheet.title, language), formats["title"])
        page.set_column(0, 0, 24)
        page.set_column(1, max(step.values.shape[1] for step in sheet.steps.values()) + 1, 11)
        page.freeze_panes(1, 1)
    for name, step in sheet.steps.items():
        _write(pages[areas.of[name].page], sheet, step, areas, formats, language)
    _write_readme(book.add_worksheet(README), sheet, areas, formats, language)
    pages[STEPS].activate()
    book.close()
    return stream.getvalue()


def _check_size(sheet: Sheet) -> None:
    n_tokens, given = max(len(sheet.tokens), len(sheet.key_tokens)), sheet.matrices
    width = given["X"].shape[1] if "X" in given else max(each.shape[1] for each in given.values())
    head_width = given["Q"].shape[1] if "Q" in given else 0
    sizes, most = (n_tokens, width, head_width), (MOST_TOKENS, MOST_WIDTH, MOST_HEAD_WIDTH)
    if any(size > limit for size, limit in zip(sizes, most, strict=True)):
        raise UsageError(
            "a spreadsheet of {n} tokens, {width:,} numbers per token and {head:,} per head is too large to be "
            "readable (at most {most}); shorten the text, or use the page or the JSON output",
            n=n_tokens,
            width=width,
            head=head_width,
            most=most,
        )


def _write(page: Any, sheet: Sheet, step: SheetStep, areas: Areas, formats: dict[str, Any], language: Language) -> None:
    """Write one matrix: title, labels, and numbers or formulas."""
    area = areas.of[step.name]
    page.write_string(area.row - 2, 0, translate(step.title, language), formats["step"])
    for place, label in enumerate(step.columns):
        page.write_string(area.row - 1, area.column + place, translate(label, language), formats["label"])
    for place, label in enumerate(step.rows):
        page.write_string(area.row + place, 0, translate(label, language), formats["token"])
    kind = "given" if step.operation is None else "result" if step.name == list(sheet.steps)[-1] else "formula"
    for (row, column), value in np.ndenumerate(step.values):
        where = (area.row + row, area.column + column)
        if step.operation is None:
            page.write_number(*where, value, formats[kind])
            continue
        formula, shown = areas.formula(step.operation, row, column), MINUS_INFINITY if value == -np.inf else value
        page.write_formula(*where, f"={formula}", formats[kind], shown)
    if step.name.startswith(("weights", "chances")):
        last = (area.row + area.height - 1, area.column + area.width - 1)
        shading = {"type": "2_color_scale", "min_color": "#ffffff", "max_color": "#8fcdb4"}
        page.conditional_format(area.row, area.column, *last, {**shading, "min_type": "num", "min_value": 0})


def _write_readme(page: Any, sheet: Sheet, areas: Areas, formats: dict[str, Any], language: Language) -> None:
    page.set_column(0, 0, 90)
    values = {
        "page": INPUTS if areas.is_wide else STEPS,
        "text": sheet.text if sheet.target is None else f"{sheet.text} → {sheet.target}",
    }
    lines: list[Text] = [
        bilingual(text, values)
        for name, text in data_file(FILE)["spreadsheet"]["readme"].items()
        if name != ("by" if sheet.place else "by_model") and not (name == "output" and sheet.heading)
    ]
    page.write_string(0, 0, translate(sheet.title, language), formats["title"])
    for row, line in enumerate((*lines[:-1], *sheet.remarks, lines[-1]), 2):
        page.write_string(row, 0, translate(line, language), formats["about"])
