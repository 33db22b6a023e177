"""Right, partly right and wrong answers for any question, and the tutor's feedback."""

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.course.exercises.scripted import OPEN

from kotha.course.exercises.grading import Outcome, Summary, judge, mark
from kotha.course.exercises.mistakes import diagnose, slips_of
from kotha.course.exercises.number_comparison import Verdict, readings
from kotha.course.exercises.questions import Question
from kotha.course.exercises.tutor import Quiz, answer_of
from kotha.course.worksheet.builtin_sheets import student_sheet
from kotha.course.worksheet.operations import written
from kotha.i18n.catalogue import translate
from kotha.i18n.message import Bilingual
from kotha.i18n.numbers import Language, bangla_digits

SLIP_CASES = json.loads((Path(__file__).parents[3] / "web/tests/data/mistakes.json").read_text(encoding="utf-8"))


def marked(question: Question, language: Language, *tries: str) -> Outcome:
    return mark(question, tries, 0, language)


def right(question: Question, language: Language) -> str:
    typed = answer_of(question)
    if not typed:
        return " ".join(translate(words, language) for words in question.worked)
    return bangla_digits(typed) if language == "bn" and "inf" not in typed and "e" not in typed else typed


def wrong(question: Question, language: Language) -> str:
    """Return a wrong answer: scripted text, a reversed order, or a number or a matrix with a mistake."""
    if question.rubric is not None:
        return OPEN[question.id][language][1]
    if question.order is not None:
        return " ".join(map(str, reversed(question.order.numbers)))
    assert question.expected is not None
    if question.slips:
        return " ".join(f"{value:.12g}" for value in question.slips[0].values)
    values = slipped(question) if question.step else []
    return _spelled(values or [7.77 + place for place in range(len(question.expected.values))])


def slipped(question: Question) -> list[float]:
    """Return a matrix with the same mistake in every cell: the first mistake that changes all cells."""
    step = question.sheet.steps[question.step]
    height, width = step.values.shape
    rows = range(height) if question.row is None else [question.row]
    cells = [
        {
            slip.name: slip.values[0]
            for slip in reversed(slips_of(question.sheet, step, row, column))
            if math.isfinite(slip.values[0])
        }
        for row in rows
        for column in range(width)
    ]
    shared = [way for way in cells[0] if all(way in each for each in cells)]
    for name in reversed(shared):
        typed = _spelled([each[name] for each in cells])
        found = judge(question, typed)
        if found.verdict is Verdict.WRONG and found.feedback:
            return [each[name] for each in cells]
    return []


def half_right(question: Question, language: Language) -> tuple[str, ...]:
    """Return a partly right answer: some of the words, half of a matrix, or numbers wrong at the first attempt."""
    if question.rubric is not None:
        return (OPEN[question.id][language][0],)
    if question.step and question.expected is not None and (spoiled := slipped(question)):
        half = len(spoiled) // 2
        return (_spelled([*question.expected.values[:half], *spoiled[half:]]),)
    return wrong(question, language), right(question, language)


def take(questions: list[Question], *answers: str, language: Language = "en", tries: int = 1) -> tuple[Summary, str]:
    """Run a quiz with these typed lines; return the summary and everything printed."""
    left, result = iter(answers), []
    quiz = Quiz(language, lambda prompt: next(left, None), result.append, tries)
    return quiz.ask_all(questions), "\n".join(result)


def _spelled(values: Sequence[float]) -> str:
    return " ".join("-inf" if value == -math.inf else f"{value:.6g}" for value in values)


@dataclass(frozen=True)
class RecognisedSlip:
    """A cell, its right value, the typed value, and the tutor's feedback."""

    step: str
    row: int
    column: int
    truth: str
    typed: str
    names: tuple[str, ...]
    feedback: tuple[Bilingual, ...]


def recognised_slips(slips: Sequence[str]) -> list[RecognisedSlip]:
    """Yield a diagnosed case of each of these mistakes."""
    sheet, found = student_sheet(), []
    for wanted in slips:
        case = next(each for each in SLIP_CASES if each["mistake"] == wanted)
        step = sheet.steps[case["step"]]
        cell = (case["row"] - 1, case["column"] - 1)
        slack = 0.0 if case["step"] in ("Q", "K", "V", "products") else 0.0005
        ways = diagnose(sheet, step, readings(case["typed"])[0], [cell], slack)
        truth = written(float(step.values[cell]), 4)
        result = tuple(way.words for way in ways)
        found.append(
            RecognisedSlip(
                step.name, case["row"], case["column"], truth, case["typed"], tuple(w.name for w in ways), result
            )
        )
    return found
