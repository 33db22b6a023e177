"""The twelve and the six, by script: right, half right and wrong, in both languages, with what is said of each."""

import pytest
from tests.inside.exercises.scripted import OPEN

from kotha.inside.exercises.grading import Verdict
from kotha.inside.exercises.judging import judge
from kotha.inside.exercises.key import answer_of
from kotha.inside.exercises.outcome import Outcome, mark
from kotha.inside.exercises.sets import QuestionChoice
from kotha.inside.exercises.setting import Question
from kotha.wording import LANGUAGES, Language, bangla_digits

CHOICES = [QuestionChoice(), QuestionChoice(set="assessment"), QuestionChoice(seed=2024)]
CASES = [
    pytest.param(choice, question, language, id=f"{choice.sheet}, {question.id}, {language}")
    for choice in CHOICES
    for question in choice.prepare()[1]
    for language in LANGUAGES
]
each = pytest.mark.parametrize(("choice", "question", "language"), CASES)


def marked(choice: QuestionChoice, question: Question, language: Language, *tries: str, hints: int = 0) -> Outcome:
    return mark(question, tries, hints, choice.prepare()[0].sheet, language)


def right(question: Question, language: Language) -> str:
    typed = answer_of(question)
    if not typed:
        return " ".join(words.to(language) for words in question.worked)
    return bangla_digits(typed) if language == "bn" and "inf" not in typed and "e" not in typed else typed


def wrong(question: Question, language: Language) -> str:
    """Open: typed by hand. An order: turned round. A shape or count: its first slip. A matrix: all of it tenfold."""
    if question.rubric is not None:
        return OPEN[question.id][language][1]
    if question.order is not None:
        return " ".join(map(str, reversed(question.order.numbers)))
    assert question.expected is not None
    if question.slips:
        return " ".join(f"{value:.12g}" for value in question.slips[0].values)
    return " ".join(f"{7.77 + place}" for place in range(len(question.expected.values)))


@each
def test_right(choice: QuestionChoice, question: Question, language: Language) -> None:
    outcome = marked(choice, question, language, right(question, language))
    assert (outcome.verdict, outcome.points) == (Verdict.RIGHT, question.points)


@each
def test_wrong_is_worth_nothing_and_is_explained(
    choice: QuestionChoice, question: Question, language: Language
) -> None:
    outcome = marked(choice, question, language, wrong(question, language))
    assert outcome.points == 0 and outcome.verdict is Verdict.WRONG
    if question.slips:
        assert outcome.said == (question.slips[0].words.to(language),)
    if question.rubric is not None or question.order is not None:
        assert outcome.said, "what is missing, or which piece comes first"


@each
def test_half_right(choice: QuestionChoice, question: Question, language: Language) -> None:
    if question.rubric is not None:
        outcome = marked(choice, question, language, OPEN[question.id][language][0])
        assert outcome.verdict is Verdict.PARTLY and 0 < outcome.points < question.points, outcome
        assert ("things are named" if language == "en" else "বলা হয়েছে") in outcome.said[-1]
    # Wrong and then right is half of it, whatever the question.
    outcome = marked(choice, question, language, wrong(question, language), right(question, language))
    assert (outcome.verdict, outcome.points) == (Verdict.RIGHT, question.points / 2)


def test_every_open_question_has_a_script() -> None:
    asked = {question.id for choice in CHOICES for question in choice.prepare()[1] if question.rubric is not None}
    assert asked == OPEN.keys()


@pytest.mark.parametrize(
    ("number", "typed", "said"),
    [
        ("7b", "It is underfitting.", "Underfitting would leave both losses high"),
        ("7b", "এটি আন্ডারফিটিং।", "Underfitting would leave both losses high"),
        ("11a", "fewer parameters", "The count of parameters does not fall"),
        ("3b-why", "it is faster", "Saving work is not the reason"),
    ],
)
def test_what_is_often_believed_is_answered(number: str, typed: str, said: str) -> None:
    setting, (question, *_) = QuestionChoice(wanted=number).prepare()
    assert judge(question, typed, setting.sheet).said[0].en.startswith(said)
