"""A class's score files in one table: those of the tutor and those of the page By hand, marked anew.

Two files with one sheet and the same typed answers are pointed out; a teacher looks, the program does not judge.
"""

import csv
import io
import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from kotha.course.exercises import record, score
from kotha.course.exercises.outcome import Summary
from kotha.course.exercises.score import COLUMNS, FileScore
from kotha.errors import KothaError
from kotha.i18n.message import Message

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
HEADINGS = (
    Message("name"),
    Message("questions"),
    Message("points"),
    Message("percent"),
    Message("right"),
    Message("signature"),
    Message("note"),
)


def read_class(files: Sequence[Path], key: bytes = b"") -> list[FileScore]:
    """A row for each file, by name; what cannot be read has a row that says so."""
    seen: dict[tuple[str, str], FileScore] = {}
    found = []
    for file in files:
        try:
            told = record.read_json(file)
            of_page = isinstance(told, dict) and told.get("kind") == score.KIND
            row = score.check_score(told) if of_page else _of_tutor(told, key)
        except KothaError as error:
            row = FileScore(notes=(error,))
        row = replace(row, file=str(file))
        twin = seen.setdefault((row.sheet, row.typed), row) if row.typed else row
        same = Message("the same sheet and answers as {who}", who=twin.name or twin.file)
        found.append(row if twin is row else replace(row, notes=(same,)))
    return sorted(found, key=lambda row: (row.name, row.file))


def _of_tutor(told: Any, key: bytes) -> FileScore:
    kept = record.parse(told)
    _, questions = kept.choice.prepare()
    summary = Summary.of(kept.outcomes(), questions)
    missing = len(questions) - len(summary.outcomes)
    state = "unsigned" if record.is_sound(told) else "changed"
    if told.get("signed") is True:
        state = "not checked" if not key else "signed" if record.is_sound(told, key) else "changed"
    return FileScore(
        kept.name,
        kept.choice.sheet,
        summary.points,
        summary.possible or sum(question.points for question in questions),
        summary.right,
        len(questions),
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
