"""The question file, which teachers can change: its structure is valid."""

import json
from collections.abc import Iterator
from string import Formatter
from typing import Any

import pytest

from kotha.course.data import calculate
from kotha.course.exercises.number_comparison import FILE
from kotha.course.exercises.selection import QuestionChoice, values_of
from kotha.course.worksheet.builtin_sheets import student_sheet

TOLD = json.loads(FILE.read_text(encoding="utf-8"))
QUESTIONS = [each for told in TOLD["sets"].values() for each in told["questions"]]
VALUES = {
    **values_of(QuestionChoice(), student_sheet()),
    "answer": 1.0,
    "row": 1,
    "token": "a",
    "left": "X",
    "right": "W",
    "line": "",
    "needed": 1,
}
KEYS = {"id", "text", "worked", "answer", "columns", "exact", "slack", "others", "bytes", "slips", "hints", "rubric"}
KEYS |= {"order", "step", "by_row", "shows"}


def texts(told: Any) -> Iterator[dict[str, str]]:
    if isinstance(told, dict):
        if "en" in told or "line" in told:
            yield told
        for each in told.values():
            yield from texts(each)
    elif isinstance(told, list):
        for each in told:
            yield from texts(each)


def names(text: str) -> set[str]:
    return {name for _, name, _, _ in Formatter().parse(text) if name}


@pytest.mark.parametrize("entry", QUESTIONS, ids=lambda entry: entry["id"])
def test_every_question_has_one_kind_of_answer(entry: dict[str, Any]) -> None:
    assert entry.keys() <= KEYS, "no unused keys"
    assert sum(key in entry for key in ("answer", "step", "rubric", "order")) == 1
    assert "step" in entry or entry["worked"]
    assert set(entry.get("slips", {})) <= TOLD["slips"].keys(), "each slip has a text"
    assert "rubric" not in entry or entry["rubric"].keys() == {"lead", "parts", "misbeliefs"}


def test_texts_are_bilingual_and_use_known_values() -> None:
    for text in texts(TOLD):
        assert text.keys() in ({"line", "when"}, {"line"}) or {"en", "bn"} <= text.keys(), text
        for each in (text.get(key, "") for key in ("en", "bn", "line")):
            assert names(each) <= VALUES.keys(), text
        assert names(text.get("en", "")) == names(text.get("bn", "")), text
        assert isinstance(calculate(text.get("when", "1"), VALUES), int | float | None)


def test_every_question_number_has_points() -> None:
    for name, told in TOLD["sets"].items():
        found = QuestionChoice(set=name).prepare()
        assert {each.number for each in found} == {int(number) for number in told["points"]}
        assert len({each.id for each in found}) == len(found)
