"""Figures over several seeds: their display in a table, and the best figure in a column."""

from typing import Any

import pytest

from kotha.course.lessons.result import LessonResult, Row, row_of, shown
from kotha.i18n.message import Bilingual

LOSS = {"key": "loss", "title": {"en": "loss", "bn": "লস"}, "digits": 2, "better": "low", "percent": False}
SHARE = {"key": "share", "title": {"en": "share", "bn": "ভাগ"}, "digits": 0, "better": "high", "percent": True}


def row(key: str, *losses: float, **more: list[float]) -> Row:
    return row_of(key, Bilingual(key, f"{key}-bn"), {"loss": list(losses), **more})


def result(*rows: Row, **how: Any) -> LessonResult:
    return LessonResult({"figures": [{**LOSS, **how}, SHARE], "conditions": rows})


@pytest.mark.parametrize(
    ("seeds", "figure", "expected"),
    [
        ((1.0, 1.3, 1.6), {"digits": 1}, "1.3 ± 0.3"),
        ((49_152.0, 49_152.0), {"digits": 0}, "49,152"),  # without deviation, no ± is shown
        ((0.5, 0.7), {"digits": 0, "percent": True}, "60 ± 10 %"),
        ((0.5,), {"key": "other"}, "—"),
    ],
)
def test_a_figure_is_the_mean_with_the_largest_deviation(
    seeds: tuple[float, ...], figure: dict[str, Any], expected: str
) -> None:
    assert shown(row("a", *seeds), {**LOSS, **figure}) == expected


def test_the_best_of_a_column_is_marked_unless_all_are_equal() -> None:
    found = result(row("a", 2.0, share=[0.5]), row("b", 1.0, share=[0.5]))
    assert found.table().marks == {(1, 1): "best"}
    assert result(row("a", 2.0), row("b", 1.0), better=None).table().marks == {}


def test_markdown_table() -> None:
    assert result(row("a", 2.0, share=[0.25])).markdown("bn").splitlines() == [
        "|  | লস | ভাগ |",
        "| --- | --- | --- |",
        "| a-bn | 2.00 | 25 % |",
    ]


def test_the_stored_result_has_means_and_seeds() -> None:
    plain = row("a", 1.0, 2.0)
    assert plain["figures"]["loss"] == [1.0, 2.0]
    assert plain["means"]["loss"] == 1.5 and plain["spreads"]["loss"] == 0.5
