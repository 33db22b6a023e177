"""The sheet as one offline page: every matrix a table, its arithmetic below it."""

from kotha.inside.worksheet.sheet import Sheet
from kotha.inside.worksheet.shown import Look, show
from kotha.page import Page

_LEAD = (
    "What one attention head does, as arithmetic: each number is worked out from those above it, and each was compared "
    "with what torch computes. Q[2,1] is row 2, column 1."
)
# A sheet of a model has many lines of arithmetic a step; more than this are folded.
_OPEN_LINES = 12


def worksheet_page(sheet: Sheet, look: Look) -> str:
    """The HTML of a sheet."""
    page = Page(sheet_title(sheet), _LEAD)
    page.story(sheet.text if sheet.target is None else f"{sheet.text}\n→ {sheet.target}")
    for remark in sheet.remarks:
        page.note(remark)
    for number, step in enumerate(show(sheet, look), 1):
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


def sheet_title(sheet: Sheet) -> str:
    """What a sheet is of, in a line."""
    if not sheet.place:
        return "Self-attention by hand"
    return f"Worksheet: {sheet.place}, head {sheet.head}"
