"""Answer files: a student's answers, saved after each question, so that a quiz can be resumed and handed in.

A file holds the student's name, the questions with their numbers, and everything that was typed. Points are recomputed
from these answers whenever the file is read, so editing the points in a file has no effect. An answer file does not
prove who typed the answers. Files with the same questions and the same answers are reported, so that a teacher can
check them.
"""

import csv
import io
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from kotha.course.exercises.grading import Outcome, Summary, mark
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
    """The answers typed for one question."""

    question: str
    tries: tuple[str, ...]
    hints: int


@dataclass(frozen=True)
class AnswerFile:
    """A student's answers, with the questions that they belong to."""

    name: str
    language: Language
    choice: QuestionChoice
    answers: tuple[GivenAnswer, ...] = ()

    def with_answer(self, outcome: Outcome) -> "AnswerFile":
        """Return a copy with one more answer."""
        return replace(self, answers=(*self.answers, GivenAnswer(outcome.question, outcome.tries, outcome.hints)))

    def outcomes(self) -> tuple[Outcome, ...]:
        """Grade all answers again."""
        known = {question.id: question for question in self.choice.prepare()}
        unknown = [answer.question for answer in self.answers if answer.question not in known]
        if unknown:
            raise DataError("the file has answers to questions that were not asked: {questions}", questions=unknown[:5])
        return tuple(mark(known[each.question], each.tries, each.hints, self.language) for each in self.answers)

    def save(self, path: Path) -> None:
        """Write the file, atomically."""
        atomic_write(path, as_json({"kind": _KIND, "version": _VERSION, **asdict(self)}, 1) + "\n", ".json")


def read(path: Path) -> AnswerFile:
    """Read an answer file."""
    data = read_table(path, DataError, _MOST_BYTES)
    found = (data.get("kind"), data.get("version"))
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
        answers = tuple(_answer(each) for each in data["answers"])
        language: Language = "bn" if data["language"] == "bn" else "en"
        record = AnswerFile(str(data["name"]), language, QuestionChoice.from_dict(data["choice"]), answers)
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        raise DataError(
            "{path}: the answer file is incomplete or invalid: {why}", path=path, why=repr(error)
        ) from error
    if len({answer.question for answer in answers}) < len(answers):
        raise DataError("{path}: the answer file contains the same question twice", path=path)
    return record


def _answer(entry: Mapping[str, Any]) -> GivenAnswer:
    tries = tuple(str(each)[:_LONGEST] for each in entry["tries"])
    hints = int(entry["hints"])
    if len(tries) > _MOST_TRIES or hints < 0:
        raise ValueError(f"{len(tries)} tries and {hints} hints are not possible")
    return GivenAnswer(str(entry["question"]), tries, hints)


# -- a class -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class FileScore:
    """The score of an answer file, computed by grading its answers again."""

    file: str
    name: str = ""
    sheet: str = ""
    points: float = 0.0
    possible: float = 0.0
    right: int = 0
    asked: int = 0
    remark: Message | None = None  # note for the teacher
    by_question: tuple[Outcome, ...] = ()

    @property
    def percent(self) -> float:
        """Points as a percentage of the possible points; with bonus points it can exceed 100."""
        return round(100 * self.points / self.possible, 1) if self.possible else 0.0

    @property
    def note(self) -> str:
        """The remark in English, as it is written to exported files."""
        return "" if self.remark is None else str(self.remark)

    def parts(self) -> list[str]:
        """Return one line for each question."""
        return [
            f"{each.question:<9} {each.points:g} / {each.possible}  {' '.join(each.feedback)}".rstrip()
            for each in self.by_question
        ]

    def to_dict(self) -> dict[str, Any]:
        """Ready for JSON."""
        plain = {name: getattr(self, name) for name in COLUMNS}
        return {**plain, "answers": list(map(vars, self.by_question))}


def read_class(files: Sequence[Path]) -> list[FileScore]:
    """Grade several files, sorted by name.

    An unreadable file gets a row with the error; if it is the only file, the error is raised.
    """
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
    answers = read(file)
    summary = Summary(answers.outcomes(), answers.choice.prepare())
    asked = len(summary.questions)
    missing = asked - len(summary.outcomes)
    return FileScore(
        str(file),
        answers.name,
        answers.choice.sheet,
        summary.points,
        summary.worth,
        summary.right,
        asked,
        Message("{n} questions not reached", n=missing) if missing else None,
        summary.outcomes,
    )


def as_csv(rows: Sequence[FileScore]) -> str:
    """Return the scores as CSV: one line per file, with a column for each question that occurs in any of the files.

    A name that a spreadsheet would read as a formula is prefixed with an apostrophe.
    """
    asked = list(dict.fromkeys(outcome.question for row in rows for outcome in row.by_question))
    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow([*COLUMNS, *asked])
    for row in rows:
        by_question = {outcome.question: outcome.points for outcome in row.by_question}
        cells = [getattr(row, name) for name in COLUMNS] + [by_question.get(question, "") for question in asked]
        writer.writerow([_escaped(cell) for cell in cells])
    return stream.getvalue()


def _escaped(cell: Any) -> Any:
    return f"'{cell}" if isinstance(cell, str) and cell[:1] in ("=", "+", "-", "@", "\t", "\r") else cell
