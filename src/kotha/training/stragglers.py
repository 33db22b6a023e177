"""Who keeps the others waiting: a slow machine (straggler) among those that train together, and a network that stood.

All processes meet at every step, so each step takes as long as the slowest of them, and the clock of a step is the same
for all. What differs is how long each is busy by itself: that is timed inside the blocks of the model on their way
forward, where nobody waits for anyone, and compared every so many steps.
"""

import socket
import time
from collections import deque
from collections.abc import Iterable, Sequence
from statistics import median, median_low
from typing import Any

import torch
from torch import nn

from kotha.i18n.message import Message
from kotha.training.device.fitting import OnRemark
from kotha.training.distributed import Ranks

_COMPARE_EVERY = 20  # steps
_SLOW = 2.0  # times the median: less is within what neighbours on a machine do to one another
_STOOD_SECONDS, _STOOD_TIMES = 5.0, 10.0  # a step that long, and so much longer than usual, was no work
_RECENT = 50


class Stragglers:
    """Watches how fast each process is, and says who is slow, once, and when that is over."""

    def __init__(self, ranks: Ranks, modules: Iterable[nn.Module], device: torch.device, say: OnRemark) -> None:
        self._ranks, self._say = ranks, say
        self._cuda = device.type == "cuda"
        self._begun: Any = None
        self._pairs: list[tuple[Any, Any]] = []
        self._steps, self._last = 0, 0.0
        self._usual: deque[float] = deque(maxlen=_RECENT)
        self._slow: dict[int, str] = {}
        if ranks.alone:
            return
        self._names = ranks.each(socket.gethostname())
        for module in modules:
            # After whoever gathers weights for this module, and before whoever lets them go.
            module.register_forward_pre_hook(lambda *_: self._enter())
            module.register_forward_hook(lambda *_: self._leave(), prepend=True)

    def _mark(self) -> Any:
        if not self._cuda:
            return time.perf_counter()
        event = torch.cuda.Event(enable_timing=True)  # type: ignore[no-untyped-call]
        event.record()
        return event

    def _enter(self) -> None:
        self._begun = self._mark()

    def _leave(self) -> None:
        if torch.is_grad_enabled():  # evaluations are shared out in another way
            self._pairs.append((self._begun, self._mark()))

    def _busy(self) -> float:
        """Seconds in the blocks since this was last asked."""
        if self._cuda:
            torch.cuda.synchronize()
        found = sum(begun.elapsed_time(end) / 1000 if self._cuda else end - begun for begun, end in self._pairs)
        self._pairs = []
        return float(found)

    def rest(self) -> None:
        """Something else than steps comes now: the next step is measured anew."""
        self._last = 0.0

    def step(self, step: int) -> None:
        """A step was done; all processes say so together."""
        if self._ranks.alone:
            return
        self._notice_standing(step)
        self._steps += 1
        if self._steps % _COMPARE_EVERY == 0:
            self._tell(slow_ones(self._ranks.each(self._busy())))

    def _notice_standing(self, step: int) -> None:
        now = time.perf_counter()
        taken, self._last = now - self._last if self._last else None, now
        if taken is None:
            return
        usual = median(self._usual) if self._usual else taken
        if taken > max(_STOOD_SECONDS, _STOOD_TIMES * usual):
            self._say(
                Message(
                    "step {step:,} took {taken:.1f} s instead of {usual:.2g} s: a machine, or the network, stood still",
                    step=step,
                    taken=taken,
                    usual=usual,
                )
            )
        self._usual.append(taken)

    def _tell(self, slow: dict[int, float]) -> None:
        for rank, times in slow.items():
            if rank not in self._slow:
                self._slow[rank] = self._names[rank]
                self._say(
                    Message(
                        "{name} (process {rank}) is {times:.1f} times slower than the median of all",
                        name=self._names[rank],
                        rank=rank,
                        times=times,
                    )
                )
        for rank in [rank for rank in self._slow if rank not in slow]:
            self._say(
                Message("{name} (process {rank}) is as fast as the others again", name=self._slow.pop(rank), rank=rank)
            )


def slow_ones(busy: Sequence[float]) -> dict[int, float]:
    """Which processes are much slower than the median, and how many times.

    >>> slow_ones([1.0, 1.0, 3.0, 1.2])
    {2: 3.0}
    """
    usual = median_low(busy)  # of two, the faster
    return {rank: each / usual for rank, each in enumerate(busy) if usual > 0 and each >= _SLOW * usual}
