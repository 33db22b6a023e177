"""Ctrl-C and SIGTERM as a question: the loop finishes its step, saves and ends. A second Ctrl-C ends at once."""

import signal
from types import FrameType
from typing import Any


class Interrupts:
    """While this is open, the first signal only sets ``asked``."""

    def __init__(self) -> None:
        self.asked = False
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

    def _ask(self, number: int, _: FrameType | None) -> None:
        if self.asked:
            raise KeyboardInterrupt
        self.asked = True
