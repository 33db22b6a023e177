"""Figures over seeds: what a table shows of them, what is best, and when a difference is one."""

from kotha.course.lessons.result import Condition, Drawing, Figure, LessonResult, Line, below, shown
from kotha.i18n.message import Bilingual

NAME = Bilingual("loss", "লস")


def row(key: str, *losses: float, **more: list[float]) -> Condition:
    return Condition(key, Bilingual(key, f"{key}-bn"), {"loss": list(losses), **more})


def result(*rows: Condition, **how: object) -> LessonResult:
    figures = [Figure("loss", NAME, **how), Figure("share", Bilingual("share", "ভাগ"), 0, "high", percent=True)]  # type: ignore[arg-type]
    drawing = Drawing(NAME, NAME, NAME, [Line(NAME, [(1.0, 2.0), (2.0, 1.0)])])
    return LessonResult("mask", figures, rows, [NAME], drawing)


def test_a_figure_is_the_mean_and_how_far_the_farthest_seed_is() -> None:
    assert shown(row("a", 1.0, 1.3, 1.6), Figure("loss", NAME, 1)) == "1.3 ± 0.3"
    assert shown(row("a", 49_152.0, 49_152.0), Figure("loss", NAME, 0)) == "49,152", "what does not vary says so"
    assert shown(row("a", 0.5, 0.7), Figure("loss", NAME, 0, percent=True)) == "60 ± 10 %"
    assert shown(row("a", 0.5), Figure("other", NAME)) == "—"


def test_the_best_of_a_column_is_marked_and_nothing_where_all_are_equal() -> None:
    found = result(row("a", 2.0, share=[0.5]), row("b", 1.0, share=[0.5]))
    assert found.table().marks == {(1, 1): "best"}
    assert result(row("a", 2.0), row("b", 1.0), better=None).table().marks == {}


def test_a_difference_is_one_where_every_seed_agrees() -> None:
    assert below(row("a", 1.0, 2.0), row("b", 1.1, 2.1), "loss")
    assert not below(row("a", 1.0, 2.2), row("b", 1.1, 2.1), "loss")


def test_a_table_of_a_document() -> None:
    assert result(row("a", 2.0, share=[0.25])).markdown("bn").splitlines() == [
        "|  | লস | ভাগ |",
        "| --- | --- | --- |",
        "| a-bn | 2.00 | 25 % |",
    ]


def test_what_is_kept_has_the_means_beside_each_seed() -> None:
    plain = result(row("a", 1.0, 2.0)).to_dict()["conditions"][0]
    assert plain["figures"]["loss"] == [1.0, 2.0]
    assert plain["means"]["loss"] == 1.5 and plain["spreads"]["loss"] == 0.5
