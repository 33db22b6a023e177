"""The sheet as one offline page: every matrix a table, its arithmetic below it."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from kotha.files import whole_file
from kotha.inside.view import View
from kotha.inside.worksheet.sheet import Sheet
from kotha.inside.worksheet.shown import Look, Shown, as_json, show
from kotha.inside.worksheet.spreadsheet import spreadsheet
from kotha.page import Page

_LEAD = "What one attention head does, as arithmetic: each number is worked out from those above it{held}. Q[2,1] is "
_LEAD += "row 2, column 1."
_HELD = ", and each was compared with what torch computes"
# A sheet of a model has many lines of arithmetic a step; more than this are folded.
_OPEN_LINES = 12


@dataclass(frozen=True)
class SheetView(View[Sheet]):
    """A sheet to look at; also as a spreadsheet of live formulas."""

    steps: tuple[Shown, ...] = field(default=(), repr=False)
    """Each step as a reader sees it."""

    def save_spreadsheet(self, path: str | Path) -> Path:
        """Write the sheet as .xlsx, whole or not at all."""
        made = spreadsheet(self.found)
        with whole_file(Path(path)) as stream:
            stream.buffer.write(made)
        return Path(path)


def sheet_view(sheet: Sheet, look: Look) -> SheetView:
    """A sheet to look at."""
    steps = tuple(show(sheet, look))
    page, plain = partial(worksheet_page, sheet, steps), partial(as_json, sheet)
    return SheetView(sheet.title, sheet, page, plain, sheet.remarks, steps)


def worksheet_page(sheet: Sheet, steps: Sequence[Shown]) -> str:
    """The HTML of a sheet."""
    page = Page(sheet.title, _LEAD.format(held=_HELD if sheet.place else ""))
    page.story(sheet.text if sheet.target is None else f"{sheet.text}\n→ {sheet.target}")
    for remark in sheet.remarks:
        page.note(remark)
    for number, step in enumerate(steps, 1):
        page.heading(f"{number}. {step.title}")
        page.matrix(step.header, step.rows, step.shares, given=step.is_given)
        if step.remark:
            page.paragraph(step.remark)
        if len(step.sums) > _OPEN_LINES:
            with page.folded(f"the arithmetic of {len(step.sums)} cells"):
                page.sums(step.sums)
        elif step.sums:
            page.sums(step.sums)
    return page.html("Made by kotha inside worksheet. Numbers are rounded to be read, and were not on the way.")
