"""Score files, marked again from the answers up: what a pupil did on a sheet, or answered to the tutor; a class's.

The page writes its own kind (``web/src/math/score.ts``): the numbers that were given, and for each cell what was typed,
how many hints were taken and whether the machine filled it in. Here the sheet is computed anew, every answer graded
anew, and the points counted anew; nothing that the file says of itself is believed. The checksum finds what was changed
by accident. It is no proof: whoever can write a file can write its checksum.

In a class, two files with one sheet and the same typed answers are pointed out; a teacher looks, the program does not
judge.
"""

import csv
import io
import json
import math
import re
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from kotha.course.exercises import record
from kotha.course.exercises.grading import Expected, Verdict, grade, readings, worked_sum
from kotha.course.exercises.judging import Outcome, Summary
from kotha.course.worksheet.operations import Array, written
from kotha.course.worksheet.papers import PAPERS, paper_sheet, workshop_sheet
from kotha.course.worksheet.sheet import Sheet, SheetStep, recomputed, token_names
from kotha.errors import DataError, KothaError, UsageError
from kotha.i18n.catalogue import Messenger, translate
from kotha.i18n.message import Message
from kotha.i18n.numbers import Language

FULL_POINTS = 4
_LEAST, _MOST_LOST_BY_TRIES = 1, 2
# Whoever carries three decimals along, or 1.414 for a root, stays within this.
_CARRIED = 0.0005
_SHOWN_DECIMALS = 4
# Products of numbers that were rounded before; the page knows the same names (``slackOf`` in web/src/math/sheet.ts).
_OF_ROUNDED = ("output", "attended", "wide", "fed", "logits")
_HEADS_NUMBER = re.compile(r"_\d$")
KIND = "kotha-score"
_MOST_SIDE = 12
COLUMNS = ("name", "sheet", "points", "possible", "percent", "right", "asked", "state", "note", "file")
PROOF = Message(
    "Points are counted anew from what was typed. A signature shows that the file comes from a program with the key "
    "and was not changed since by anyone without it; not who did the work, nor how."
)
STATES = {
    "signed": Message("signature fits"),
    "not checked": Message("signed; not checked without the key"),
    "unsigned": Message("not signed"),
    "changed": Message("changed after it was saved, or signed with another key"),
    "unreadable": Message("could not be read"),
}
HEADINGS = tuple(map(Message, ("name", "questions", "points", "percent", "right", "signature", "note")))


@dataclass(frozen=True)
class StepScore:
    """One step of the sheet."""

    name: str
    right: int
    shown: int
    cells: int
    points: int


@dataclass(frozen=True)
class FileScore:
    """What a file of either kind, the tutor's or the page's, comes to when it is marked again."""

    name: str = ""
    sheet: str = ""
    points: float = 0.0
    possible: float = 0.0
    right: int = 0
    asked: int = 0
    state: str = "unreadable"  # whether it can be trusted: signed, unsigned, changed, …
    notes: tuple[Messenger, ...] = ()  # what a teacher should know of it
    by_question: tuple[Outcome, ...] = ()
    steps: tuple[StepScore, ...] = ()  # of the page By hand
    typed: str = ""  # all that was typed, to find two that are alike
    file: str = ""

    @property
    def percent(self) -> float:
        """Of what the questions are worth; a bonus may lead beyond a hundred."""
        return round(100 * self.points / self.possible, 1) if self.possible else 0.0

    @property
    def note(self) -> str:
        """What a teacher should know of it, in English, as files have it."""
        return self.noted("en")

    def noted(self, language: Language) -> str:
        """What a teacher should know of it."""
        return "; ".join(translate(each, language) for each in self.notes)

    def parts(self, language: Language) -> list[str]:
        """Question by question, or step by step, in lines."""
        template = "{name:<9} {right} of {cells} right, {shown} shown, {points} points"
        steps = [translate(Message(template, **vars(step)), language) for step in self.steps]
        return steps + [
            f"{each.question:<9} {each.points:g} / {each.possible}{'  ' if each.said else ''}{' '.join(each.said)}"
            for each in self.by_question
        ]

    def to_dict(self) -> dict[str, Any]:
        """Ready for JSON."""
        plain = {name: getattr(self, name) for name in COLUMNS}
        steps = [vars(step) for step in self.steps]
        return {**plain, "answers": [outcome.to_dict() for outcome in self.by_question], "steps": steps}


def points_for(wrong: int, hints: int, shown: bool) -> int:
    """What a cell brings: all at the first try, less with each wrong one and each hint, nothing if it was shown.

    >>> points_for(0, 0, False), points_for(1, 1, False), points_for(9, 3, False), points_for(0, 0, True)
    (4, 2, 1, 0)
    """
    return 0 if shown else max(_LEAST, FULL_POINTS - min(wrong, _MOST_LOST_BY_TRIES) - hints)


def check_score(told: Mapping[str, Any]) -> FileScore:
    """Grade what a score file of the page tells."""
    record.check_kind(told, KIND)
    try:
        name, called, answers = str(told.get("name", "")), str(told["sheet"]), told["answers"]
        steps, refused = _grade_all(_sheet(told["given"], called), {str(each["cell"]): each for each in answers})
        claimed, typed = int(told["points"]), json.dumps([each["tries"] for each in answers])
        state = "unsigned" if checksum(told) == told.get("checksum") else "changed"
    except (KeyError, TypeError, ValueError, IndexError, UsageError) as error:
        raise DataError("the score file is not whole: {why}", why=repr(error)) from error
    right, cells, points = (sum(getattr(step, name) for step in steps) for name in ("right", "cells", "points"))
    notes = [Message("claims {n} points", n=claimed)] if claimed != points else []
    notes += [Message("not right: {cells}", cells=refused)] if refused else []
    possible = FULL_POINTS * cells
    return FileScore(name, called, points, possible, right, cells, state, tuple(notes), steps=tuple(steps), typed=typed)


def checksum(told: Mapping[str, Any]) -> str:
    """The CRC-32 of what counts, spelled out line by line, so that any program can say it again."""
    lines = [str(told[name]) for name in ("kind", "version", "name", "sheet", "points")]
    lines += [f"{name}:{' '.join(' '.join(row) for row in told['given'][name])}" for name in sorted(told["given"])]
    lines += [
        f"{each['cell']}|{'|'.join(each['tries'])}|{each['hints']}|{each['verdict']}|{each['points']}"
        for each in told["answers"]
    ]
    return f"{zlib.crc32(chr(10).join(lines).encode()):08x}"


def _sheet(given: Mapping[str, Any], name: str) -> Sheet:
    """The sheet of the numbers that a file gives, each a text; one with a name has its own steps."""
    matrices = {each: _matrix(rows) for each, rows in given.items()}
    paper = next((each for each in PAPERS if each == name.split(",")[0]), None)
    if paper is not None:
        return recomputed(paper_sheet(paper), matrices)
    return workshop_sheet(matrices, token_names(len(matrices["X"])))


def _matrix(rows: Any) -> Array:
    matrix = np.array([[float(value) for value in row] for row in rows])
    if matrix.ndim != 2 or max(matrix.shape) > _MOST_SIDE or not np.isfinite(matrix).all():
        raise ValueError("the given numbers are no matrices")
    return matrix


def _grade_all(sheet: Sheet, answers: Mapping[str, Any]) -> tuple[list[StepScore], list[str]]:
    """Each step, and the cells that are not as right as the file says."""
    own = {name: _as_shown(step.values) for name, step in sheet.steps.items()}
    scores, refused = [], []
    for step in sheet.steps.values():
        if step.operation is None:
            continue
        from_own = step.operation.compute(own)
        right = shown = points = 0
        for at in np.ndindex(step.values.shape):
            cell, truth = f"{step.name}[{at[0] + 1},{at[1] + 1}]", float(step.values[at])
            answer = answers.get(cell)
            if answer is None or answer["verdict"] not in ("right", "shown"):
                continue
            tries, hints = [str(each) for each in answer["tries"]], int(answer["hints"])
            if answer["verdict"] == "shown":
                shown += 1
            elif tries and _is_right(step, tries[-1], truth, float(from_own[at])):
                right += 1
                points += points_for(len(tries) - 1, hints, shown=False)
                own[step.name][at] = _typed(tries[-1], truth)
            else:
                refused.append(cell)
        scores.append(StepScore(step.name, right, shown, step.values.size, points))
    return scores, refused


def _is_right(step: SheetStep, typed: str, *values: float) -> bool:
    """Whether an answer fits the true number, or what one's own earlier numbers lead to."""
    rounded = _HEADS_NUMBER.sub("", step.name) in _OF_ROUNDED
    carried = 0.0 if step.operation is not None and step.operation.is_product and not rounded else _CARRIED
    return any(grade(typed, Expected((value,), slack=carried)).verdict is Verdict.RIGHT for value in values)


def _typed(text: str, value: float) -> float:
    """The number to go on with: as it was typed."""
    if value == -math.inf:  # which -999 stands for
        return value
    worked = worked_sum(text)
    return worked if worked is not None else next((way[0].value for way in readings(text) if len(way) == 1), value)


def _as_shown(values: Array) -> Array:
    """Numbers as the page shows them where one has none of one's own."""
    shown = np.vectorize(lambda value: float(written(value, _SHOWN_DECIMALS).replace("−", "-").replace("∞", "inf")))
    rounded: Array = shown(values).astype(np.float64)
    return rounded


def read_class(files: Sequence[Path], key: bytes = b"") -> list[FileScore]:
    """A row for each file, by name; what cannot be read has a row that says so."""
    seen: dict[tuple[str, str], FileScore] = {}
    found = []
    for file in files:
        try:
            told = record.read(file)
            row = check_score(told) if told.get("kind") == KIND else _of_tutor(told, key)
        except KothaError as error:
            row = FileScore(notes=(error,))
        row = replace(row, file=str(file))
        twin = seen.setdefault((row.sheet, row.typed), row) if row.typed else row
        same = Message("the same sheet and answers as {who}", who=twin.name or twin.file)
        found.append(row if twin is row else replace(row, notes=(same,)))
    return sorted(found, key=lambda row: (row.name, row.file))


def _of_tutor(told: Mapping[str, Any], key: bytes) -> FileScore:
    kept = record.parse(told)
    summary = Summary(kept.outcomes(), kept.choice.prepare())
    asked = len(summary.questions)
    missing = asked - len(summary.outcomes)
    state = "unsigned" if record.is_sound(told) else "changed"
    if told.get("signed") is True:
        state = "not checked" if not key else "signed" if record.is_sound(told, key) else "changed"
    return FileScore(
        kept.name,
        kept.choice.sheet,
        summary.points,
        summary.worth,
        summary.right,
        asked,
        state,
        (Message("{n} questions not reached", n=missing),) if missing else (),
        summary.outcomes,
        typed=json.dumps([each.tries for each in kept.answers]) if kept.answers else "",
    )


def as_csv(rows: Sequence[FileScore]) -> str:
    """The table for a spreadsheet: one line a file, and behind it a column for each question that anybody was asked.

    A name that a spreadsheet would take for a formula gets an apostrophe before it.
    """
    asked = list(dict.fromkeys(outcome.question for row in rows for outcome in row.by_question))
    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow([*COLUMNS, *asked])
    for row in rows:
        by_question = {outcome.question: outcome.points for outcome in row.by_question}
        cells = [getattr(row, name) for name in COLUMNS] + [by_question.get(question, "") for question in asked]
        writer.writerow([_harmless(cell) for cell in cells])
    return stream.getvalue()


def _harmless(cell: Any) -> Any:
    return f"'{cell}" if isinstance(cell, str) and cell[:1] in ("=", "+", "-", "@", "\t", "\r") else cell
