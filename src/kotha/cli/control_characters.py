"""Show control characters on a terminal as visible symbols instead of executing them.

Generated text, a corpus or a file name may contain escape sequences, which set colours, move the cursor, rename the
window or overwrite earlier lines. On a terminal, each control character is shown as a symbol (ESC as ␛), and each
bidirectional mark as its code point. Output to pipes and files is not changed. Joiners, which Bangla needs, are not
treated as control characters.
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
    r"""Replace the control characters in a text with visible symbols.

    >>> visible("\x1b[31mকথা\r")
    '␛[31mকথা␍'
    """
    return text.translate(_SHOWN)


class _Terminal:
    """A terminal stream that replaces control characters with visible symbols."""

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
    """Return the unwrapped stream, for code that writes its own control characters."""
    return stream.plain if isinstance(stream, _Terminal) else stream


@contextmanager
def visible_controls() -> Iterator[None]:
    """Make control characters visible in everything printed inside the ``with`` block."""
    before = sys.stdout, sys.stderr
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream.isatty():
            setattr(sys, name, cast(TextIO, _Terminal(stream)))
    try:
        yield
    finally:
        sys.stdout, sys.stderr = before
