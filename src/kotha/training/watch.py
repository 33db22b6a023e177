"""What a loop keeps an eye on: its loss, its clock, and who asks it to stop.

Ctrl-C and SIGTERM are a question: the loop finishes its step, saves and ends. A second Ctrl-C ends at once. A scheduler
asks by SIGTERM and kills soon after; it may well ask twice, so a second one changes nothing.
"""

import math
import signal
import time
from collections import deque
from collections.abc import Callable
from types import FrameType
from typing import Any

from kotha.i18n.message import Message
from kotha.training.checkpointer import Progress

_RECENT = 50


class Watch:
    """Remembers the last losses and says what is strange about a new one: no number, or a jump."""

    def __init__(self, spike: float | None) -> None:
        self._spike = spike
        self.recent: deque[float] = deque(maxlen=_RECENT)

    def complaint(self, loss: float) -> Message | None:
        """What is wrong with this loss; None when nothing is."""
        if not math.isfinite(loss):
            return Message("is {loss}", loss=loss)
        usual = sum(self.recent) / len(self.recent) if len(self.recent) == _RECENT else math.inf
        if self._spike is not None and loss > usual + self._spike:
            return Message("rose to {loss:.3f} from about {usual:.3f}", loss=loss, usual=usual)
        self.recent.append(loss)
        return None


class Clock:
    """Counts the seconds that go into learning, not those of measuring and saving."""

    def __init__(self) -> None:
        self._since: float | None = None
        self._tokens, self._seconds = 0, 0.0
        self.tokens_per_second = 0.0

    def start(self, progress: Progress) -> None:
        """Count from here, unless it already counts."""
        if self._since is None:
            self._since = time.perf_counter()
            self._tokens, self._seconds = progress.tokens, progress.seconds

    def stop(self, progress: Progress) -> None:
        """Add what has passed."""
        if self._since is not None:
            progress.seconds += time.perf_counter() - self._since
            seconds = progress.seconds - self._seconds
            self.tokens_per_second = (progress.tokens - self._tokens) / max(1e-9, seconds)
            self._since = None


class Interrupts:
    """While this is open, the first signal only sets ``asked``; ``on_ask`` hears its name, inside the handler."""

    def __init__(self, on_ask: Callable[[str], None] | None = None) -> None:
        self.asked = False
        self.hurried = False
        self._on_ask = on_ask
        self._before: dict[int, Any] = {}

    def __enter__(self) -> "Interrupts":
        for number in (signal.SIGINT, signal.SIGTERM):
            try:
                self._before[number] = signal.signal(number, self._ask)
            except ValueError:  # only the main thread may listen; elsewhere signals are someone else's business
                break
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def _ask(self, number: int, frame: FrameType | None) -> None:
        again, self.asked = self.asked, True
        self.hurried = self.hurried or number == signal.SIGTERM
        if not again and self._on_ask is not None:
            self._on_ask(signal.Signals(number).name)
        if again and number == signal.SIGINT:
            before = self._before[number]
            if callable(before):
                before(number, frame)
            raise KeyboardInterrupt
