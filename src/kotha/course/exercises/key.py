"""A sheet of questions for paper, and its answer key for the teacher: the same questions, with what is right.

Whoever has Kotha can make the key of any seed; it keeps no secret.
"""

import math
from collections.abc import Iterator
from typing import Any

from kotha.course.exercises.explaining import explained, shown
from kotha.course.exercises.grading import Verdict
from kotha.course.exercises.judging import Judged
from kotha.course.exercises.setting import Question
from kotha.course.worksheet.operations import written
from kotha.course.worksheet.sheet import Sheet
from kotha.i18n.numbers import Language
from kotha.i18n.wording import Words

_WORTH = Words("{points} points", "{points} নম্বর")
_ANSWER = Words("Answer: {answer}", "উত্তর:\n{answer}")
_DECIMALS = 6
_NOTHING_TYPED = Judged(Verdict.SKIPPED, 0.0)


def paper_lines(questions: list[Question], sheet: Sheet, language: Language, answers: bool) -> Iterator[str]:
    """The questions, each with its answer and the way there if ``answers``."""
    for question in questions:
        worth = _WORTH.fill(points=question.points).to(language)
        yield f"{question.id}. {question.text.to(language)} [{worth}]"
        yield from shown(question, sheet, language)
        if answers:
            if right := answer_of(question):
                yield from f"  {_ANSWER.fill(answer=right).to(language)}".splitlines()
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
            "text": question.text.to(language),
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
        "names": None if rubric is None else [each.label.to(language) for each in rubric.things],
        "worked": [words.to(language) for words in question.worked] + list(question.lines),
    }
