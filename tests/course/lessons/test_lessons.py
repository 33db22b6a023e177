"""Every lesson, run in a second or two: training, measurements, conclusions in both languages, and saving."""

import json
import math
from dataclasses import asdict

import pytest
from tests.course.lessons.small import TINY

from kotha.course.lessons.catalogue import lesson, lessons
from kotha.course.lessons.result import LessonResult
from kotha.course.lessons.runner import MeasuredLesson
from kotha.course.lessons.training_data import Sizes
from kotha.errors import UsageError


@pytest.mark.parametrize("name", [each.name for each in lessons()])
def test_a_lesson_measures_every_condition_with_every_seed(name: str) -> None:
    messages: list[tuple[int, int]] = []
    found = MeasuredLesson(lesson(name), (0, 1), **asdict(TINY)).run(lambda done, total: messages.append((done, total)))
    assert found.plain["lesson"] == name
    assert messages and messages[-1][0] == messages[-1][1], "progress ends at its total"
    assert [done for done, _ in messages] == list(range(1, messages[-1][1] + 1))
    columns = {figure["key"] for figure in found.plain["figures"]}
    for condition, row in found.rows.items():
        assert set(row["figures"]) == columns, "all measures are shown"
        for key, values in row["figures"].items():
            assert len(values) == 2, f"{condition}, {key}: a figure for each seed"
            assert all(math.isfinite(value) for value in values)
    assert found.plain["reading"]
    for sentence in found.plain["reading"]:
        english, bangla = sentence["en"], sentence["bn"]
        assert english != bangla
        assert not {"{", "}"} & set(english + bangla), "every figure is filled in"
    assert found.plain["about"]["seeds"] == [0, 1] and found.plain["about"]["sizes"]["steps"] == TINY.steps
    lines = found.plain["drawing"]["lines"]
    assert 1 <= len(lines) <= 4 and all(line["points"] for line in lines)

    again = LessonResult(json.loads(json.dumps(found.plain)))
    for language in ("en", "bn"):
        assert again.markdown(language) == found.markdown(language)
        assert again.svg(language) == found.svg(language)
        assert found.svg(language).startswith('<svg xmlns="http://www.w3.org/2000/svg"')
        assert "var(" not in found.svg(language), "colours do not depend on a page"


def test_training_is_reproducible_by_seed() -> None:
    once, twice = (MeasuredLesson(lesson("joined"), (3,), **asdict(TINY)).run() for _ in range(2))
    assert once.rows == twice.rows
    other = MeasuredLesson(lesson("joined"), (4,), **asdict(TINY)).run()
    assert other.rows["added"]["means"]["held_out"] != once.rows["added"]["means"]["held_out"]


def test_a_lesson_s_own_sizes_are_the_defaults() -> None:
    assert MeasuredLesson(lesson("joined")).sizes == Sizes(steps=300)
    assert MeasuredLesson(lesson("joined"), steps=7, d_model=32).sizes == Sizes(steps=7, d_model=32)


def test_an_unknown_lesson_suggests_the_nearest() -> None:
    with pytest.raises(UsageError, match="unknown lesson 'masc'; did you mean 'mask'"):
        lesson("masc")


def test_too_few_seeds_or_steps_are_rejected() -> None:
    with pytest.raises(UsageError, match="steps=0 is too low"):
        MeasuredLesson(lesson("mask"), steps=0)
    with pytest.raises(UsageError, match="seeds=0 is out of range; use 1 to 100"):
        MeasuredLesson(lesson("mask"), ())
