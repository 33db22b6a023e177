"""A file of somebody's answers: kept after each question, gone on from, handed in, and checked again.

It says who, which questions and numbers, and everything that was typed; the points are counted anew from that by
whoever reads it, so a file cannot claim more than its answers are worth. A keyed digest (HMAC-SHA256) stands over it.
With a teacher's key it shows that the file was written by a program that had the key, and was not changed after by
somebody without it. It does not show who sat there, whether a book or the answer key lay beside, or anything at all
where the student could read the key: a class that needs more than that must be watched. Without a key the digest finds
accidents only.
"""

import hashlib
import hmac
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from kotha.course.exercises.choice import QuestionChoice
from kotha.course.exercises.judging import Outcome, mark
from kotha.errors import DataError, UsageError
from kotha.i18n.numbers import Language
from kotha.storage.atomic import atomic_write
from kotha.storage.json_files import as_json, read_table

KIND, VERSION = "kotha-exercise", 1
_MOST_BYTES, _FEWEST_KEY_BYTES = 4 << 20, 16
_MOST_TRIES, _LONGEST = 2, 20_000


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

    def to_dict(self, key: bytes = b"") -> dict[str, Any]:
        """Ready for JSON, with its digest."""
        told = {"kind": KIND, "version": VERSION, **asdict(self), "signed": bool(key)}
        return {**told, "digest": digest(told, key)}


def digest(told: Mapping[str, Any], key: bytes = b"") -> str:
    """The keyed digest of all that a file tells, but for the digest itself."""
    plain = {name: value for name, value in told.items() if name != "digest"}
    spelled = json.dumps(plain, ensure_ascii=False, sort_keys=True, separators=(",", ":"))
    return hmac.new(key or KIND.encode(), spelled.encode(), hashlib.sha256).hexdigest()


def read_key(path: Path) -> bytes:
    """A key: the bytes of a file, long enough to be none that can be guessed."""
    key = path.read_bytes()
    if len(key) < _FEWEST_KEY_BYTES:
        raise UsageError(
            "{path} has {n} bytes; a key needs {fewest} or more that nobody can guess: "
            "head -c 32 /dev/urandom > class.key",
            path=path,
            n=len(key),
            fewest=_FEWEST_KEY_BYTES,
        )
    return key


def save(record: AnswerFile, path: Path, key: bytes = b"") -> None:
    """Write a record, whole or not at all."""
    atomic_write(path, as_json(record.to_dict(key), 1) + "\n", ".json")


def read(path: Path) -> dict[str, Any]:
    """What a score file of either kind tells."""
    return read_table(path, DataError, _MOST_BYTES)


def check_kind(told: Mapping[str, Any], kind: str) -> None:
    """Refuse what is no file of a kind, or one of another version."""
    if (told.get("kind"), told.get("version")) != (kind, VERSION):
        raise DataError(
            "no score file of the tutor or the page By hand, version {known}: this is {found!r}, version {version!r}",
            known=VERSION,
            found=told.get("kind"),
            version=told.get("version"),
        )


def parse(told: Mapping[str, Any]) -> AnswerFile:
    """A record from what a file tells."""
    check_kind(told, KIND)
    try:
        answers = tuple(_answer(each) for each in told["answers"])
        language: Language = "bn" if told["language"] == "bn" else "en"
        record = AnswerFile(str(told["name"]), language, QuestionChoice.from_dict(told["choice"]), answers)
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        raise DataError("the file of answers is not whole: {why}", why=repr(error)) from error
    if len({answer.question for answer in answers}) < len(answers):
        raise DataError("the file of answers has a question twice")
    return record


def _answer(told: Mapping[str, Any]) -> GivenAnswer:
    tries = tuple(str(each)[:_LONGEST] for each in told["tries"])
    hints = int(told["hints"])
    if len(tries) > _MOST_TRIES or hints < 0:
        raise ValueError(f"{len(tries)} tries and {hints} hints are not possible")
    return GivenAnswer(str(told["question"]), tries, hints)


def is_sound(told: Mapping[str, Any], key: bytes = b"") -> bool:
    """Whether the digest of a file is the one that this key gives."""
    return hmac.compare_digest(str(told.get("digest", "")), digest(told, key))
