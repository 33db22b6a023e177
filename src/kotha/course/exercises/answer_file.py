"""A file of somebody's answers: kept after each question, gone on from, handed in, and checked again.

It says who, which questions and numbers, and everything that was typed; the points are counted anew from that by
whoever reads it, so a file cannot claim more than its answers are worth. Who typed them, no file can show.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from kotha.course.exercises.judging import Outcome, mark
from kotha.course.exercises.selection import QuestionChoice
from kotha.errors import DataError
from kotha.i18n.numbers import Language
from kotha.storage.atomic import atomic_write
from kotha.storage.json_files import as_json, read_table

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
            raise DataError("the file answers questions that were not asked: {questions}", questions=unknown[:5])
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
            "{path}: no file of the tutor's answers, version {known}: this is {found!r}, version {version!r}",
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
        raise DataError("{path}: the file of answers is not whole: {why}", path=path, why=repr(error)) from error
    if len({answer.question for answer in answers}) < len(answers):
        raise DataError("{path}: the file of answers has a question twice", path=path)
    return record


def _answer(told: Mapping[str, Any]) -> GivenAnswer:
    tries = tuple(str(each)[:_LONGEST] for each in told["tries"])
    hints = int(told["hints"])
    if len(tries) > _MOST_TRIES or hints < 0:
        raise ValueError(f"{len(tries)} tries and {hints} hints are not possible")
    return GivenAnswer(str(told["question"]), tries, hints)
