"""A benchmark: several implementations do the same work in turn, and the median over all rounds is reported.

Each implementation is warmed up when it is created. Each round then runs every implementation once, in reverse order in
every other round, so that a temporary slowdown affects all of them and the ratios stay meaningful. The first
implementation is Kotha's, and its errors are raised. If another implementation fails, it is skipped with a remark.
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

_WARM_UP = {"cpu": 2, "cuda": 10}  # runs; a GPU first compiles, and records CUDA graphs
_ROUND_SECONDS = 0.1  # work that takes less time is repeated until this time is reached

Work = Callable[[], Any]  # one run of the work; tests compare its result


@dataclass
class BenchmarkResult:
    """The result of a benchmark; the first implementation is Kotha's."""

    title: Text
    unit: str  # tokens or MB
    amount: float  # of one run, the same for all
    seconds: dict[str, list[float]] = field(default_factory=dict)  # per run, by implementation and round
    figures: dict[str, Any] = field(default_factory=dict)  # other measured or predicted figures
    remarks: list[Text] = field(default_factory=list)  # the same as messages, and skipped implementations

    def implementations(self) -> dict[str, dict[str, float]]:
        """Return each implementation's rate and Kotha's speedup over it, computed from the medians."""
        ours, *_ = self.seconds.values()
        found = {}
        for name, each in self.seconds.items():
            rates = {"per_second": median(each), "slowest": max(each), "fastest": min(each)}
            found[name] = {key: self.amount / value for key, value in rates.items()}
            found[name]["ratio"] = median(each) / median(ours)
        return found

    def to_dict(self) -> dict[str, Any]:
        """Convert to JSON."""
        return {**vars(self), "implementations": self.implementations()}

    def table(self) -> Table:
        """Return a table with a row for each implementation."""
        header: list[Text] = ["", Message("{unit} per second", unit=self.unit), Message("slowest"), Message("fastest")]
        header.append(Message("speedup of kotha"))
        rows = [
            [name, *(f"{figure:,.4g}" for figure in side.values())] for name, side in self.implementations().items()
        ]
        return Table(self.title, header, rows, self.remarks)


def measure_rounds(
    outcome: BenchmarkResult,
    makers: Mapping[str, Callable[[], Work]],
    device: torch.device,
    rounds: int,
    tell: OnProgress,
) -> None:
    """Create and measure the implementations; ``outcome`` receives their times and peak GPU memory."""
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
        except Exception as error:  # an error of another library must not lose the other figures
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
            start, runs = now(device), 0
            while not runs or time.perf_counter() - start < _ROUND_SECONDS:
                works[name]()
                runs += 1
            outcome.seconds[name].append((now(device) - start) / runs)


def check_count(name: str, value: int, most: int) -> None:
    """Raise ``UsageError`` for a number out of range."""
    if not 1 <= value <= most:
        raise UsageError("{option} is out of range; use 1 to {most:,}", option=Option(name, value), most=most)
