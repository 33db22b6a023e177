"""Detecting and reporting which of several synchronized processes is slow."""

import time
from typing import Any

import pytest
import torch
from torch import nn

from kotha.i18n.message import Message
from kotha.training import distributed as pace
from kotha.training.distributed import ALONE, Ranks, Stragglers


class Others(Ranks):
    """Two processes; the second one is simulated and several times as busy."""

    times = 1.0

    def each(self, value: Any) -> list[Any]:
        return [value, "node-2" if isinstance(value, str) else value * Others.times]


class Working(nn.Module):
    def forward(self, seconds: float) -> None:
        time.sleep(seconds)


@pytest.fixture
def remarks(monkeypatch: pytest.MonkeyPatch) -> list[Message]:
    monkeypatch.setattr(pace, "_COMPARE_EVERY", 2)
    return []


def test_the_slower_of_two_is_reported_once_and_on_recovery(remarks: list[Message]) -> None:
    working, ranks = Working(), Others(0, 2)
    watched = Stragglers(ranks, [working], torch.device("cpu"), remarks.append)
    Others.times = 2.5
    for step in range(1, 9):
        working(0.02)
        watched.step(step, 0.02)
        if step == 6:
            Others.times = 1.2
    assert [str(each) for each in remarks] == [
        "node-2 (process 1) takes 2.5 times as long as the median process",
        "node-2 (process 1) is as fast as the others again",
    ]


def test_only_training_passes_count() -> None:
    working = Working()
    watched = Stragglers(Others(0, 2), [working], torch.device("cpu"), print)
    with torch.no_grad():
        working(0.05)
    assert watched._busy() == 0
    working(0.01)
    assert watched._busy() >= 0.01 and watched._busy() == 0


def test_a_stalled_step_is_reported(remarks: list[Message]) -> None:
    watched = Stragglers(Others(0, 2), [], torch.device("cpu"), remarks.append)
    for step, seconds in enumerate([0.5, 0.5, 0.5, 31.0, 0.5, 2.0], 1):
        watched.step(step, seconds)
    assert [str(each) for each in remarks] == ["step 4 took 31.0 s instead of 0.5 s: a machine or the network stalled"]


def test_a_single_process_reports_nothing(remarks: list[Message]) -> None:
    working = Working()
    watched = Stragglers(ALONE, [working], torch.device("cpu"), remarks.append)
    watched.step(1, 60.0)
    assert not working._forward_hooks and remarks == []
