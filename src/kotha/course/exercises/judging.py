"""One answer, judged: how much of it is right, and what went wrong where it is not.

Numbers are graded cell by cell and their mistakes diagnosed; words by a rubric; an order by its pairs. Whoever keeps
answers (the quiz, a score file that is checked again) asks here, so that the same answer is always worth the same.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations, pairwise

from kotha.course.exercises.grading import Expected, Grade, Typed, Verdict, compare, grade
from kotha.course.exercises.mistakes import diagnose
from kotha.course.exercises.questions import Question
from kotha.course.exercises.rubric import Flowchart, Recognisable, Rubric
from kotha.course.worksheet.sheet import Sheet
from kotha.i18n.message import Message
from kotha.i18n.numbers import ascii_digits


@dataclass(frozen=True)
class Judged:
    """What an answer is worth, and what is said of it."""

    verdict: Verdict
    credit: float = 0.0  # the share of the points
    said: tuple[Message, ...] = ()  # the mistakes that were recognised, and what is still missing
    place: int | None = None  # of numbers, the first that is not right
    named: tuple[Recognisable, ...] = ()  # of words, what they name


def judge(question: Question, typed: str, sheet: Sheet) -> Judged:
    """Judge what a student typed; ``sheet`` is what the questions about matrices are computed from."""
    if not typed.strip():
        return Judged(Verdict.SKIPPED)
    if question.expected is not None:
        return _numbers(question, question.expected, typed, sheet)
    if question.order is not None:
        return judge_order([int(number) for number in re.findall(r"\d+", ascii_digits(typed))], question.order)
    assert question.rubric is not None, f"question {question.id} has nothing to be judged by"
    return _words(question.rubric, typed)


def _verdict(credit: float) -> Verdict:
    return Verdict.RIGHT if credit == 1 else Verdict.PARTLY if credit > 0 else Verdict.WRONG


def _numbers(question: Question, expected: Expected, typed: str, sheet: Sheet) -> Judged:
    found, wanted = grade(typed, expected), len(expected.values)
    if found.verdict is Verdict.UNREADABLE:
        return Judged(found.verdict, said=tuple(_how_to_type(expected, found)))
    if found.verdict is Verdict.RIGHT:
        return Judged(found.verdict, 1.0)
    if not question.step:
        slips = _of_slips(question, expected, found)
        # A slip that happens to be near is still one.
        return Judged(Verdict.WRONG if slips else found.verdict, said=slips, place=found.place)
    if found.verdict is Verdict.COARSE:
        return Judged(found.verdict, place=found.place)
    right = wanted - len(found.wrong)
    counted = [Message("{right} of {all} numbers are right.", right=right, all=wanted)] if right else []
    said = (*counted, *_of_cells(question, expected, found, sheet))
    return Judged(_verdict(right / wanted), 1 - len(found.wrong) / wanted, said, found.place)


def _how_to_type(expected: Expected, found: Grade) -> Iterator[Message]:
    """How many numbers are wanted, and how they are typed: whoever types one cell of a matrix waits for the next."""
    wanted = len(expected.values)
    yield Message("Numbers read: {found}, and the answer has {wanted}.", found=found.found, wanted=wanted)
    cells = [f"{number}" if expected.exact else f"{number / 10:g}" for number in range(1, wanted + 1)]
    if expected.rows > 1 and expected.columns > 1:
        rows = [" ".join(cells[first : first + expected.columns]) for first in range(0, wanted, expected.columns)]
        yield Message(
            "It is a matrix of {rows} rows with {columns} numbers each. Type all of it in one line, "
            "or a row in each line. For example: {example}",
            rows=expected.rows,
            columns=expected.columns,
            example=" ; ".join(rows),
        )
    elif wanted > 1:
        yield Message("Type all of them in one line. For example: {example}", example=" ".join(cells))


def _of_cells(question: Question, expected: Expected, found: Grade, sheet: Sheet) -> list[Message]:
    step = sheet.steps[question.step]
    height, width = step.values.shape
    if question.row is None and height != width:
        turned = step.values.T.ravel().tolist()
        if all(_is(number, value, expected) for number, value in zip(found.numbers, turned, strict=True)):
            return [Message("The numbers are right, but column by column; type them row by row.")]
    cells = [divmod(place, width) if question.row is None else (question.row, place) for place in found.wrong]
    numbers = [found.numbers[place] for place in found.wrong]
    return [way.words for way in diagnose(sheet, step, numbers, cells, expected.slack)]


def _of_slips(question: Question, expected: Expected, found: Grade) -> tuple[Message, ...]:
    """The first slip that leads to just these numbers."""
    # A size in bytes is compared in bytes, as it was typed.
    scale = 1e9 if expected.bytes is not None and found.numbers[0].in_bytes else 1.0
    for slip in question.slips:
        pairs = zip(found.numbers, slip.values, strict=True)
        if all(_is(number, value * scale, expected) for number, value in pairs):
            return (slip.words,)
    return ()


def _is(number: Typed, value: float, expected: Expected) -> bool:
    return compare(number, value, Expected((value,), exact=expected.exact, slack=expected.slack)) is Verdict.RIGHT


def judge_order(given: list[int], order: Flowchart) -> Judged:
    """How far the order that was given is the right one.

    Every pair of pieces that stands in the right order counts for it, every pair that stands the other way round
    against it (Kendall's tau), so that an order drawn blindly is worth nothing on average, and one swap of neighbours
    costs little. A piece that was left out is in order with none.
    """
    rank = {number: place for place, number in enumerate(order.numbers)}
    if not given or len(set(given)) != len(given) or not set(given) <= rank.keys():
        how = Message("Type each number from 1 to {wanted} once, in order.", wanted=len(order.pieces))
        return Judged(Verdict.UNREADABLE, said=(how,))
    counted = sum(1 if rank[first] < rank[second] else -1 for first, second in combinations(given, 2))
    credit = max(0.0, counted / (len(rank) * (len(rank) - 1) // 2))
    swapped = [(first, second) for first, second in pairwise(given) if rank[first] > rank[second]]
    said = [Message("Piece {second} comes before piece {first}.", first=a, second=b) for a, b in swapped[:1]]
    if missing := tuple(number for number in order.numbers if number not in given):
        said.append(Message("Left out: {pieces}.", pieces=missing))
    return Judged(_verdict(credit), credit, tuple(said))


def _words(rubric: Rubric, typed: str) -> Judged:
    named, n_named, replies = rubric.read(typed)
    counted = Message("{named} of {needed} things are named.", named=n_named, needed=rubric.needed)
    credit = n_named / rubric.needed
    return Judged(_verdict(credit), credit, (*replies, *(() if credit == 1 else (counted,))), named=named)
