"""A sheet to look at, and as one offline page: to be worked on as in the studio's By hand, and with a score file.

A page holds numbers and, in both languages, titles and labels; what grades, hints and finds the mistake is the studio's
own (``web/src/rooms/hand``). Of a model's head the part that a pencil can do is asked for, and more is shown.
"""

import hashlib
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from kotha.course.worksheet.papers import for_paper
from kotha.course.worksheet.sheet import Sheet
from kotha.course.worksheet.showing import Shown, as_json, plain, show
from kotha.course.worksheet.spreadsheet import spreadsheet
from kotha.errors import UsageError
from kotha.i18n.catalogue import translate
from kotha.i18n.message import Message, Option, Text
from kotha.i18n.numbers import LANGUAGES, Language
from kotha.inside.view import View
from kotha.report.single_file import sheet_page
from kotha.storage.atomic import atomic_file


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


def sheet_view(
    sheet: Sheet, *, language: Language = "en", rows: int | None = None, precision: int | None = None
) -> SheetView:
    """A sheet to look at.

    ``rows`` are those whose arithmetic is written out, counted from the last (default: all of a small matrix, one of
    a large one); ``precision`` is how many decimals are shown, of small numbers how many digits that count.
    """
    if rows is not None and rows < 0:
        raise UsageError("{rows} is less than none; use 0 or more", rows=Option("rows", rows))
    if precision is None:  # a sheet with more numbers than the workshop's has less room for each
        precision = 4 if sheet.place or sheet.heading else 6
    if not 0 <= precision <= 15:
        raise UsageError("{precision} cannot be shown; use 0 to 15 decimals", precision=Option("precision", precision))

    def shown(each: Language) -> tuple[Shown, ...]:
        return tuple(show(sheet, step, precision, rows, each) for step in sheet.steps.values())

    page, told = partial(_page, sheet, shown, language), partial(as_json, sheet, language)
    remarks = tuple(translate(each, language) for each in sheet.remarks)
    return SheetView(translate(sheet.title, language), sheet, page, told, remarks, shown(language), language)


def steps_of(sheet: Sheet) -> list[dict[str, Any]]:
    """The matrices of a sheet and what makes each, ready for JSON; −∞ is null."""
    return [
        {
            "name": step.name,
            "title": str(step.title),
            "rows": list(map(str, step.rows)),
            "columns": list(map(str, step.columns)),
            "values": plain(step.values),
            "operation": None if step.operation is None else step.operation.kind,
            "operands": [] if step.operation is None else list(step.operation.operands),
        }
        for step in sheet.steps.values()
    ]


def _page(sheet: Sheet, shown: Callable[[Language], tuple[Shown, ...]], language: Language) -> str:
    """The HTML of a sheet, in both languages; ``language`` is the one that it opens in."""
    asked, why_not = None, ""
    try:  # all of a sheet that was made for it, of a model's head what a pencil can do
        asked = _in_short(for_paper(sheet) if sheet.place else sheet)
    except UsageError as error:
        why_not = str(error)
    data = {
        "title": _both(sheet.title),
        "lead": _both(Message("{lead} {cells}", lead=_lead(sheet), cells=Message("Q[2,1] is row 2, column 1."))),
        "remarks": {each: [translate(remark, each) for remark in sheet.remarks] for each in LANGUAGES},
        "text": str(sheet.text),
        "target": sheet.target,
        "asked": asked,
        "why_not": why_not,
        "called": sheet.called,
        "solved": [_solved(english, bangla) for english, bangla in zip(shown("en"), shown("bn"), strict=True)],
    }
    data["kept_as"] = hashlib.sha256(repr(asked).encode()).hexdigest()[:16]
    title = translate(sheet.title, language)
    return sheet_page("sheet", title, data, made_by="kotha inside worksheet", language=language)


def _in_short(sheet: Sheet) -> dict[str, Any]:
    """A sheet's steps with as many digits as grading looks at; of the other language the labels that differ."""
    steps, others = steps_of(sheet), []
    for step, made in zip(steps, sheet.steps.values(), strict=True):
        step["values"] = [[None if each is None else float(f"{each:.12g}") for each in row] for row in step["values"]]
        bangla = {name: [translate(each, "bn") for each in getattr(made, name)] for name in ("rows", "columns")}
        others.append({name: labels for name, labels in bangla.items() if labels != step[name]})
    return {"en": steps, "bn": others}


def _lead(sheet: Sheet) -> Text:
    if sheet.place:
        return Message(
            "What one attention head does, as arithmetic: each number is worked out from those above it, "
            "and each was compared with what torch computes."
        )
    return sheet.lead or Message(
        "What one attention head does, as arithmetic: each number is worked out from those above it."
    )


def _both(text: Text) -> dict[str, str]:
    return {each: translate(text, each) for each in LANGUAGES}


def _labels(english: list[str], bangla: list[str]) -> dict[str, list[str]]:
    """Labels by language; once where they are the same."""
    return {"en": english} if english == bangla else {"en": english, "bn": bangla}


def _solved(english: Shown, bangla: Shown) -> dict[str, Any]:
    """A step that is worked out, with what is said of it in each language; its numbers are the same."""
    return {
        "given": english.is_given,
        "cells": [row[1:] for row in english.rows],
        "shares": english.shares,
        "sums": english.sums,
        "columns": _labels(english.header[1:], bangla.header[1:]),
        "rows": _labels([row[0] for row in english.rows], [row[0] for row in bangla.rows]),
        "title": {"en": english.title, "bn": bangla.title},
        "remark": {"en": english.remark, "bn": bangla.remark},
    }
