"""The page of demonstrations shows the stored results, with three seeds for every lesson."""

import json

import pytest
from scripts.book import demonstrations

from kotha.course.data import both
from kotha.course.lessons.catalogue import lesson, lessons
from kotha.course.lessons.result import LessonResult, row_of
from kotha.course.lessons.runner import MeasuredLesson


def test_the_page_of_demonstrations_is_what_was_measured() -> None:
    for path, text in demonstrations.pages().items():
        assert path.read_text(encoding="utf-8") == text, "regenerate it: python -m scripts.book.demonstrations"


@pytest.mark.parametrize("name", [each.name for each in lessons()])
def test_every_lesson_was_measured_with_three_seeds(name: str) -> None:
    record = json.loads((demonstrations.RESULTS / f"{name}.json").read_text(encoding="utf-8"))
    rows = LessonResult(record).rows
    assert record["command"] == f"kotha lessons run {name} --seeds 3" and record["lesson"] == name
    for key, row in rows.items():
        assert all(len(values) == 3 for values in row["figures"].values())
        assert row["means"] == pytest.approx(row_of(key, key, row["figures"])["means"])


@pytest.mark.parametrize("name", [each.name for each in lessons()])
def test_what_is_said_follows_from_the_figures_that_are_kept(name: str) -> None:
    record = json.loads((demonstrations.RESULTS / f"{name}.json").read_text(encoding="utf-8"))
    result = MeasuredLesson(lesson(name)).read(LessonResult(record).rows)
    assert [both(sentence) for sentence in result] == record["reading"]


def test_a_lesson_takes_as_long_as_the_list_says() -> None:
    for each in lessons():
        record = json.loads((demonstrations.RESULTS / f"{each.name}.json").read_text(encoding="utf-8"))
        measured = record["about"]["processor_seconds"] / 60
        assert measured <= each.minutes <= max(0.1, measured + 1), each.name
