"""The way of measuring (a benchmark): several sides do the same work in turns, and the median of the rounds counts.

A side is warmed up when it is made. Then every round gives each side a turn, every other round in the reversed order:
what slows a machine down for a while slows all of them, so ratios hold on a busy machine where times do not. The first
side is ours, and its errors are raised; another that cannot take part is left out, and a remark says why.
"""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from statistics import median
from typing import Any

import torch

from kotha.errors import UsageError
from kotha.i18n.message import Message, OnProgress, Option, Text
from kotha.report.table import Table
from kotha.training.device import now

_WARM_UP = {"cpu": 2, "cuda": 10}  # pieces of work; a GPU compiles first, and records what it then replays
_TURN_SECONDS = 0.1  # shorter work is done again until then

Work = Callable[[], Any]  # one piece of work; what it gives is for tests to compare


@dataclass
class Turns:
    """What came of a comparison; the first side is ours."""

    title: Text
    unit: str  # tokens or MB
    amount: float  # of one piece of work, the same for every side
    seconds: dict[str, list[float]] = field(default_factory=dict)  # of one piece of work, by side and round
    figures: dict[str, Any] = field(default_factory=dict)  # what else was measured or foretold
    remarks: list[Text] = field(default_factory=list)  # the same in sentences, and who could not take part

    def sides(self) -> dict[str, dict[str, float]]:
        """Each side's rate by its rounds, and how many times as fast ours is, by the medians."""
        ours, *_ = self.seconds.values()
        found = {}
        for name, each in self.seconds.items():
            rates = {"per_second": median(each), "slowest": max(each), "fastest": min(each)}
            found[name] = {key: self.amount / value for key, value in rates.items()}
            found[name]["ratio"] = median(each) / median(ours)
        return found

    def to_dict(self) -> dict[str, Any]:
        """All of it, ready for JSON."""
        return {**vars(self), "sides": self.sides()}

    def table(self) -> Table:
        """A row for each side."""
        header: list[Text] = ["", Message("{unit} per second", unit=self.unit), Message("slowest"), Message("fastest")]
        header.append(Message("speedup of kotha"))
        rows = [[name, *(f"{figure:,.4g}" for figure in side.values())] for name, side in self.sides().items()]
        return Table(self.title, header, rows, self.remarks)


def take_turns(
    outcome: Turns, makers: Mapping[str, Callable[[], Work]], device: torch.device, rounds: int, tell: OnProgress
) -> None:
    """Make the sides and measure them; the outcome gets their times, and of a GPU's memory the most that each took."""
    check_count("rounds", rounds, 1000)
    works: dict[str, Work] = {}
    for done, (name, make) in enumerate(makers.items()):
        tell(Message("warming up"), done, len(makers))
        before = torch.cuda.memory_allocated()
        if device.type == "cuda":
            torch.cuda.reset_peak_memory_stats()
        try:
            work = make()
            for _ in range(_WARM_UP[device.type]):
                work()
        except Exception as error:  # whatever another library lacks here: the others' figures are not lost
            if not works:
                raise
            why = str(error).strip()[:300] or type(error).__name__
            outcome.remarks.append(Message("{name} was not measured: {why}", name=name, why=why))
            continue
        works[name], outcome.seconds[name] = work, []
        outcome.figures.setdefault("gpu_bytes", {})[name] = torch.cuda.max_memory_allocated() - before
    for turn in range(rounds):
        tell(Message("measuring"), turn, rounds)
        for name in reversed(works) if turn % 2 else works:
            start, pieces = now(device), 0
            while not pieces or time.perf_counter() - start < _TURN_SECONDS:
                works[name]()
                pieces += 1
            outcome.seconds[name].append((now(device) - start) / pieces)


def check_count(name: str, value: int, most: int) -> None:
    """Refuse a number with which nothing can be measured, or for ever."""
    if not 1 <= value <= most:
        raise UsageError("{option} is out of range; use 1 to {most:,}", option=Option(name, value), most=most)
