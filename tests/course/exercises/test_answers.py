"""Right, partly right and wrong answers to all questions in both languages, with the feedback on each."""

import pytest
from tests.course.exercises.scripted import OPEN
from tests.course.exercises.typed import half_right, marked, right, wrong

from kotha.course.exercises.grading import judge
from kotha.course.exercises.number_comparison import Verdict
from kotha.course.exercises.questions import Question
from kotha.course.exercises.selection import QuestionChoice
from kotha.i18n.catalogue import translate
from kotha.i18n.numbers import LANGUAGES, Language

CHOICES = [QuestionChoice(), QuestionChoice(set="assessment"), QuestionChoice(seed=2024)]
CASES = [
    pytest.param(question, language, id=f"{choice.sheet}, {question.id}, {language}")
    for choice in CHOICES
    for question in choice.prepare()
    for language in LANGUAGES
]


@pytest.mark.parametrize(("question", "language"), CASES)
def test_right_wrong_and_half_right(question: Question, language: Language) -> None:
    good, bad = right(question, language), wrong(question, language)
    outcome = marked(question, language, good)
    assert (outcome.verdict, outcome.points) == (Verdict.RIGHT, question.points)
    outcome = marked(question, language, bad)
    assert outcome.points == 0 and outcome.verdict is Verdict.WRONG
    if question.slips:
        assert outcome.feedback == (translate(question.slips[0].words, language),)
    if question.rubric is not None or question.order is not None or question.step:
        assert outcome.feedback, "feedback: what is missing, which piece comes first, or which mistake it was"
    outcome = marked(question, language, bad, good)
    assert (outcome.verdict, outcome.points) == (Verdict.RIGHT, question.points / 2), "for every question"
    if question.rubric is not None or question.step:
        outcome = marked(question, language, *half_right(question, language))
        assert outcome.verdict is Verdict.PARTLY and 0 < outcome.points < question.points, outcome
        assert question.step or ("required points" if language == "en" else "বলা হয়েছে") in outcome.feedback[-1]
        assert not question.step or len(outcome.feedback) >= 2, "how many are right, and why the others are wrong"


def test_every_open_question_has_a_script() -> None:
    asked = {question.id for choice in CHOICES for question in choice.prepare() if question.rubric is not None}
    assert asked == OPEN.keys()


@pytest.mark.parametrize(
    ("number", "typed", "expected"),
    [
        ("7b", "It is underfitting.", "Underfitting would leave both losses high"),
        ("7b", "এটি আন্ডারফিটিং।", "Underfitting would leave both losses high"),
        ("11a", "fewer parameters", "The number of parameters does not fall"),
        ("3b-why", "it is faster", "Saving work is not the reason"),
    ],
)
def test_common_misconceptions_get_a_reply(number: str, typed: str, expected: str) -> None:
    question, *_ = QuestionChoice(questions=number).prepare()
    assert str(judge(question, typed).feedback[0]).startswith(expected)
