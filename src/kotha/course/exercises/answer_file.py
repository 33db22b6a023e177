"""A file of somebody's answers: kept after each question, gone on from, handed in; and a class's files in one table.

It says who, which questions and numbers, and everything that was typed; the points are counted anew from that by
whoever reads it, so a file cannot claim more than its answers are worth. Who typed them, no file can show. Two files
with the same questions and the same typed answers are pointed out; a teacher looks, the program does not judge.
"""

import csv
import io
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from kotha.course.exercises.judging import Outcome, Summary, mark
from kotha.course.exercises.selection import QuestionChoice
from kotha.errors import DataError, KothaError
from kotha.i18n.message import Message
from kotha.i18n.numbers import Language
from kotha.storage.atomic import atomic_write
from kotha.storage.json_files import as_json, read_table

COLUMNS = ("name", "sheet", "points", "possible", "percent", "right", "asked", "note", "file")
_KIND, _VERSION = "kotha-exercise", 1
_MOST_BYTES, _MOST_TRIES, _LONGEST = 4 << 20, 2, 20_000


@dataclass(frozen=True)
class GivenAnswer:
    """What was typed for one question."""

    question: str
    tries: tuple[str, ...]
    hints: int


@dataclass(frozen=True)
class AnswerFile:
    """Whose answers, to which questions."""

    name: str
    language: Language
    choice: QuestionChoice
    answers: tuple[GivenAnswer, ...] = ()

    def with_answer(self, outcome: Outcome) -> "AnswerFile":
        """The same, and one more."""
        return replace(self, answers=(*self.answers, GivenAnswer(outcome.question, outcome.tries, outcome.hints)))

    def outcomes(self) -> tuple[Outcome, ...]:
        """Every answer marked anew."""
        known = {question.id: question for question in self.choice.prepare()}
        unknown = [answer.question for answer in self.answers if answer.question not in known]
        if unknown:
            raise DataError("the file has answers to questions that were not asked: {questions}", questions=unknown[:5])
        return tuple(mark(known[each.question], each.tries, each.hints, self.language) for each in self.answers)

    def save(self, path: Path) -> None:
        """Write it, whole or not at all."""
        atomic_write(path, as_json({"kind": _KIND, "version": _VERSION, **asdict(self)}, 1) + "\n", ".json")


def read(path: Path) -> AnswerFile:
    """The answers in a file of the tutor."""
    told = read_table(path, DataError, _MOST_BYTES)
    found = (told.get("kind"), told.get("version"))
    if found != (_KIND, _VERSION):
        raise DataError(
            "{path} is not an answer file of kotha inside exercise, version {known} (found {found!r}, "
            "version {version!r})",
            path=path,
            known=_VERSION,
            found=found[0],
            version=found[1],
        )
    try:
        answers = tuple(_answer(each) for each in told["answers"])
        language: Language = "bn" if told["language"] == "bn" else "en"
        record = AnswerFile(str(told["name"]), language, QuestionChoice.from_dict(told["choice"]), answers)
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        raise DataError(
            "{path}: the answer file is incomplete or invalid: {why}", path=path, why=repr(error)
        ) from error
    if len({answer.question for answer in answers}) < len(answers):
        raise DataError("{path}: the answer file has the same question twice", path=path)
    return record


def _answer(told: Mapping[str, Any]) -> GivenAnswer:
    tries = tuple(str(each)[:_LONGEST] for each in told["tries"])
    hints = int(told["hints"])
    if len(tries) > _MOST_TRIES or hints < 0:
        raise ValueError(f"{len(tries)} tries and {hints} hints are not possible")
    return GivenAnswer(str(told["question"]), tries, hints)


# -- a class -----------------------------------------------------------------------------------------------------------


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
