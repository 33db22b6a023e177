"""What a terminal would take for a command is shown, not obeyed.

A model, a corpus or a file's name may hold escape sequences: they colour, move the cursor, rename the window or write
over the line above. On a terminal each control character is shown as a symbol (ESC as ␛), and the marks that turn
the direction of writing as their code. In a pipe and in a file every character stays as it is. Joiners, which Bangla
needs, are no controls.
"""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, TextIO, cast

_BIDI = (*range(0x202A, 0x202F), *range(0x2066, 0x206A))
_SHOWN: dict[int, str] = {
    **{code: chr(0x2400 + code) for code in range(0x20) if chr(code) not in "\t\n"},
    0x7F: "␡",
    **{code: f"<U+{code:04X}>" for code in (*range(0x80, 0xA0), *_BIDI)},
}


def visible(text: str) -> str:
    r"""A text with its control characters shown.

    >>> visible("\x1b[31mকথা\r")
    '␛[31mকথা␍'
    """
    return text.translate(_SHOWN)


class _Terminal:
    """A stream to a terminal that shows control characters; all else is the stream's own."""

    def __init__(self, stream: TextIO) -> None:
        self.plain = stream

    def write(self, text: str) -> int:
        self.plain.write(visible(text))
        return len(text)

    def writelines(self, lines: Any) -> None:
        for line in lines:
            self.write(line)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.plain, name)


def plain_stream(stream: TextIO) -> TextIO:
    """The stream itself: for whoever writes control characters of their own and shows those of others."""
    return stream.plain if isinstance(stream, _Terminal) else stream


@contextmanager
def visible_controls() -> Iterator[None]:
    """While this is open, nothing that is printed can command the terminal."""
    before = sys.stdout, sys.stderr
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream.isatty():
            setattr(sys, name, cast(TextIO, _Terminal(stream)))
    try:
        yield
    finally:
        sys.stdout, sys.stderr = before
