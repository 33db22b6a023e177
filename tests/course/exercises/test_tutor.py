"""The tutor: stepwise hints, a second attempt for half the points, the total, and partial credit for an order."""

import pytest
from tests.course.exercises import typed

from kotha.course.exercises.grading import Summary, judge, judge_order
from kotha.course.exercises.number_comparison import Verdict
from kotha.course.exercises.questions import share_out
from kotha.course.exercises.rubric import shuffled
from kotha.course.exercises.selection import QuestionChoice
from kotha.i18n.catalogue import translate
from kotha.i18n.message import Bilingual
from kotha.i18n.numbers import LANGUAGES, Language

# The points as printed in the workshop; those for question 11 are a bonus.
WORKSHOP = {1: 20, 2: 25, 3: 15, 4: 20, 5: 15, 6: 25, 7: 30, 8: 25, 9: 25, 10: 30, 11: 20, 12: 30}

SCORES = "0.2983 0.2462 0.2649; 0.2462 0.1876 0.2238; 0.2649 0.2238 0.2334"
UNSCALED = "0.4218 0.3481 0.3745; 0.3481 0.2652 0.3165; 0.3745 0.3165 0.33"


def take(wanted: str, *answers: str, tries: int = 2, language: Language = "en") -> tuple[Summary, str]:
    return typed.take(QuestionChoice(questions=wanted).prepare(), *answers, tries=tries, language=language)


def test_a_second_try_counts_half_and_says_so() -> None:
    summary, result = take("2c", UNSCALED, SCORES)
    (outcome,) = summary.outcomes
    assert (outcome.verdict, outcome.points, outcome.possible) == (Verdict.RIGHT, 4.5, 9)
    parts = ("it still has to be divided by √d_k", "corrections now earn half the points", "4.5 of 9 points")
    assert all(part in result for part in parts)
    assert outcome.tries == (UNSCALED, SCORES)
    _, bangla = take("2c", UNSCALED, SCORES, language="bn")
    assert "√d_k দিয়ে ভাগ করা বাকি" in bangla and "৯ নম্বরের মধ্যে ৪.৫।" in bangla


@pytest.mark.parametrize(
    ("language", "wanted"),
    [
        ("en", "Numbers found: 1, numbers expected: 9.\nType all of them on one line, a matrix row by row."),
        ("bn", "১টি সংখ্যা পাওয়া গেল, উত্তরে থাকার কথা ৯টি।\nসবগুলো এক লাইনে লিখুন, ম্যাট্রিক্স হলে সারি ধরে।"),
    ],
)
def test_typing_one_cell_of_a_matrix_gets_instructions_without_penalty(language: Language, wanted: str) -> None:
    summary, result = take("2c", "0.2983", SCORES, language=language)
    assert wanted in result
    assert summary.points == 9 and summary.outcomes[0].tries == (SCORES,)
    example = result.partition(wanted)[2].partition(": 0.1")[2].partition("\n")[0]
    assert f"0.1{example}" == "0.1 0.2 0.3 ; 0.4 0.5 0.6 ; 0.7 0.8 0.9"
    typed_so, _ = take("2c", f"0.1{example}", language=language, tries=1)
    assert typed_so.outcomes[0].verdict is Verdict.WRONG, "the example can be parsed, and is not the answer"


def test_the_example_of_a_shape_has_integers() -> None:
    assert "a matrix row by row. For example: 1 2" in take("2a", "2", tries=1)[1]


def test_two_wrong_tries_end_with_the_solution() -> None:
    summary, result = take("8b", "149", "1")
    assert summary.points == 0 and summary.outcomes[0].verdict is Verdict.WRONG
    assert "The first new token needs a pass too." in result and "One for each token" in result


def test_right_cells_count_and_corrected_ones_count_half() -> None:
    one_off = SCORES.replace("0.2334", "0.33")
    first, _ = take("2c", one_off, tries=1)
    assert first.outcomes[0].verdict is Verdict.PARTLY and first.points == 8  # 8 of 9 numbers
    both, result = take("2c", one_off, SCORES)
    assert both.points == 8.5 and "8 of 9 numbers are right" in result


def test_hints_come_in_steps_and_cost_a_tenth_each() -> None:
    summary, result = take("1Q", "?", "?", "0.37 0.57; 0.39 0.34; 0.30 0.55")
    assert summary.points == 5.5  # 7 minus two tenths, rounded to half points
    hints = [line for line in result.splitlines() if line.startswith("Hint:")]
    assert hints[0].startswith("Hint: Each number is a row of X times a column of W_Q")
    assert hints[1] == "Hint: It begins like this: Q[1,1] = 1.0×0.1 + 0.5×0.3 + 0.2×0.2 + 0.8×0.1"
    _, result = take("1Q", *["?"] * 4, "")
    assert "Q[3,2] = 0.7×0.2 + 0.2×0.1 + 0.6×0.4 + 0.5×0.3 = 0.55" in result and "no more hints" in result
    _, bangla = take("7b", "ইঙ্গিত", "?", "", language="bn")
    assert "ইঙ্গিত: ভালো উত্তরে ৩টি বিষয় থাকে।" in bangla and "ইঙ্গিত: দুটি লসের ফারাক কত" in bangla


def test_no_hint_gives_the_answer_away() -> None:
    for choice in (QuestionChoice(), QuestionChoice(set="assessment"), QuestionChoice(seed=5)):
        questions = choice.prepare()
        for question in questions:
            for hint in question.hints:
                for said in (translate(hint, language) for language in LANGUAGES):
                    assert judge(question, said).credit < 1, (question.id, said)


def test_the_points_are_the_workshops() -> None:
    questions = QuestionChoice().prepare()
    for number, points in WORKSHOP.items():
        assert sum(question.points for question in questions if question.number == number) == points
    assert sum(question.points for question in questions if not question.bonus) == 260
    assert all(question.points > 0 for question in questions)
    assert sum(share_out(30, [1, 2, 2, 3])) == 30


def test_the_flowchart_is_put_in_order_with_partial_credit() -> None:
    (question,) = QuestionChoice(questions="12a").prepare()
    assert question.order is not None and len(question.order.pieces) == 9
    right = list(question.order.numbers)
    assert right != sorted(right), "the numbers do not give the order away"
    spelled = " → ".join(map(str, right))
    assert take("12a", spelled)[0].points == question.points
    swapped = [right[1], right[0], *right[2:]]
    summary, result = take("12a", " ".join(map(str, swapped)), tries=1)
    assert 0 < summary.points < question.points
    assert f"Piece {right[0]} comes before piece {right[1]}." in result
    assert take("12a", " ".join(map(str, reversed(right))), tries=1)[0].points == 0
    short, result = take("12a", " ".join(map(str, right[:5])), tries=1)
    assert 0 < short.points < question.points and "Missing:" in result
    assert "Type the numbers from 1 to 9, each exactly once" in take("12a", "1 1 2", tries=1)[1]


def test_a_model_with_rotary_positions_has_no_piece_for_them() -> None:
    (question,) = QuestionChoice(questions="12a", preset="bangla-modern").prepare()
    assert question.order is not None
    assert not any("positions are added" in str(piece) for piece in question.order.pieces)


def test_a_random_order_earns_nothing_on_average() -> None:
    order = shuffled(tuple(Bilingual(name, name) for name in "abcdefghi"), 3)
    judged = [judge_order(list(shuffled(order.pieces, seed).numbers), order) for seed in range(300)]
    assert sum(each.credit for each in judged) / len(judged) < 0.15
    assert all(judge_order(given, order).verdict is Verdict.UNREADABLE for given in ([], [10], [1, 1]))


@pytest.mark.parametrize("language", ["en", "bn"])
def test_the_rubric_is_shown_afterwards(language: Language) -> None:
    answer = {"en": "softmax gives it 0", "bn": "সফটম্যাক্সে তা শূন্য হয়"}[language]
    summary, result = take("3b-why", answer, tries=1, language=language)
    assert summary.outcomes[0].verdict is Verdict.PARTLY
    assert result.count("✓") == 2 and result.count("  – ") == 1
    assert ("A model answer:" if language == "en" else "একটি নমুনা উত্তর:") in result
