"""A question as plain lines: what it shows, how one gets to its answer; a sheet of them for paper, and its answer key.

Whoever has Kotha can make the key of any seed; it keeps no secret.
"""

import math
from collections.abc import Iterator
from typing import Any

from kotha.course.exercises.grading import Verdict
from kotha.course.exercises.judging import Judged
from kotha.course.exercises.questions import Question
from kotha.course.worksheet.operations import written
from kotha.course.worksheet.sheet import Sheet
from kotha.i18n.catalogue import translate
from kotha.i18n.message import Message
from kotha.i18n.numbers import Language

_DECIMALS = 6
_NOTHING_TYPED = Judged(Verdict.SKIPPED)


def shown(question: Question, sheet: Sheet, language: Language) -> Iterator[str]:
    """What one needs to answer: matrices of the sheet, or pieces to put in order."""
    for name in question.shows:
        for row, values in enumerate(sheet.matrices[name].tolist()):
            before = f"{name} =" if row == 0 else ""
            yield f"  {before:<9} " + "  ".join(f"{written(value, _DECIMALS):>8}" for value in values)
    if question.order is not None:
        for number, piece in enumerate(question.order.shown, 1):
            yield f"  {number}. {translate(piece, language)}"


def explained(question: Question, judged: Judged, language: Language) -> Iterator[str]:
    """How one gets there: the worked step, of a matrix the cell that went wrong; of words what should be named."""
    if question.rubric is not None:
        yield translate(Message("What a good answer names (recognised by words; read it yourself too):"), language)
        for part in question.rubric.parts:
            if part.needed < len(part.things):
                yield f"  {translate(Message('of these, {needed}:', needed=part.needed), language)}"
            for thing in part.things:
                yield f"  {'✓' if thing in judged.named else '–'} {translate(thing.text, language)}"
        yield translate(Message("A model answer:"), language)
    else:
        yield translate(Message("The worked step:"), language)
    yield from (f"  {translate(line, language)}" for line in question.worked)
    wrong = slice(None) if judged.place is None else slice(judged.place, judged.place + 1)
    yield from (f"  {line}" for line in question.lines[wrong])


def paper_lines(questions: list[Question], sheet: Sheet, language: Language, answers: bool) -> Iterator[str]:
    """The questions, each with its answer and the way there if ``answers``."""
    for question in questions:
        worth = Message("{points} points", points=question.points)
        yield f"{question.id}. {translate(question.text, language)} [{translate(worth, language)}]"
        yield from shown(question, sheet, language)
        if answers:
            if right := answer_of(question):
                yield from f"  {translate(Message('Answer: {answer}', answer=right), language)}".splitlines()
            yield from explained(question, _NOTHING_TYPED, language)
        yield ""


def answer_of(question: Question) -> str:
    """What to type for full marks; empty for what is said in words.

    >>> from kotha.course.exercises.sets import QuestionChoice
    >>> [answer_of(each) for each in QuestionChoice(wanted="2").prepare()[1][:2]]
    ['2 3', '3 3']
    """
    if question.order is not None:
        return " ".join(map(str, question.order.numbers))
    expected = question.expected
    if expected is None:
        return ""
    rows = [expected.values[at : at + expected.columns] for at in range(0, len(expected.values), expected.columns)]
    return "; ".join(" ".join(_spelled(value) for value in row) for row in rows)


def _spelled(value: float) -> str:
    """A number in full: a count as it is, a small one with the digits that count."""
    if math.isfinite(value) and value == int(value):
        return str(int(value))
    return f"{value:.6g}" if abs(value) < 1e-2 else written(value, _DECIMALS).replace("−", "-").replace("∞", "inf")


def key_dict(questions: list[Question], language: Language, answers: bool = True) -> list[dict[str, Any]]:
    """The questions, and the key to them if ``answers``; ready for JSON."""
    return [
        {
            "question": question.id,
            "text": translate(question.text, language),
            "points": question.points,
            "bonus": question.bonus,
            **(_answers(question, language) if answers else {}),
        }
        for question in questions
    ]


def _answers(question: Question, language: Language) -> dict[str, Any]:
    rubric = question.rubric
    return {
        "answer": answer_of(question) or None,
        "names": None if rubric is None else [translate(each.text, language) for each in rubric.things],
        "worked": [translate(line, language) for line in question.worked] + list(question.lines),
    }
