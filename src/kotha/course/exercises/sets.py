"""The questions of a set, with points, hints and slips; and all that says which questions somebody was asked.

A ``QuestionChoice`` is a few words and numbers, so it can be kept in a file: from it the same questions, with the same
numbers, are made again, by the student who goes on and by the teacher who checks.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, fields, replace
from functools import lru_cache
from typing import Any, Literal, get_args

from kotha.course.exercises import assessment, points
from kotha.course.exercises.assessment import assessment_questions
from kotha.course.exercises.attention import attention_questions
from kotha.course.exercises.counts import count_questions
from kotha.course.exercises.flow import flow_questions
from kotha.course.exercises.reflection import reflection_questions
from kotha.course.exercises.setting import Question, Setting, make_setting
from kotha.course.exercises.slips import slips_of
from kotha.errors import DataError, UsageError
from kotha.i18n.numbers import ascii_digits
from kotha.i18n.wording import Words

SetName = Literal["workshop", "assessment"]
_COUNT = Words("A good answer names {needed} things.", "ভালো উত্তরে {needed}টি বিষয় থাকে।")


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


def all_questions(setting: Setting, set: SetName = "workshop") -> list[Question]:
    """A set's questions, part by part, with answers for these sizes."""
    if set == "assessment":
        return _finished(list(assessment_questions(setting)), setting, assessment.POINTS)
    rooms = (attention_questions, flow_questions, count_questions, reflection_questions)
    return _finished([question for room in rooms for question in room(setting)], setting, points.WORKSHOP)


def _finished(questions: list[Question], setting: Setting, worth: Mapping[int, int]) -> list[Question]:
    """Questions with their points, and with what each says of its slips and its rubric."""
    shares = dict(_shares(questions, worth))
    return [
        replace(
            each,
            points=shares[each.id],
            bonus=worth is points.WORKSHOP and each.number in points.BONUS,
            slips=() if each.expected is None or each.step else slips_of(each, setting),
            hints=each.hints or _of_rubric(each),
        )
        for each in questions
    ]


def _shares(questions: list[Question], worth: Mapping[int, int]) -> Iterator[tuple[str, int]]:
    for number, whole in worth.items():
        parts = [each for each in questions if each.number == number]
        shared = points.share_out(whole, [each.weight for each in parts])
        yield from zip((each.id for each in parts), shared, strict=True)


def _of_rubric(question: Question) -> tuple[Words, ...]:
    if question.rubric is None or question.order is not None:
        return ()
    return _COUNT.fill(needed=question.rubric.needed), question.rubric.lead


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
            raise UsageError(f"there is no question {wanted!r}; use all or 1 to {last}")
        raise UsageError(f"there is no question {wanted!r}; use all, 1 to {last}, or a part such as 7c or 10a")
    return chosen
