"""Recognized mistakes: each is computed, typed and named; the page and the library share one list of cases."""

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from kotha.course.exercises.grading import judge
from kotha.course.exercises.mistakes import diagnose
from kotha.course.exercises.number_comparison import Verdict, readings
from kotha.course.exercises.questions import Question
from kotha.course.exercises.selection import QuestionChoice
from kotha.course.worksheet.builtin_sheets import student_sheet
from kotha.report.built import words

CASES = json.loads((Path(__file__).parents[3] / "web/tests/data/mistakes.json").read_text(encoding="utf-8"))
SHEET = student_sheet()
M = SHEET.matrices


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["about"])
def test_a_cell_is_diagnosed_as_on_the_page(case: dict[str, Any]) -> None:
    slack = 0.0 if case["step"] in ("Q", "K", "V", "products") else 0.0005
    typed, cell = readings(case["typed"])[0], (case["row"] - 1, case["column"] - 1)
    found = diagnose(SHEET, SHEET.steps[case["step"]], typed, [cell], slack)
    assert case["mistake"] in [way.name for way in found]


def test_an_unknown_mistake_is_not_diagnosed() -> None:
    assert diagnose(SHEET, SHEET.steps["Q"], readings("0.61234")[0], [(0, 1)]) == []


def typed_in(matrix: Any, decimals: int = 4) -> str:
    return "; ".join(" ".join(f"{value:.{decimals}f}" for value in row) for row in np.atleast_2d(matrix).tolist())


def softmax(scores: Any, axis: int = 1) -> Any:
    powers = np.exp(scores)
    return powers / powers.sum(axis=axis, keepdims=True)


def one(number: str) -> Question:
    return next(each for each in QuestionChoice(questions=number).prepare() if each.id == number)


ROUNDED_EARLY = (M["Q"][:, None, :] * M["K"][None, :, :]).round(1).sum(axis=2)
MASKED = M["masked"]
# A full matrix with each mistake, and the name of the mistake in the catalogue.
WHOLE = [
    ("unscaled", "2c", typed_in(M["products"]), "noRoot"),
    ("divided by d_k", "2c", typed_in(M["products"] / 2), "widthForRoot"),
    ("K not turned", "2b", typed_in(np.column_stack([M["Q"] @ M["K"][:2], M["products"][:, 2]])), "notTurned"),
    ("pairs added", "1Q", typed_in((M["X"][:, :, None] + M["W_Q"][None]).sum(axis=1)), "added"),
    ("columns summed", "1Q", typed_in(np.tile(M["W_Q"].sum(axis=0), (3, 1))), "summedColumn"),
    ("row for column", "1Q", typed_in(M["X"][:, :2] @ M["W_Q"][:2].T), "rowForColumn"),
    ("another matrix", "1K", typed_in(M["Q"]), "otherMatrix"),
    ("rounded too early", "2b", typed_in(ROUNDED_EARLY), "early"),
    ("mask forgotten", "3b", typed_in(M["scores"]), "maskForgotten"),
    ("zero for −∞", "3b", typed_in(np.where(np.isneginf(MASKED), 0, MASKED)), "maskZero"),
    ("mask forgotten in softmax", "4b", typed_in(softmax(M["scores"])[1]), "maskForgotten"),
    ("softmax down the columns", "4b", typed_in(softmax(MASKED, axis=0)[1]), "softmaxDown"),
    ("e forgotten", "4c", typed_in(M["scores"][2] / M["scores"][2].sum()), "noE"),
    ("softmax of unscaled scores", "4c", typed_in(softmax(M["products"])[2]), "noRoot"),
    ("not divided by the sum", "4c", typed_in(np.exp(M["scores"][2])), "notDivided"),
    ("scores rounded before e", "4c", typed_in(softmax(M["scores"].round(1))[2]), "earlyScores"),
    ("rows exchanged", "5", typed_in(M["output"][[1, 0, 2]]), "otherRow"),
    ("mask forgotten up to the output", "5", typed_in(softmax(M["scores"]) @ M["V"]), "maskForgotten"),
    ("the point", "1V", typed_in(M["V"] * 10), "point"),
]  # fmt: skip


@pytest.mark.parametrize(("number", "typed", "mistake"), [each[1:] for each in WHOLE], ids=[each[0] for each in WHOLE])
def test_a_full_matrix_is_diagnosed(number: str, typed: str, mistake: str) -> None:
    question = one(number)
    judged = judge(question, typed)
    assert judged.verdict in (Verdict.WRONG, Verdict.PARTLY), judged
    pattern = words("hand")[f"wrong.{mistake}"]["en"].split("{")[0]
    assert any(str(said).startswith(pattern) for said in judged.feedback), list(map(str, judged.feedback))


def test_a_matrix_typed_by_columns_is_recognised() -> None:
    judged = judge(one("1Q"), typed_in(M["Q"].T, 2).replace(";", " "))
    assert str(judged.feedback[-1]) == (
        "The numbers are right, but you typed them column by column; type them row by row."
    )


def test_the_mistake_that_explains_most_is_named_first() -> None:
    wrong = M["products"].copy()
    wrong[0, 0] = -wrong[0, 0]  # a wrong sign among nine numbers without the root
    judged = judge(one("2c"), typed_in(wrong))
    assert str(judged.feedback[0]) == "Almost right: it still has to be divided by √d_k."


# Answers that are not matrices: the result of the mistake, and its name.
SLIPS = [
    ("2a", "3 2", "order"),
    ("2b-shape", "2 2", "widthsKept"),
    ("3a", "1 1 1; 0 1 1; 0 0 1", "maskTurned"),
    ("3a", "1 1 1; 1 1 1; 1 1 1", "nothingHidden"),
    ("6a", "128 64", "order"),
    ("6b", "64 512 128", "order"),
    ("6c", "512", "outside"),
    ("6d", "64 128 512", "beforeHead"),
    ("7c-1", "3e-4", "noWarmup"),
    ("7c-2", "1.8e-4", ""),
    ("7c-2", f"{0.1 * 3e-4 + 0.9 * 3e-4 * 0.5 * (1 + math.cos(math.pi / 2)):.4g}", "warmupKept"),
    ("7c-2", f"{3e-4 * 0.5 * (1 + math.cos(math.pi * 9 / 19)):.4g}", "noFloor"),
    ("7c-2", f"{0.1 * 3e-4 + 0.9 * 3e-4 * 0.5 * (1 + math.cos(math.radians(math.pi * 9 / 19))):.5g}", "degrees"),
    ("8b", "149", "firstForgotten"),
    ("9a-1", "0.003143", "upsideDown"),
    ("9a-1", "31.81", "point"),
    ("9a-1", "6038", "otherSplit"),
    ("9b", "65,535", "lastId"),
    ("9b", "32,768", "signed"),
    ("9c-1", "192", "added"),
    ("9c-2", "544,000", "sequences"),
    ("9c-3", "28.6", "validationToo"),
    ("10a-1", "32,612", "tableAdded"),
    ("10a-2", "98,304", "noOutput"),
    ("10a-2", "1,048,576", "wholeLayer"),
    ("10a-3", "1,048,576", "oneOfTwo"),
    ("10a-4", "41.7M", "noHead"),
    ("10b", "1.86 GB", "bitsForBytes"),
    ("10b", "0.93 GB", "allOfAdam"),
    ("11c", "64 128 64", "oneHeadsShape"),
]


@pytest.mark.parametrize(("number", "typed", "slip"), SLIPS)
def test_a_mistake_is_recognised_by_its_result(number: str, typed: str, slip: str) -> None:
    question = one(number)
    judged = judge(question, typed)
    if not slip:
        assert judged.verdict is Verdict.RIGHT
        return
    assert judged.credit == 0
    assert judged.feedback == (next(each.words for each in question.slips if each.name == slip),)


def test_no_mistake_leads_to_the_right_answer() -> None:
    """On random sheets too, a different path to the right number is not a mistake."""
    for seed in range(20):
        questions = QuestionChoice(seed=seed).prepare()
        for question in questions:
            if question.expected is None:
                continue
            for slip in question.slips:
                typed = " ".join(repr(value) for value in slip.values)
                judged = judge(question, typed)
                assert judged.credit < 1, (seed, question.id, slip)
