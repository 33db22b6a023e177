"""The quiz: the workshop's answers get full marks, wrong answers the solution, in both languages and other sizes."""

import json
import math
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.course.exercises.typed import take

from kotha.course.exercises.number_comparison import Verdict
from kotha.course.exercises.questions import Question, all_questions
from kotha.course.exercises.selection import QuestionChoice, choose, values_of
from kotha.course.worksheet.builtin_sheets import student_sheet
from kotha.errors import UsageError
from kotha.i18n.catalogue import translate
from kotha.i18n.numbers import Language, ascii_digits
from kotha.training.config import recipe

# The workshop's answers, typed as a student would.
ANSWERS = {
    "1Q": "0.37 0.57; 0.39 0.34; 0.30 0.55",
    "1K": "[[0.57, 0.37], [0.34, 0.39], [0.55, 0.30]]",
    "1V": "০.৭৪ ০.৫৪ ০.৩৫ ০.৫৫ ০.৫১ ০.৪৫",
    "2a": "(2, 3)",
    "2b-shape": "3x3",
    "2b": "0.4218 0.3481 0.3745; 0.3481 0.2652 0.3165; 0.3745 0.3165 0.33",
    "2c": "0.2983 0.2462 0.2649; 0.2462 0.1876 0.2238; 0.2649 0.2238 0.2334",
    "3a": "1 0 0; 1 1 0; 1 1 1",
    "3b": "0.298 -inf -inf; 0.246 0.188 -999; 0.265 0.224 0.233",
    "4a": "1 0 0",
    "4b": "0.514651 0.485349 0",
    "4c": "0.341432 0.327712 0.330856",
    "5": "0.74 0.54; 0.5507 0.5449; 0.5361 0.5135",
    "6a": "64, 128",
    "6b": "(64, 128, 512)",
    "6c": "2048",
    "6d": "64 × 128 × 32100",
    "7c-1": "1.5e-4",
    "7c-2": "1.76 × 10^-4",
    "8b": "১৫০",
    "9a-1": "318.1",
    "9a-2": "319.1",
    "9b": "65,536",
    "9c-1": "8,192",
    "9c-2": "69,632,000",
    "9c-3": "30.1",
    "10a-1": "16,435,200",
    "10a-2": "131072",
    "10a-3": "2,097,152",
    "10a-4": "58.14M",
    "10b": "0.2326 GB",
    "11c": "64 128 512",
}
# For words and an order: the question's own model answer.
N_WORDS = 13


@pytest.fixture(scope="module")
def questions() -> list[Question]:
    return QuestionChoice().prepare()


def scripted(questions: list[Question], answers: dict[str, str], language: Language) -> Iterator[str]:
    for question in questions:
        if question.order is not None:
            yield " ".join(map(str, question.order.numbers))
        else:
            yield answers.get(question.id) or " ".join(translate(words, language) for words in question.worked)


@pytest.mark.parametrize("language", ["en", "bn"])
def test_the_workshops_answers_get_full_marks(questions: list[Question], language: Language) -> None:
    assert {question.number for question in questions} == set(range(1, 13))
    summary, result = take(questions, *scripted(questions, ANSWERS, language), language=language)
    assert [outcome for outcome in summary.outcomes if outcome.verdict is not Verdict.RIGHT] == []
    assert (summary.right, len(ANSWERS) + N_WORDS) == (45, 45)
    assert (summary.points, summary.possible, summary.bonus) == (280, 260, 20)
    assert ("280 of 260 points (108%)" if language == "en" else "২৬০ নম্বরের মধ্যে ২৮০ (১০৮%)") in result


@pytest.mark.parametrize(
    ("number", "wrong", "worked"),
    [
        ("1Q", "0.37 0.57; 0.93 0.34; 0.30 0.55", "Q[2,1] = 0.3×0.1 + 0.9×0.3 + 0.4×0.2 + 0.1×0.1 = 0.39"),
        ("2c", "0.4218 0.3481 0.3745; 0.3481 0.2652 0.3165; 0.3745 0.3165 0.33", "scores[1,1] = 0.4218 / √2"),
        ("4b", "0.6 0.4 0", "sums[2] = 1.279084 + 1.20626 + 0.0 = 2.485344"),
        ("5", "0.11 0.22 0.33 0.44 0.55 0.66", "output[1,1] = 1.0×0.74"),
        ("6d", "64 128 512", "(64, 128, 32100)"),
        ("7c-1", "3e-4", "lr = 0.0003 × 500 / 1000 = 0.00015"),
        ("7c-2", "1.5e-4", "pct = (10000 − 1000) / (20000 − 1000) = 0.473684"),
        ("8b", "149", "150"),
        ("9a-1", "302", "2,312,741 / 7,270 = 318.12"),
        ("9b", "65,535", "2^16 = 65,536"),
        ("9c-1", "8,000", "64 × 128 = 8,192"),
        ("9c-3", "28.7", "69,632,000 / 2,312,741 = 30.11"),
        ("10a-2", "1,048,576", "4 × 512 × 64 = 131,072"),
        ("10a-3", "1 million", "2 × 512 × 2048 = 2,097,152; + 2,560 biases = 2,099,712"),
        ("10b", "0.93 GB", "0.2326 GB = 0.2166 GiB"),
    ],
)
def test_a_wrong_answer_gets_no_points_and_a_solution(number: str, wrong: str, worked: str) -> None:
    summary, result = take([each for each in QuestionChoice().prepare() if each.id == number], wrong)
    assert summary.right == 0
    assert "Worked solution:" in result and ("Not right." in result or "Partly right." in result)
    assert worked in result


def test_no_score_without_answers(questions: list[Question]) -> None:
    _, result = take(questions)
    assert f"questions not asked: {len(questions)}" in result and "of 0" not in result
    only_bonus = choose(questions, "11a")
    _, result = take(only_bonus, "")
    assert "0 of 8 points (0%)" in result


def test_imprecise_skipped_and_unreadable_answers(questions: list[Question]) -> None:
    chosen = choose(questions, "9a")[:2]
    summary, result = take(chosen, "300", "")
    assert [outcome.verdict for outcome in summary.outcomes] == [Verdict.COARSE, Verdict.SKIPPED]
    assert "give at least 2 significant digits" in result and "Skipped." in result
    summary, result = take(chosen, "no idea", "319.1")
    assert [outcome.verdict for outcome in summary.outcomes] == [Verdict.UNREADABLE, Verdict.RIGHT]
    assert "Numbers found: 0, numbers expected: 1." in result


def test_an_unreadable_answer_can_be_retyped_at_a_terminal_without_penalty(questions: list[Question]) -> None:
    chosen = choose(questions, "8b")
    assert take(chosen, "what?", "150", tries=2)[0].points == chosen[0].points
    assert take(chosen, "what?", "150")[0].right == 0


def test_a_matrix_row_by_row(questions: list[Question]) -> None:
    lines = ["0.37 0.57", "0.39 0.34", "0.30 0.55", "0.57 0.37 0.34 0.39 0.55 0.30"]
    assert take(choose(questions, "1")[:2], *lines)[0].right == 2


def test_the_end_of_input_ends_the_quiz_with_a_score(questions: list[Question]) -> None:
    summary, result = take(questions, ANSWERS["1Q"])
    assert "End of input; questions not asked: 44." in result
    assert "7 of 260 points (3%); 1 of 1 answers fully correct." in result
    assert summary.to_dict()["ended_early"] is True


def test_questions_are_chosen_by_number_and_part(questions: list[Question]) -> None:
    assert [each.id for each in choose(questions, "1")] == ["1Q", "1K", "1V"]
    assert [each.id for each in choose(questions, "7c")] == ["7c-1", "7c-2"]
    assert [each.id for each in choose(questions, "10")] == ["10a-1", "10a-2", "10a-3", "10a-4", "10b", "10b-parts"]
    with pytest.raises(UsageError, match="unknown question '13'; use all, 1 to 12"):
        choose(questions, "13")


def test_answers_of_another_preset_and_other_sizes() -> None:
    choice = QuestionChoice(preset="gpt2", size="4x6x3", seed=1)
    expected = {each.id: each.expected.values for each in choice.prepare() if each.expected is not None}
    assert expected["6d"][1:] == (1024, 50_257)
    assert expected["10a-4"] == (124_439_808,)
    assert expected["10a-2"] == (4 * 768 * 64 + 3 * 64,)
    assert expected["9c-1"] == (1024 * expected["6d"][0],)
    assert expected["2a"] == (3, 4)
    sheet = student_sheet("4x6x3", 1)
    course = recipe("course")
    passed = (values_of(choice, sheet)["late"] - course.warmup_steps) / (course.steps - course.warmup_steps)
    rate = 0.1 * 3e-4 + 0.9 * 3e-4 * 0.5 * (1 + math.cos(math.pi * passed))
    assert expected["7c-2"] == pytest.approx((rate,))
    assert [number for number in expected if number.startswith("4")] == ["4a", "4b", "4c", "4d"]
    assert sum(expected["4d"]) == pytest.approx(1) and len(expected["4d"]) == 4


def test_the_measured_memory_is_shown_for_its_own_model_only() -> None:
    (workshop,), (small,) = (
        QuestionChoice(questions="10b-parts", preset=of).prepare() for of in ("bangla-58m", "pocket")
    )
    assert "4.33 GB" in str(workshop.text) and "৪.৩৩ GB" in translate(workshop.text, "bn")
    assert "0.93 GB" in str(workshop.worked[0])
    assert "GB" not in str(small.text) and "0.0093 GB" in str(small.worked[0])


def test_a_vocabulary_beyond_uint16_needs_uint32() -> None:
    sheet = student_sheet()
    large = {**values_of(QuestionChoice(), sheet), "vocab_size": 100_000, "vocabulary": 100_000}
    worked = next(each for each in all_questions("workshop", sheet, large) if each.id == "9b").worked[0]
    assert "100,000 tokens need more: use uint32" in str(worked)


def test_only_a_gpt_has_these_answers() -> None:
    for choice, wording in (
        (QuestionChoice(preset="bert-base"), "bert-base is a bert"),
        (QuestionChoice(size="4x6"), r"size=.4x6. is not TOKENSxWIDTHxHEAD"),
        (QuestionChoice(seed=-1), "seed=-1 is out of range"),
    ):
        with pytest.raises(UsageError, match=wording):
            choice.prepare()


def test_the_gains_in_the_model_answer_match_the_experiments(questions: list[Question]) -> None:
    path = Path(__file__).parents[3] / "benchmarks" / "results" / "question_12b.json"
    rows = json.loads(path.read_text(encoding="utf-8"))["figures"]["rows"]
    bits = {row["condition"]: row["bits_per_byte"] for row in rows}
    course, stopped = bits["the course, 4,000 steps"], bits["as the course ran, stopped early"]
    gained = [bits["as the course ran, 5,500 steps later"] - stopped, stopped - course]
    lost = [bits[name] - course for name in ("1/2 of the text", "dropout 0")]
    small = course - bits["label smoothing 0.1"]
    assert small > max(course - bits[name] for name in ("weight decay 0.1", "weight decay 1", "EMA 0.999"))
    assert min(bits[name] for name in ("2 layers", "4 layers", "vocabulary 8,192")) > course
    (question,) = (each for each in questions if each.id == "12b")
    for answer in (str(question.worked[0]), ascii_digits(translate(question.worked[0], "bn"))):
        assert re.findall(r"0\.\d{3}", answer) == [f"{value:.3f}" for value in (*gained, *lost, small)]
