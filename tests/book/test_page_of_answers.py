"""The page of answers equals the tutor's current output."""

from scripts.book import answers
from tests.course.exercises.typed import recognised_slips

from kotha.course.exercises.selection import QuestionChoice


def test_the_page_of_answers_is_what_the_tutor_says_today() -> None:
    for page, text in answers.pages().items():
        assert page.read_text(encoding="utf-8") == text, "regenerate it: python -m scripts.book.answers"


def test_every_question_is_answered_in_three_ways_on_the_page() -> None:
    for page, text in answers.pages().items():
        for name in ("workshop", "assessment"):
            for question in QuestionChoice(set=name).prepare():  # type: ignore[arg-type]
                part = text.partition(f"**{question.id}.** ")[2].partition("**")[0]
                rows = [line for line in part.splitlines() if line.startswith("| ")][2:]
                assert len(rows) >= 3, f"{page.name}, {question.id}"


def test_ten_mistakes_are_recognised_by_their_names() -> None:
    assert len(set(answers.SLIPS)) == 10
    for name, slip in zip(answers.SLIPS, recognised_slips(answers.SLIPS), strict=True):
        assert name in slip.names and all(str(words) and words.bangla for words in slip.feedback)
