"""The tutor: automatically graded questions, the same questions on paper with an answer key, and a class's results."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from kotha.course.exercises.answer_file import AnswerFile, FileScore, as_csv, read, read_class
from kotha.course.exercises.grading import Outcome
from kotha.course.exercises.selection import QuestionChoice as QuestionChoice
from kotha.course.exercises.tutor import RULES, Quiz, key_dict, paper_lines
from kotha.errors import UsageError
from kotha.i18n.catalogue import translate
from kotha.i18n.message import Message, Option, Text
from kotha.i18n.numbers import Language
from kotha.report.table import Table
from kotha.storage.atomic import atomic_write

_HEADINGS = tuple(map(Message, ("name", "questions", "points", "percent", "right", "note")))


def on_paper(choice: QuestionChoice, language: Language, *, key: bool) -> tuple[dict[str, Any], Iterable[str]]:
    """Return the questions as JSON and as lines, with their answers if ``key`` is set."""
    questions = choice.prepare()
    record = {"choice": asdict(choice), "questions": key_dict(questions, language, key)}
    return record, paper_lines(questions, language, key)


def practise(
    choice: QuestionChoice,
    language: Language,
    read: Callable[[str], str | None],
    tell: Callable[[str], None],
    *,
    tries: int = 1,
    progress: Path | None = None,
    name: str | None = None,
) -> dict[str, Any]:
    """Ask the chosen questions, grade the answers, and return a summary.

    The answers are saved with the ``name`` in the file ``progress``; the next call resumes from this file.
    """
    if progress is None and name is not None:
        raise UsageError(
            "{name} applies only to an answer file; specify one with {progress}",
            name=Option("name"),
            progress=Option("progress"),
        )
    record = _begin(choice, language, progress, name)

    def keep(outcome: Outcome) -> None:
        nonlocal record
        record = record.with_answer(outcome)
        if progress is not None:
            record.save(progress)

    tell(translate(RULES, language))
    summary = Quiz(language, read, tell, tries, keep).ask_all(record.choice.prepare(), record.outcomes())
    if progress is not None:
        record.save(progress)
    settings = {"language": language, "preset": record.choice.preset}
    return {**settings, "choice": asdict(record.choice), **summary.to_dict()}


def _begin(choice: QuestionChoice, language: Language, path: Path | None, name: str | None) -> AnswerFile:
    """Open the answer file to resume from, or a new one."""
    if path is None or not path.exists():
        return AnswerFile(name or "", language, choice)
    record = read(path)
    if choice not in (QuestionChoice(), record.choice):
        raise UsageError(
            "{path} contains other questions ({sheet}, {wanted}); use a new file",
            path=path,
            sheet=record.choice.sheet,
            wanted=record.choice.questions,
        )
    if name not in (None, record.name):
        raise UsageError(
            "{path} belongs to {owner}, not to {name}; use a new file",
            path=path,
            owner=record.name or Message("nobody"),
            name=name,
        )
    return record


def mark_class(files: Sequence[Path], csv: Path | None = None) -> list[FileScore]:
    """Regrade the answers in answer files; if ``csv`` is given, also write the table to this file."""
    rows = read_class(files)
    if csv is not None:
        atomic_write(csv, as_csv(rows), ".csv")
    return rows


def class_table(rows: Sequence[FileScore]) -> list[Table | Text]:
    """Return a table with a row for each file and, for a single file, its questions."""
    cells: list[list[Text]] = [
        [
            row.name or "–",
            row.sheet,
            f"{row.points:g} / {row.possible:g}",
            f"{row.percent:g}%",
            f"{row.right} / {row.asked}",
            row.remark or "",
        ]
        for row in rows
    ]
    parts = [f"  {part}" for part in rows[0].parts()] if len(rows) == 1 else []
    remark = Message("Points are recomputed from the answers in the files; a file does not prove who typed them.")
    return [Table("", _HEADINGS, cells, [remark]), *parts]
