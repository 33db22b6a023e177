"""A sheet as one offline page: to be worked on as in the studio's By hand, all worked out, and with a score file.

A page holds numbers and, in both languages, titles and labels; what grades, hints and finds the mistake is the studio's
own (``web/src/rooms/hand``). Of a model's head the part that a pencil can do is asked for, and more is shown.
"""

import hashlib
import math
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from kotha.course.exercises.paper import for_paper
from kotha.course.worksheet.sheet import Sheet, SheetStep
from kotha.course.worksheet.showing import Look, Shown, as_json, show
from kotha.course.worksheet.spreadsheet import spreadsheet
from kotha.errors import UsageError
from kotha.i18n.catalogue import translate
from kotha.i18n.message import Message, Text
from kotha.i18n.numbers import LANGUAGES, Language
from kotha.inside.view import View
from kotha.report.single_file import sheet_page
from kotha.storage.atomic import whole_file


@dataclass(frozen=True, repr=False)
class SheetView(View[Sheet]):
    """A sheet to look at; also as a spreadsheet of live formulas."""

    steps: tuple[Shown, ...] = field(default=(), repr=False)
    language: Language = "en"

    def save_spreadsheet(self, path: str | Path) -> Path:
        """Write the sheet as .xlsx, whole or not at all."""
        made = spreadsheet(self.found, self.language)
        with whole_file(Path(path), ".xlsx") as stream:
            stream.buffer.write(made)
        return Path(path)


def sheet_view(sheet: Sheet, look: Look, language: Language = "en", called: str | None = None) -> SheetView:
    """A sheet to look at; ``called`` names it in a score file, and without a name there is none."""
    steps = tuple(show(sheet, step, look, language) for step in sheet.steps.values())
    page, plain = partial(worksheet_page, sheet, look, language, called), partial(as_json, sheet, language)
    remarks = tuple(translate(each, language) for each in sheet.remarks)
    return SheetView(translate(sheet.title, language), sheet, page, plain, remarks, steps, language)


def worksheet_page(sheet: Sheet, look: Look, language: Language = "en", called: str | None = None) -> str:
    """The HTML of a sheet, in both languages; ``language`` is the one that it opens in."""
    shown = {each: [show(sheet, step, look, each) for step in sheet.steps.values()] for each in LANGUAGES}
    asked, why_not = _asked(sheet)
    data = {
        "title": _both(sheet.title),
        "lead": _both(Message("{lead} {cells}", lead=_lead(sheet), cells=Message("Q[2,1] is row 2, column 1."))),
        "remarks": {each: [translate(remark, each) for remark in sheet.remarks] for each in LANGUAGES},
        "text": str(sheet.text),
        "target": sheet.target,
        "asked": None if asked is None else _in_short(asked),
        "why_not": why_not,
        "called": called,
        "solved": [_solved(english, bangla) for english, bangla in zip(shown["en"], shown["bn"], strict=True)],
    }
    data["kept_as"] = hashlib.sha256(repr(data["asked"]).encode()).hexdigest()[:16]
    title = translate(sheet.title, language)
    return sheet_page("sheet", title, data, made_by="kotha inside worksheet", language=language)


def steps_of(sheet: Sheet) -> list[dict[str, Any]]:
    """The matrices of a sheet and what makes each, ready for JSON; −∞ is null."""
    return [
        {
            "name": step.name,
            "title": str(step.title),
            "rows": list(map(str, step.rows)),
            "columns": list(map(str, step.columns)),
            "values": [[None if value == -math.inf else value for value in row] for row in step.values.tolist()],
            "operation": None if step.operation is None else step.operation.kind,
            "operands": [] if step.operation is None else list(step.operation.operands),
        }
        for step in sheet.steps.values()
    ]


def _asked(sheet: Sheet) -> tuple[Sheet | None, str]:
    """What is to be worked out: all of a sheet that was made for it, of a model's head what a pencil can do."""
    if not sheet.place:
        return sheet, ""
    try:
        return for_paper(sheet), ""
    except UsageError as error:
        return None, str(error)


def _in_short(sheet: Sheet) -> dict[str, Any]:
    """A sheet's steps with as many digits as grading looks at; of the other language the labels that differ."""
    steps = steps_of(sheet)
    for step in steps:
        step["values"] = [[None if each is None else float(f"{each:.12g}") for each in row] for row in step["values"]]
    return {"en": steps, "bn": [_other(step, sheet.steps[step["name"]]) for step in steps]}


def _spoken(english: list[str], bangla: list[str]) -> dict[str, list[str]]:
    """Labels by language; once where they are the same."""
    return {"en": english} if english == bangla else {"en": english, "bn": bangla}


def _other(step: dict[str, Any], made: SheetStep) -> dict[str, Any]:
    bangla = {name: [translate(each, "bn") for each in getattr(made, name)] for name in ("rows", "columns")}
    return {name: labels for name, labels in bangla.items() if labels != step[name]}


def _lead(sheet: Sheet) -> Text:
    if sheet.lead:
        return sheet.lead
    if not sheet.place:
        return Message("What one attention head does, as arithmetic: each number is worked out from those above it.")
    return Message(
        "What one attention head does, as arithmetic: each number is worked out from those above it, "
        "and each was compared with what torch computes."
    )


def _both(text: Text) -> dict[str, str]:
    return {each: translate(text, each) for each in LANGUAGES}


def _solved(english: Shown, bangla: Shown) -> dict[str, Any]:
    """A step that is worked out, with what is said of it in each language; its numbers are the same."""
    assert english.sums == bangla.sums, f"{english.name}: arithmetic has no language"
    return {
        "given": english.is_given,
        "cells": [row[1:] for row in english.rows],
        "shares": english.shares,
        "sums": english.sums,
        "columns": _spoken(english.header[1:], bangla.header[1:]),
        "rows": _spoken([row[0] for row in english.rows], [row[0] for row in bangla.rows]),
        "title": {"en": english.title, "bn": bangla.title},
        "remark": {"en": english.remark, "bn": bangla.remark},
    }
