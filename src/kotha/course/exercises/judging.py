"""One answer, judged: how much of it is right, and what went wrong where it is not.

Numbers are graded cell by cell and their mistakes diagnosed; words by a rubric; an order by its pairs. Whoever keeps
answers (the quiz, a score file that is checked again) asks here, so that the same answer is always worth the same.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from kotha.course.exercises.grading import Expected, Grade, Typed, Verdict, cells_right, compare, grade
from kotha.course.exercises.mistakes import diagnose
from kotha.course.exercises.ordering import Flowchart, read_order
from kotha.course.exercises.questions import Question
from kotha.course.exercises.rubric import Recognised, Rubric, read_answer
from kotha.course.worksheet.sheet import Sheet
from kotha.i18n.message import Message
from kotha.i18n.numbers import ascii_digits


@dataclass(frozen=True)
class Judged:
    """What an answer is worth, and what is said of it."""

    verdict: Verdict
    credit: float  # the share of the points
    said: tuple[Message, ...] = ()  # the mistakes that were recognised, and what is still missing
    grade: Grade | None = None  # of numbers
    reading: Recognised | None = None  # of words


def judge(question: Question, typed: str, sheet: Sheet) -> Judged:
    """Judge what a student typed; ``sheet`` is what the questions about matrices are computed from."""
    if not typed.strip():
        return Judged(Verdict.SKIPPED, 0.0)
    if question.expected is not None:
        return _numbers(question, question.expected, typed, sheet)
    if question.order is not None:
        return _order(question.order, typed)
    assert question.rubric is not None, f"question {question.id} has nothing to be judged by"
    return _words(question.rubric, typed)


def _verdict(credit: float) -> Verdict:
    return Verdict.RIGHT if credit == 1 else Verdict.PARTLY if credit > 0 else Verdict.WRONG


def _numbers(question: Question, expected: Expected, typed: str, sheet: Sheet) -> Judged:
    found = grade(typed, expected)
    if found.verdict is Verdict.UNREADABLE:
        return Judged(Verdict.UNREADABLE, 0.0, tuple(_how_to_type(expected, found)), found)
    if found.verdict is Verdict.RIGHT:
        return Judged(Verdict.RIGHT, 1.0, (), found)
    slips = [] if question.step else _of_slips(question, expected, found)
    if found.verdict is Verdict.COARSE and not slips:  # a slip that happens to be near is still one
        return Judged(Verdict.COARSE, 0.0, (), found)
    credit = cells_right(found, expected) if question.step else 0.0
    mistakes = _of_cells(question, expected, found, sheet) if question.step else slips
    right = len(expected.values) - len(found.wrong)
    counted = Message("{right} of {all} numbers are right.", right=right, all=len(expected.values))
    return Judged(_verdict(credit), credit, (*([counted] if credit else []), *mistakes), found)


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


def _of_slips(question: Question, expected: Expected, found: Grade) -> list[Message]:
    """The first slip that leads to just these numbers."""
    for slip in question.slips:
        # A size in bytes is compared in bytes, as it was typed.
        scale = 1e9 if expected.bytes is not None and found.numbers[0].in_bytes else 1.0
        pairs = zip(found.numbers, slip.values, strict=True)
        if all(_is(number, value * scale, expected) for number, value in pairs):
            return [slip.words]
    return []


def _is(number: Typed, value: float, expected: Expected) -> bool:
    return compare(number, value, Expected((value,), exact=expected.exact, slack=expected.slack)) is Verdict.RIGHT


def _order(order: Flowchart, typed: str) -> Judged:
    given = [int(number) for number in re.findall(r"\d+", ascii_digits(typed))]
    found = read_order(given, order)
    if found is None:
        how = Message("Type each number from 1 to {wanted} once, in order.", wanted=len(order.pieces))
        return Judged(Verdict.UNREADABLE, 0.0, (how,))
    said = []
    if found.swapped is not None:
        first, second = found.swapped
        said.append(Message("Piece {second} comes before piece {first}.", first=first, second=second))
    if found.missing:
        said.append(Message("Left out: {pieces}.", pieces=found.missing))
    return Judged(_verdict(found.credit), found.credit, tuple(said))


def _words(rubric: Rubric, typed: str) -> Judged:
    found = read_answer(typed, rubric)
    named = round(found.credit * rubric.needed)
    counted = Message("{named} of {needed} things are named.", named=named, needed=rubric.needed)
    said = (*found.replies, *(() if found.credit == 1 else (counted,)))
    return Judged(_verdict(found.credit), found.credit, said, reading=found)
