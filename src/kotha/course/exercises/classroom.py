"""A class's score files in one table: those of the tutor and those of the page By hand, marked anew.

Two files with one sheet and the same typed answers are pointed out; a teacher looks, the program does not judge.
"""

import csv
import io
import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from kotha.course.exercises import record, score
from kotha.course.exercises.outcome import Outcome
from kotha.errors import KothaError
from kotha.i18n.catalogue import Messenger, translate
from kotha.i18n.message import Message
from kotha.i18n.numbers import Language

PROOF = Message(
    "Points are counted anew from what was typed. A signature shows that the file comes from a program with the key "
    "and was not changed since by anyone without it; not who did the work, nor how."
)
_STATES = {
    "signed": Message("signature fits"),
    "not checked": Message("signed; not checked without the key"),
    "unsigned": Message("not signed"),
    "changed": Message("changed after it was saved, or signed with another key"),
    "unreadable": Message("could not be read"),
}
HEADINGS = {
    "name": Message("name"),
    "sheet": Message("questions"),
    "points": Message("points"),
    "percent": Message("percent"),
    "right": Message("right"),
    "state": Message("signature"),
    "note": Message("note"),
}
COLUMNS = ("name", "sheet", "points", "possible", "percent", "right", "asked", "state", "note", "file")


@dataclass(frozen=True)
class FileScore:
    """One file."""

    file: str
    name: str
    sheet: str
    points: float
    possible: float
    right: int
    asked: int
    state: str  # one of the states above
    notes: tuple[Messenger, ...] = ()
    by_question: tuple[Outcome, ...] = ()
    steps: tuple[score.StepScore, ...] = ()  # of the page By hand
    typed: str = ""  # all that was typed, to find two that are alike

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

    @property
    def state_words(self) -> Message:
        """Whether it can be trusted, in words."""
        return _STATES[self.state]

    def parts(self, language: Language) -> list[str]:
        """Question by question, or step by step, in lines."""
        steps = [
            Message("{name:<9} {right} of {cells} right, {shown} shown, {points} points", **vars(step))
            for step in self.steps
        ]
        asked = [
            f"{each.question:<9} {each.points:g} / {each.possible}{'  ' if each.said else ''}{' '.join(each.said)}"
            for each in self.by_question
        ]
        return [translate(each, language) for each in steps] + asked

    def to_dict(self) -> dict[str, Any]:
        """Ready for JSON."""
        plain = {name: getattr(self, name) for name in COLUMNS}
        steps = [vars(step) for step in self.steps]
        return {**plain, "answers": [outcome.to_dict() for outcome in self.by_question], "steps": steps}


def read_class(files: Sequence[Path], key: bytes = b"") -> list[FileScore]:
    """A row for each file, by name; what cannot be read has a row that says so."""
    rows = [_row(file, key) for file in files]
    seen: dict[tuple[str, str], FileScore] = {}
    found = []
    for row in rows:
        twin = seen.setdefault((row.sheet, row.typed), row) if row.typed else row
        same = Message("the same sheet and answers as {who}", who=twin.name or twin.file)
        found.append(row if twin is row else replace(row, notes=(same,)))
    return sorted(found, key=lambda row: (row.name, row.file))


def _row(file: Path, key: bytes) -> FileScore:
    try:
        told = record.read_json(file)
        if isinstance(told, dict) and told.get("kind") == score.KIND:
            return _of_page(file, score.check_score(told), told)
        return _of_tutor(file, *record.parse(told), key)
    except KothaError as error:
        return FileScore(str(file), "", "", 0.0, 0.0, 0, 0, "unreadable", (error,))


def _of_tutor(file: Path, kept: record.AnswerFile, told: dict[str, Any], key: bytes) -> FileScore:
    outcomes = kept.outcomes()
    _, questions = kept.choice.prepare()
    possible = sum(question.points for question in questions if not question.bonus)
    right = sum(outcome.verdict == "right" for outcome in outcomes)
    typed = json.dumps([each.tries for each in kept.answers], ensure_ascii=False)
    points = sum(outcome.points for outcome in outcomes)
    missing = len(questions) - len(outcomes)
    return FileScore(
        str(file),
        kept.name,
        kept.choice.sheet,
        points,
        possible or sum(question.points for question in questions),
        right,
        len(questions),
        _state(told, key),
        (Message("{n} questions not reached", n=missing),) if missing else (),
        outcomes,
        typed=typed if kept.answers else "",
    )


def _state(told: dict[str, Any], key: bytes) -> str:
    if told.get("signed") is True:
        return "not checked" if not key else "signed" if record.is_sound(told, key) else "changed"
    return "unsigned" if record.is_sound(told) else "changed"


def _of_page(file: Path, graded: score.Score, told: dict[str, Any]) -> FileScore:
    notes = [Message("claims {n} points", n=graded.claimed)] if graded.claimed != graded.points else []
    notes += [Message("not right: {cells}", cells=graded.refused)] if graded.refused else []
    right, cells = (sum(getattr(step, name) for step in graded.steps) for name in ("right", "cells"))
    typed = json.dumps([each["tries"] for each in told["answers"]], ensure_ascii=False)
    state = "unsigned" if graded.checksum_fits else "changed"
    return FileScore(
        str(file),
        graded.name,
        graded.sheet,
        graded.points,
        graded.possible,
        right,
        cells,
        state,
        tuple(notes),
        steps=graded.steps,
        typed=typed,
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
