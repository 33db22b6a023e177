"""Who is slow among processes that wait for each other, and what is said of it."""

import time
from typing import Any

import pytest
import torch
from torch import nn

from kotha.i18n.message import Message
from kotha.training import distributed as pace
from kotha.training.distributed import ALONE, Ranks, Stragglers


class Others(Ranks):
    """Two processes, of which the second is not there: it is so many times as busy."""

    times = 1.0

    def each(self, value: Any) -> list[Any]:
        return [value, "node-2" if isinstance(value, str) else value * Others.times]


class Working(nn.Module):
    def forward(self, seconds: float) -> None:
        time.sleep(seconds)


@pytest.fixture
def told(monkeypatch: pytest.MonkeyPatch) -> list[Message]:
    monkeypatch.setattr(pace, "_COMPARE_EVERY", 2)
    return []


def test_of_two_the_slower_is_named_once_and_again_when_it_is_well(told: list[Message]) -> None:
    working, ranks = Working(), Others(0, 2)
    watched = Stragglers(ranks, [working], torch.device("cpu"), told.append)
    Others.times = 2.5
    for step in range(1, 9):
        working(0.02)
        watched.step(step, 0.02)
        if step == 6:
            Others.times = 1.2
    assert [str(each) for each in told] == [
        "node-2 (process 1) takes 2.5 times as long as the median process",
        "node-2 (process 1) is as fast as the others again",
    ]


def test_only_what_is_learned_counts() -> None:
    working = Working()
    watched = Stragglers(Others(0, 2), [working], torch.device("cpu"), print)
    with torch.no_grad():
        working(0.05)
    assert watched._busy() == 0
    working(0.01)
    assert watched._busy() >= 0.01 and watched._busy() == 0


def test_a_step_in_which_nothing_moved_is_told(told: list[Message]) -> None:
    watched = Stragglers(Others(0, 2), [], torch.device("cpu"), told.append)
    for step, seconds in enumerate([0.5, 0.5, 0.5, 31.0, 0.5, 2.0], 1):
        watched.step(step, seconds)
    assert [str(each) for each in told] == ["step 4 took 31.0 s instead of 0.5 s: a machine or the network stalled"]


def test_one_alone_has_nobody_to_wait_for(told: list[Message]) -> None:
    working = Working()
    watched = Stragglers(ALONE, [working], torch.device("cpu"), told.append)
    watched.step(1, 60.0)
    assert not working._forward_hooks and told == []
