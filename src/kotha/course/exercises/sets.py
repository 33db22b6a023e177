"""Which questions somebody was asked, and about which numbers.

A ``QuestionChoice`` is a few words and numbers, so it can be kept in a file: from it the same questions, with the same
numbers, are made again, by the student who goes on and by the teacher who checks.
"""

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, fields, replace
from functools import lru_cache
from typing import Any, get_args

from kotha.course.exercises.questions import Question, SetName, all_questions
from kotha.course.exercises.setting import Setting, make_setting
from kotha.errors import DataError, UsageError
from kotha.i18n.numbers import ascii_digits


@dataclass(frozen=True)
class QuestionChoice:
    """Which questions, about which numbers."""

    set: SetName = "workshop"
    wanted: str = "all"
    preset: str = "bangla-58m"
    batch_size: int | None = None
    steps: int | None = None
    size: str | None = None
    seed: int | None = None

    def prepare(self) -> tuple[Setting, list[Question]]:
        """The setting, and the questions that were chosen."""
        setting, questions = _prepared(replace(self, wanted="all"))
        return setting, choose(questions, self.wanted)

    def to_dict(self) -> dict[str, Any]:
        """Ready for JSON."""
        return asdict(self)

    @classmethod
    def from_dict(cls, told: Mapping[str, Any]) -> "QuestionChoice":
        """From what a file tells; what is none is refused."""
        known = {field.name: told.get(field.name, field.default) for field in fields(cls)}
        numbers = all(known[name] is None or type(known[name]) is int for name in ("batch_size", "steps", "seed"))
        texts = all(isinstance(known[name], str) for name in ("set", "wanted", "preset"))
        if not (numbers and texts and known["set"] in get_args(SetName) and isinstance(known["size"], str | None)):
            raise DataError("the file does not say which questions were asked")
        return cls(**known)

    @property
    def sheet(self) -> str:
        """Which numbers, in words."""
        drawn = "" if self.seed is None else f", seed {self.seed}"
        return f"{self.set}{'' if self.size is None else f', {self.size}'}{drawn}"


@lru_cache(maxsize=8)
def _prepared(choice: QuestionChoice) -> tuple[Setting, tuple[Question, ...]]:
    """A whole set; a class that has one sheet asks for it once for each file."""
    setting = make_setting(choice.preset, choice.batch_size, choice.steps, choice.size, choice.seed)
    return setting, tuple(all_questions(setting, choice.set))


def choose(questions: Iterable[Question], wanted: str) -> list[Question]:
    """The questions of a number (7), or one part of it (7c), in either digits; or all."""
    known, wanted = list(questions), ascii_digits(wanted).strip().lower()
    if wanted in ("all", "সব"):
        return known
    by_number = wanted.isdigit()
    chosen = [
        each for each in known if (wanted == str(each.number) if by_number else each.id.lower().startswith(wanted))
    ]
    if not chosen:
        last = max(each.number for each in known)
        if last < 10:
            raise UsageError("there is no question {wanted!r}; use all or 1 to {last}", wanted=wanted, last=last)
        raise UsageError(
            "there is no question {wanted!r}; use all, 1 to {last}, or a part such as 7c or 10a",
            wanted=wanted,
            last=last,
        )
    return chosen
