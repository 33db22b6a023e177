"""The lines of Kotha that an input reaches (line coverage), recorded by Python itself (``sys.settrace``).

Functions are no longer traced once all their lines have been reached, so tracing is cheap when most lines of the
loaders are known.
"""

import sys
from collections.abc import Iterable
from types import CodeType, FrameType
from typing import Any

Line = tuple[str, int]  # file, line


class Watch:
    """A context manager that traces this thread; ``new`` contains the lines that were reached for the first time."""

    def __init__(self, below: str, known: Iterable[Line]) -> None:
        self._below, self._known = below, set(known)
        self._unreached: dict[CodeType, set[int]] = {}
        self.new: set[Line] = set()

    def __enter__(self) -> "Watch":
        self.new = set()
        sys.settrace(self._call)
        return self

    def __exit__(self, *_: object) -> None:
        sys.settrace(None)
        self._known |= self.new

    def _call(self, frame: FrameType, _event: str, _argument: Any) -> Any:
        code = frame.f_code
        unreached = self._unreached.get(code)
        if unreached is None:
            unreached = self._unreached[code] = self._lines(code)
        return self._line if unreached else None

    def _lines(self, code: CodeType) -> set[int]:
        if not code.co_filename.startswith(self._below):
            return set()
        return {line for _, _, line in code.co_lines() if line and (code.co_filename, line) not in self._known}

    def _line(self, frame: FrameType, _event: str, _argument: Any) -> Any:
        unreached = self._unreached[frame.f_code]
        if frame.f_lineno in unreached:
            unreached.discard(frame.f_lineno)
            self.new.add((frame.f_code.co_filename, frame.f_lineno))
        return self._line
