"""What became of each question, and of all: the same whether the tutor asks, or a teacher checks a file."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from kotha.course.exercises.grading import Verdict
from kotha.course.exercises.judging import Judged, judge
from kotha.course.exercises.questions import Question
from kotha.course.worksheet.sheet import Sheet
from kotha.i18n.catalogue import translate
from kotha.i18n.numbers import Language

# What is mended at a second try counts so much, and each hint takes so much away.
_SECOND_TRY, _HINT_COST = 0.5, 0.1


@dataclass(frozen=True)
class Outcome:
    """What became of one question."""

    question: str
    tries: tuple[str, ...]
    hints: int
    verdict: Verdict
    points: float
    possible: int
    bonus: bool = False
    said: tuple[str, ...] = ()  # of the last answer: mistakes that were recognised, and what is missing
    expected: list[float | None] | None = None  # the right numbers, −∞ as null; None where there are none

    def to_dict(self) -> dict[str, Any]:
        """Ready for JSON; ``typed`` is the last answer."""
        plain = {name: list(value) if isinstance(value, tuple) else value for name, value in vars(self).items()}
        return {**plain, "typed": self.tries[-1] if self.tries else ""}


@dataclass(frozen=True)
class Summary:
    """The whole quiz."""

    outcomes: tuple[Outcome, ...]
    asked: int
    possible: int  # points of all questions, the bonus left out
    right: int  # how many were wholly right
    points: float  # all of them, a bonus among them
    bonus: float  # those that come on top

    @classmethod
    def of(cls, outcomes: Sequence[Outcome], questions: Sequence[Question]) -> "Summary":
        """Of the questions that were answered, and all that were asked."""
        return cls(
            tuple(outcomes),
            len(questions),
            sum(question.points for question in questions if not question.bonus),
            sum(outcome.verdict is Verdict.RIGHT for outcome in outcomes),
            sum(outcome.points for outcome in outcomes),
            sum(outcome.points for outcome in outcomes if outcome.bonus),
        )

    def to_dict(self) -> dict[str, Any]:
        """Ready for JSON."""
        counted = {name: getattr(self, name) for name in ("right", "points", "possible", "bonus")}
        return {
            "questions": self.asked,
            "graded": len(self.outcomes),
            **counted,
            "ended_early": len(self.outcomes) < self.asked,
            "answers": [outcome.to_dict() for outcome in self.outcomes],
        }


def mark(question: Question, tries: tuple[str, ...], hints: int, sheet: Sheet, language: Language) -> Outcome:
    """What answers to a question come to: the same whoever asks, the tutor or a teacher who checks a file."""
    judged = [judge(question, typed, sheet) for typed in tries] or [Judged(Verdict.SKIPPED)]
    best = max(judged, key=lambda each: each.credit) if judged[-1].verdict is not Verdict.SKIPPED else judged[-1]
    credits = [each.credit for each in judged]
    expected = None
    if question.expected is not None:
        expected = [None if value == float("-inf") else value for value in question.expected.values]
    return Outcome(
        question.id,
        tries,
        hints,
        (best if best.credit else judged[-1]).verdict,
        earned(question.points, credits, hints),
        question.points,
        question.bonus,
        tuple(translate(each, language) for each in judged[-1].said),
        expected,
    )


def earned(points: int, credits: Sequence[float], hints: int) -> float:
    """Points for the shares that each try had right, to the half point.

    >>> earned(10, [1.0], 0), earned(10, [0.0, 1.0], 0), earned(10, [0.8, 1.0], 0), earned(10, [1.0], 2)
    (10.0, 5.0, 9.0, 8.0)
    """
    if not credits:
        return 0.0
    mended = max(0.0, max(credits) - credits[0])
    share = (credits[0] + _SECOND_TRY * mended) * max(0.0, 1 - _HINT_COST * hints)
    return math.floor(2 * points * share + 0.5 + 1e-9) / 2
