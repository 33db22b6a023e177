"""One layer without positions gives one answer whatever the order of the past; with positions, or two layers, not."""

import pytest
import torch
from tests.course.lessons.small import TINY, loud

from kotha.course.lessons.classroom import classroom
from kotha.course.lessons.measuring import moved_by_shuffling
from kotha.course.lessons.positions import make, read
from kotha.course.lessons.result import Condition
from kotha.i18n.catalogue import translate
from kotha.i18n.message import Bilingual


@pytest.mark.parametrize(
    ("n_layers", "positions", "order_matters"),
    [(1, "none", False), (2, "none", True), (1, "learned", True), (2, "learned", True)],
)
def test_a_shuffled_past(n_layers: int, positions: str, order_matters: bool) -> None:
    torch.manual_seed(0)
    room = classroom(TINY)
    moved = moved_by_shuffling(loud(make(room, n_layers, positions)), room.windows())
    assert moved > 1e-3 if order_matters else moved < 1e-5


def figures(key: str, loss: list[float], moved: float) -> Condition:
    return Condition(key, Bilingual(key, key), {"held_out": loss, "moved": [moved] * len(loss)})


def test_the_reading_follows_the_figures() -> None:
    one, two = figures("1", [1.5, 1.6], 0.5), figures("2", [1.4, 1.4], 0.6)
    clear = read(one, figures("1-", [2.0, 2.0], 0.0), two, figures("2-", [1.9, 1.9], 0.2))
    assert [str(sentence).split()[0] for sentence in clear] == ["To", "Order", "Two"]
    assert "1.55, without 2.00" in str(clear[1]) and "০.২০" in translate(clear[2], "bn")
    unclear = read(one, figures("1-", [1.55, 1.55], 0.0), two, figures("2-", [1.9, 1.9], 0.0))
    assert "Not every seed agrees" in str(unclear[1]) and len(unclear) == 2
