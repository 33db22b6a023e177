"""The answers of a class, marked again from what was typed, in one table.

Two files with the same questions and the same typed answers are pointed out; a teacher looks, the program does not
judge.
"""

import csv
import io
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from kotha.course.exercises.answer_file import read
from kotha.course.exercises.judging import Outcome, Summary
from kotha.errors import KothaError
from kotha.i18n.message import Message

COLUMNS = ("name", "sheet", "points", "possible", "percent", "right", "asked", "note", "file")


@dataclass(frozen=True)
class FileScore:
    """What a file of answers comes to when it is marked again."""

    file: str
    name: str = ""
    sheet: str = ""
    points: float = 0.0
    possible: float = 0.0
    right: int = 0
    asked: int = 0
    remark: Message | None = None  # what a teacher should know of it
    by_question: tuple[Outcome, ...] = ()

    @property
    def percent(self) -> float:
        """Of what the questions are worth; a bonus may lead beyond a hundred."""
        return round(100 * self.points / self.possible, 1) if self.possible else 0.0

    @property
    def note(self) -> str:
        """What a teacher should know of it, in English, as files have it."""
        return "" if self.remark is None else str(self.remark)

    def parts(self) -> list[str]:
        """Question by question, in lines."""
        return [
            f"{each.question:<9} {each.points:g} / {each.possible}{'  ' if each.said else ''}{' '.join(each.said)}"
            for each in self.by_question
        ]

    def to_dict(self) -> dict[str, Any]:
        """Ready for JSON."""
        plain = {name: getattr(self, name) for name in COLUMNS}
        return {**plain, "answers": list(map(vars, self.by_question))}


def read_class(files: Sequence[Path]) -> list[FileScore]:
    """A row for each file, by name; what cannot be read has a row that says so, and by itself is refused."""
    seen: dict[Any, FileScore] = {}
    found = []
    for file in files:
        try:
            row = _marked(file)
        except KothaError as error:
            if len(files) == 1:
                raise
            row = FileScore(str(file), remark=Message(error.template, **error.values))
        typed = tuple((each.question, each.tries) for each in row.by_question)
        twin = seen.setdefault((row.sheet, typed), row) if typed else row
        same = Message("the same sheet and answers as {who}", who=twin.name or twin.file)
        found.append(row if twin is row else replace(row, remark=same))
    return sorted(found, key=lambda row: (row.name, row.file))


def _marked(file: Path) -> FileScore:
    kept = read(file)
    summary = Summary(kept.outcomes(), kept.choice.prepare())
    asked = len(summary.questions)
    missing = asked - len(summary.outcomes)
    return FileScore(
        str(file),
        kept.name,
        kept.choice.sheet,
        summary.points,
        summary.worth,
        summary.right,
        asked,
        Message("{n} questions not reached", n=missing) if missing else None,
        summary.outcomes,
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
