"""Scores of classifiers, on paper."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kotha.errors import DataError
from kotha.evaluate.classification import score_classes


def test_three_classes_on_paper() -> None:
    labels = ["ভালো"] * 4 + ["মন্দ"] * 4 + ["মাঝারি"] * 2
    answers = ["ভালো", "ভালো", "ভালো", "মন্দ", "মন্দ", "মন্দ", "ভালো", "মাঝারি", "মন্দ", "মাঝারি"]
    score = score_classes(labels, answers, names=["ভালো", "মন্দ", "মাঝারি"])
    assert score.confusion == [[3, 1, 0], [1, 2, 1], [0, 1, 1]]
    assert score.accuracy == 0.6
    assert score.majority == 0.4
    good, bad, middling = score.classes
    assert (good.precision, good.recall, good.f1) == (0.75, 0.75, 0.75)
    assert (bad.precision, bad.recall, bad.f1) == (0.5, 0.5, 0.5)
    assert (middling.precision, middling.recall, middling.f1) == (0.5, 0.5, 0.5)
    assert score.macro_f1 == pytest.approx((0.75 + 0.5 + 0.5) / 3)
    assert [each.examples for each in score.classes] == [4, 4, 2]


def test_always_the_most_frequent_answer_is_seen_through() -> None:
    score = score_classes([0] * 9 + [1], [0] * 10)
    assert score.accuracy == score.majority == 0.9
    assert score.macro_f1 == pytest.approx((18 / 19 + 0) / 2)


def test_a_class_that_nobody_saw_is_left_out_of_the_mean() -> None:
    score = score_classes(["a", "b"], ["a", "b"], names=["a", "b", "c"])
    assert score.macro_f1 == 1
    assert score.classes[2].f1 == 0
    assert score_classes(["a", "a"], ["a", "b"]).macro_f1 == pytest.approx((2 / 3 + 0) / 2), "b was only answered"


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), min_size=1))
def test_the_table_adds_up(pairs: list[tuple[int, int]]) -> None:
    labels, answers = zip(*pairs, strict=True)
    score = score_classes(labels, answers, names=range(4))
    assert sum(map(sum, score.confusion)) == len(pairs)
    assert score.accuracy == sum(one == other for one, other in pairs) / len(pairs)
    assert 0 <= score.macro_f1 <= 1
    assert all(min(each.precision, each.recall) <= each.f1 + 1e-9 for each in score.classes)


@pytest.mark.parametrize(
    ("labels", "answers", "names", "wording"),
    [
        (["a"], ["a", "b"], None, "1 labels and 2 answers"),
        ([], [], None, "there are no examples"),
        (["a"], ["b"], ["a"], "'b' is not one of the classes a"),
    ],
)
def test_what_cannot_be_judged_is_refused(labels, answers, names, wording: str) -> None:
    with pytest.raises(DataError, match=wording):
        score_classes(labels, answers, names)
