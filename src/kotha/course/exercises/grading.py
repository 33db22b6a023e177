"""Grading: the points for an answer, the mistakes that explain lost points, and the score for a quiz.

Numbers are graded cell by cell, and common mistakes are recognized. Answers in words are graded by a rubric, and an
order by its pairs. The tutor and the code that checks answer files both use this module, so an answer earns the same
points in both.
"""

import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations, pairwise
from typing import Any

from kotha.course.exercises.mistakes import diagnose
from kotha.course.exercises.number_comparison import Expected, Grade, Slip, Verdict, grade
from kotha.course.exercises.questions import Question
from kotha.course.exercises.rubric import Flowchart, Rubric, Thing
from kotha.i18n.catalogue import translate
from kotha.i18n.message import Message
from kotha.i18n.numbers import Language, ascii_digits

# The weight of corrections made in a second attempt, and the cost of a hint, both as shares of the points.
_SECOND_TRY, _HINT_COST = 0.5, 0.1


@dataclass(frozen=True)
class GradedAnswer:
    """The fraction of the points that an answer earns, with feedback."""

    verdict: Verdict
    credit: float = 0.0  # the share of the points
    feedback: tuple[Message, ...] = ()  # feedback: recognized mistakes and missing points
    place: int | None = None  # index of the first wrong number
    named: Sequence[Thing] = ()  # rubric items that the answer mentions


def judge(question: Question, typed: str) -> GradedAnswer:
    """Grade a typed answer."""
    if not typed.strip():
        return GradedAnswer(Verdict.SKIPPED)
    if question.expected is not None:
        return _numbers(question, question.expected, typed)
    if question.order is not None:
        return judge_order([int(number) for number in re.findall(r"\d+", ascii_digits(typed))], question.order)
    assert question.rubric is not None, f"question {question.id} has no expected answer"
    return _words(question.rubric, typed)


def _verdict(credit: float) -> Verdict:
    return Verdict.RIGHT if credit == 1 else Verdict.PARTLY if credit > 0 else Verdict.WRONG


def _numbers(question: Question, expected: Expected, typed: str) -> GradedAnswer:
    found, wanted = grade(typed, expected), len(expected.values)
    if found.verdict is Verdict.UNREADABLE:
        return GradedAnswer(found.verdict, feedback=tuple(_how_to_type(expected, len(found.numbers))))
    if found.verdict is Verdict.RIGHT:
        return GradedAnswer(found.verdict, 1.0)
    if not question.step:  # a number close to the right one can still come from a mistake
        slip = [each.words for each in question.slips if each.led_to(found.numbers, expected)][:1]
        return GradedAnswer(Verdict.WRONG if slip else found.verdict, feedback=tuple(slip), place=found.place)
    if found.verdict is Verdict.COARSE:
        return GradedAnswer(found.verdict, place=found.place)
    right = wanted - len(found.wrong)
    counted = [Message("{right} of {all} numbers are right.", right=right, all=wanted)] if right else []
    feedback = (*counted, *_of_cells(question, expected, found))
    return GradedAnswer(_verdict(right / wanted), 1 - len(found.wrong) / wanted, feedback, found.place)


def _how_to_type(expected: Expected, found: int) -> Iterator[Message]:
    """Yield messages about how many numbers are expected and how to type them."""
    wanted, columns = len(expected.values), expected.columns
    yield Message("Numbers found: {found}, numbers expected: {wanted}.", found=found, wanted=wanted)
    if wanted > 1:
        cells = [f"{number}" if expected.exact else f"{number / 10:g}" for number in range(1, wanted + 1)]
        rows = (" ".join(cells[first : first + columns]) for first in range(0, wanted, columns))
        example = " ; ".join(rows) if columns > 1 else " ".join(cells)
        yield Message("Type all of them on one line, a matrix row by row. For example: {example}", example=example)


def _of_cells(question: Question, expected: Expected, found: Grade) -> list[Message]:
    step = question.sheet.steps[question.step]
    height, width = step.values.shape
    transposed = Message("The numbers are right, but you typed them column by column; type them row by row.")
    turned = Slip("turned", question.text, tuple(step.values.T.ravel().tolist()))
    if question.row is None and height != width and turned.led_to(found.numbers, expected):
        return [transposed]
    cells = [divmod(place, width) if question.row is None else (question.row, place) for place in found.wrong]
    numbers = [found.numbers[place] for place in found.wrong]
    return [slip.words for slip in diagnose(question.sheet, step, numbers, cells, expected.slack)]


def judge_order(given: list[int], order: Flowchart) -> GradedAnswer:
    """Compare a typed order with the right one.

    Each pair of pieces counts +1 in the right order and -1 in the wrong order (Kendall's tau). A random order therefore
    earns nothing on average, and swapping two neighbours costs little. Missing pieces earn nothing.
    """
    rank = {number: place for place, number in enumerate(order.numbers)}
    if not given or len(set(given)) != len(given) or not set(given) <= rank.keys():
        how = Message(
            "Type the numbers from 1 to {wanted}, each exactly once, in the right order.", wanted=len(order.pieces)
        )
        return GradedAnswer(Verdict.UNREADABLE, feedback=(how,))
    counted = sum(1 if rank[first] < rank[second] else -1 for first, second in combinations(given, 2))
    credit = max(0.0, counted / math.comb(len(rank), 2))
    swapped = [(first, second) for first, second in pairwise(given) if rank[first] > rank[second]]
    feedback = [Message("Piece {second} comes before piece {first}.", first=a, second=b) for a, b in swapped[:1]]
    if missing := tuple(number for number in order.numbers if number not in given):
        feedback.append(Message("Missing: {pieces}.", pieces=missing))
    return GradedAnswer(_verdict(credit), credit, tuple(feedback))


def _words(rubric: Rubric, typed: str) -> GradedAnswer:
    named, n_named, replies = rubric.read(typed)
    counted = Message("Your answer mentions {named} of {needed} required points.", named=n_named, needed=rubric.needed)
    credit = n_named / rubric.needed
    return GradedAnswer(_verdict(credit), credit, (*replies, *(() if credit == 1 else (counted,))), named=named)


@dataclass(frozen=True)
class Outcome:
    """The result of one question."""

    question: str
    tries: tuple[str, ...]
    hints: int
    verdict: Verdict
    points: float
    possible: int
    bonus: bool = False
    feedback: tuple[str, ...] = ()  # feedback on the last answer
    expected: list[float | None] | None = None  # the right numbers with −∞ as None; None for other kinds of answers


@dataclass(frozen=True)
class Summary:
    """All questions of a quiz, with the outcomes of the answered ones."""

    outcomes: tuple[Outcome, ...]
    questions: Sequence[Question]

    @property
    def possible(self) -> int:
        """Points for all questions, without the bonus."""
        return sum(question.points for question in self.questions if not question.bonus)

    @property
    def worth(self) -> int:
        """The points that count as 100 %: ``possible``, or the bonus points if there are only bonus questions."""
        return self.possible or sum(question.points for question in self.questions)

    @property
    def right(self) -> int:
        """Number of completely correct answers."""
        return sum(outcome.verdict is Verdict.RIGHT for outcome in self.outcomes)

    @property
    def points(self) -> float:
        """Points earned, including the bonus."""
        return sum(outcome.points for outcome in self.outcomes)

    @property
    def bonus(self) -> float:
        """Bonus points earned."""
        return sum(outcome.points for outcome in self.outcomes if outcome.bonus)

    def to_dict(self) -> dict[str, Any]:
        """Ready for JSON."""
        return {
            "questions": len(self.questions),
            "graded": len(self.outcomes),
            **{name: getattr(self, name) for name in ("right", "points", "possible", "bonus")},
            "ended_early": len(self.outcomes) < len(self.questions),
            "answers": list(map(vars, self.outcomes)),
        }


def mark(question: Question, tries: tuple[str, ...], hints: int, language: Language) -> Outcome:
    """Grade all attempts at a question."""
    judged = [judge(question, typed) for typed in tries] or [GradedAnswer(Verdict.SKIPPED)]
    last, best = judged[-1], max(judged, key=lambda each: each.credit)
    if last.verdict is Verdict.SKIPPED or not best.credit:
        best = last
    expected = None
    if question.expected is not None:
        expected = [None if value == -math.inf else value for value in question.expected.values]
    return Outcome(
        question.id,
        tries,
        hints,
        best.verdict,
        earned(question.points, [each.credit for each in judged], hints),
        question.points,
        question.bonus,
        tuple(translate(each, language) for each in last.feedback),
        expected,
    )


def earned(points: int, credits: Sequence[float], hints: int) -> float:
    """Return the points earned, given the share that each attempt got right, rounded to half points.

    >>> earned(10, [1.0], 0), earned(10, [0.0, 1.0], 0), earned(10, [0.8, 1.0], 0), earned(10, [1.0], 2)
    (10.0, 5.0, 9.0, 8.0)
    """
    corrected = max(credits) - credits[0]
    share = (credits[0] + _SECOND_TRY * corrected) * max(0.0, 1 - _HINT_COST * hints)
    return math.floor(2 * points * share + 0.5 + 1e-9) / 2
