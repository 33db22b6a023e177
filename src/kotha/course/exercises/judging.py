"""One answer, judged: how much of it is right, and what went wrong where it is not; and what all of them come to.

Numbers are graded cell by cell and their mistakes diagnosed; words by a rubric; an order by its pairs. Whoever keeps
answers (the tutor, a score file that is checked again) asks here, so that the same answer is always worth the same.
"""

import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations, pairwise
from typing import Any

from kotha.course.exercises.grading import Expected, Grade, Slip, Verdict, grade
from kotha.course.exercises.mistakes import diagnose
from kotha.course.exercises.questions import Question
from kotha.course.exercises.rubric import Flowchart, Rubric, Thing
from kotha.i18n.catalogue import translate
from kotha.i18n.message import Message
from kotha.i18n.numbers import Language, ascii_digits

# What is mended at a second try counts so much, and each hint takes so much away.
_SECOND_TRY, _HINT_COST = 0.5, 0.1


@dataclass(frozen=True)
class Judged:
    """What an answer is worth, and what is said of it."""

    verdict: Verdict
    credit: float = 0.0  # the share of the points
    said: tuple[Message, ...] = ()  # the mistakes that were recognised, and what is still missing
    place: int | None = None  # of numbers, the first that is not right
    named: Sequence[Thing] = ()  # of words, what they name


def judge(question: Question, typed: str) -> Judged:
    """Judge what a student typed."""
    if not typed.strip():
        return Judged(Verdict.SKIPPED)
    if question.expected is not None:
        return _numbers(question, question.expected, typed)
    if question.order is not None:
        return judge_order([int(number) for number in re.findall(r"\d+", ascii_digits(typed))], question.order)
    assert question.rubric is not None, f"question {question.id} has nothing to be judged by"
    return _words(question.rubric, typed)


def _verdict(credit: float) -> Verdict:
    return Verdict.RIGHT if credit == 1 else Verdict.PARTLY if credit > 0 else Verdict.WRONG


def _numbers(question: Question, expected: Expected, typed: str) -> Judged:
    found, wanted = grade(typed, expected), len(expected.values)
    if found.verdict is Verdict.UNREADABLE:
        return Judged(found.verdict, said=tuple(_how_to_type(expected, len(found.numbers))))
    if found.verdict is Verdict.RIGHT:
        return Judged(found.verdict, 1.0)
    if not question.step:  # the first slip that leads to just these numbers; one that happens to be near is still one
        slip = [each.words for each in question.slips if each.led_to(found.numbers, expected)][:1]
        return Judged(Verdict.WRONG if slip else found.verdict, said=tuple(slip), place=found.place)
    if found.verdict is Verdict.COARSE:
        return Judged(found.verdict, place=found.place)
    right = wanted - len(found.wrong)
    counted = [Message("{right} of {all} numbers are right.", right=right, all=wanted)] if right else []
    said = (*counted, *_of_cells(question, expected, found))
    return Judged(_verdict(right / wanted), 1 - len(found.wrong) / wanted, said, found.place)


def _how_to_type(expected: Expected, found: int) -> Iterator[Message]:
    """How many numbers are wanted, and how they are typed: whoever types one cell of a matrix waits for the next."""
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
    by_columns = Message("The numbers are right, but you typed them column by column; type them row by row.")
    turned = Slip("turned", question.text, tuple(step.values.T.ravel().tolist()))
    if question.row is None and height != width and turned.led_to(found.numbers, expected):
        return [by_columns]
    cells = [divmod(place, width) if question.row is None else (question.row, place) for place in found.wrong]
    numbers = [found.numbers[place] for place in found.wrong]
    return [slip.words for slip in diagnose(question.sheet, step, numbers, cells, expected.slack)]


def judge_order(given: list[int], order: Flowchart) -> Judged:
    """How far the order that was given is the right one.

    Every pair of pieces that stands in the right order counts for it, every pair that stands the other way round
    against it (Kendall's tau), so that an order drawn blindly is worth nothing on average, and one swap of neighbours
    costs little. A piece that was left out is in order with none.
    """
    rank = {number: place for place, number in enumerate(order.numbers)}
    if not given or len(set(given)) != len(given) or not set(given) <= rank.keys():
        how = Message(
            "Type the numbers from 1 to {wanted}, each exactly once, in the right order.", wanted=len(order.pieces)
        )
        return Judged(Verdict.UNREADABLE, said=(how,))
    counted = sum(1 if rank[first] < rank[second] else -1 for first, second in combinations(given, 2))
    credit = max(0.0, counted / math.comb(len(rank), 2))
    swapped = [(first, second) for first, second in pairwise(given) if rank[first] > rank[second]]
    said = [Message("Piece {second} comes before piece {first}.", first=a, second=b) for a, b in swapped[:1]]
    if missing := tuple(number for number in order.numbers if number not in given):
        said.append(Message("Missing: {pieces}.", pieces=missing))
    return Judged(_verdict(credit), credit, tuple(said))


def _words(rubric: Rubric, typed: str) -> Judged:
    named, n_named, replies = rubric.read(typed)
    counted = Message("{named} of {needed} things are mentioned.", named=n_named, needed=rubric.needed)
    credit = n_named / rubric.needed
    return Judged(_verdict(credit), credit, (*replies, *(() if credit == 1 else (counted,))), named=named)


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


@dataclass(frozen=True)
class Summary:
    """The outcomes of all questions that were answered, and what was asked."""

    outcomes: tuple[Outcome, ...]
    questions: Sequence[Question]

    @property
    def possible(self) -> int:
        """Points of all questions, the bonus left out."""
        return sum(question.points for question in self.questions if not question.bonus)

    @property
    def worth(self) -> int:
        """What makes a hundred percent: the same, or the bonus where nothing else was asked."""
        return self.possible or sum(question.points for question in self.questions)

    @property
    def right(self) -> int:
        """How many were wholly right."""
        return sum(outcome.verdict is Verdict.RIGHT for outcome in self.outcomes)

    @property
    def points(self) -> float:
        """All of them, a bonus among them."""
        return sum(outcome.points for outcome in self.outcomes)

    @property
    def bonus(self) -> float:
        """Those that come on top."""
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
    """What answers to a question come to: the same whoever asks, the tutor or a teacher who checks a file."""
    judged = [judge(question, typed) for typed in tries] or [Judged(Verdict.SKIPPED)]
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
        tuple(translate(each, language) for each in last.said),
        expected,
    )


def earned(points: int, credits: Sequence[float], hints: int) -> float:
    """Points for the shares that each try had right, to the half point.

    >>> earned(10, [1.0], 0), earned(10, [0.0, 1.0], 0), earned(10, [0.8, 1.0], 0), earned(10, [1.0], 2)
    (10.0, 5.0, 9.0, 8.0)
    """
    mended = max(credits) - credits[0]
    share = (credits[0] + _SECOND_TRY * mended) * max(0.0, 1 - _HINT_COST * hints)
    return math.floor(2 * points * share + 0.5 + 1e-9) / 2
