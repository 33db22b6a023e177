"""One list of answers that page and library must judge alike."""

import json
from pathlib import Path
from typing import Any

import pytest

from kotha.course.exercises.grading import Expected, grade, worked_sum

CASES = json.loads((Path(__file__).parents[3] / "web/tests/data/typed.json").read_text(encoding="utf-8"))


@pytest.mark.parametrize("case", CASES["cells"], ids=lambda case: case["typed"])
def test_a_cell_is_graded_as_on_the_page(case: dict[str, Any]) -> None:
    expected = Expected((float(case["value"]),), slack=case.get("slack", 0.0))
    assert grade(case["typed"], expected).verdict.value == case["verdict"]


@pytest.mark.parametrize(
    "text", ["", "0.5", "1.5×10^-4", "2+", "(1", "1)", "0.5 0.3", "e" * 500, "-" * 300 + "1", "abc", "0/0"]
)
def test_what_is_no_sum_is_not_guessed_at(text: str) -> None:
    assert worked_sum(text) is None
