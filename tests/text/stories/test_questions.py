"""Questions about stories: answers occur in the text, are correct, and do not change the story."""

import re
from collections import Counter

import pytest
from tests.text.stories.conftest import PLOTS

from kotha.text.stories import questions
from kotha.text.stories.grammar import NUMBERS
from kotha.text.stories.questions import KINDS_OF_QUESTIONS, StoryQuestion, questions_about

VALUES = {word: value for value, word in enumerate(NUMBERS)} | {"দু": 2}  # দুটি, not দুইটি
WORD = r"([ঀ-৾]+?)"


@pytest.fixture(scope="module")
def asked() -> list[StoryQuestion]:
    return [each for story in range(600) for each in questions_about(5, story, per_story=99)]


def test_the_passage_contains_the_answer_verbatim(asked: list[StoryQuestion]) -> None:
    for each in asked:
        assert each.answer.endswith("।") and each.answer[:-1] in each.passage
        assert each.instruction.endswith(f"\n\n{each.question}") and "{" not in each.instruction


def test_every_kind_and_every_plot_with_questions_is_asked_about(asked: list[StoryQuestion]) -> None:
    assert set(Counter(each.kind for each in asked)) == set(KINDS_OF_QUESTIONS)
    named = {plot.name for plots in PLOTS.values() for plot in plots}
    assert questions._templates().keys() <= named, "a question is filed under a plot that is not there"
    patterns = {re.sub(r"\s+", " ", each.question) for each in asked}
    assert len(patterns) > 500


def test_remaining_amounts_are_correct(asked: list[StoryQuestion]) -> None:
    sums = 0
    for each in asked:
        result = re.search(rf"{WORD}টি থেকে {WORD}টি গেল, \S+(?: \S+)? {WORD}টি।", each.passage)
        if each.kind == "left" and result is not None and "দেওয়ার পর" in each.question:
            had, gave = VALUES[result[1]], VALUES[result[2]]
            assert VALUES[each.answer.removesuffix("টি।")] == had - gave
            sums += 1
    assert sums >= 10, "the stories tell of it"


def test_the_same_story_has_the_same_questions_and_no_more_than_asked_for() -> None:
    assert questions_about(3, 4) == questions_about(3, 4)
    assert questions_about(3, 4) != questions_about(3, 5)
    few, many = (questions_about(3, 4, per_story=count) for count in (2, 99))
    assert few == many[:2] and {each.story for each in many} == {4}


def test_a_whole_story_can_be_read_instead_of_a_paragraph() -> None:
    parts, whole = questions_about(3, 8), questions_about(3, 8, whole=True)
    assert all(part.passage in each.passage for part in parts for each in whole)
    assert "\n" in whole[0].passage and "\n" not in parts[0].passage
