"""Ctrl-C and SIGTERM as a question: the loop finishes its step, saves and ends. A second Ctrl-C ends at once.

A scheduler asks by SIGTERM and kills soon after; it may well ask twice, so a second one changes nothing.
"""

import signal
from collections.abc import Callable
from types import FrameType
from typing import Any


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
