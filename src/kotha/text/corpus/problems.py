"""What can be wrong with an input, and what a reader does about it.

A reader that meets something broken never raises on its own account: it tells its :class:`Complaints`, which stops,
or notes the problem and lets the reader go on. So the three policies of ``errors`` live here and nowhere else.
"""

import os
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from kotha.errors import CorpusError, nearest
from kotha.i18n.message import Text

Errors = Literal["stop", "skip", "replace"]

_LONGEST_LIST = 12
# What no text has, and what is then said of its code point.
_NO_TEXT = (
    (re.compile("\0"), "a NUL character (is this a text file?)"),
    (re.compile("[\ud800-\udfff]"), "the lone surrogate \\u{:04x} is no character"),
)


@dataclass(frozen=True, slots=True)
class CorpusProblem:
    """One thing wrong with one input, and where.

    ``byte_offset`` counts from 0 in the decompressed bytes; ``line`` and ``row`` count from 1.

    >>> print(CorpusProblem("news.jsonl", "not valid JSON", line=17))
    news.jsonl, line 17: not valid JSON
    """

    source: str
    reason: Text
    line: int | None = None
    row: int | None = None
    byte_offset: int | None = None
    field: str | None = None  # the one that is wrong, where it is one
    unread: bool = False  # the disk did not give it: nobody knows what it holds

    def __str__(self) -> str:
        places = (("line", self.line), ("row", self.row), ("byte", self.byte_offset))
        return ", ".join([self.source, *(f"{name} {at}" for name, at in places if at is not None)]) + f": {self.reason}"


class Unreadable(Exception):  # noqa: N818 - a signal between the byte layer and its reader, never shown to a user
    """The rest of this file cannot be read."""

    def __init__(self, reason: Text, byte_offset: int | None = None) -> None:
        super().__init__(str(reason))
        self.reason = reason
        self.byte_offset = byte_offset


class Complaints:
    """Where the readers of one source take what they find wrong."""

    def __init__(self, source: str, errors: Errors, on_problem: Callable[[CorpusProblem], None] | None = None) -> None:
        self.source = source
        self.errors = errors
        self._on_problem = on_problem

    def report(self, reason: str, *, mendable: bool = False, **place: int | None) -> bool:
        """Stop with a CorpusError, or say whether the document is to be mended (True) or dropped (False).

        ``place`` is what a `CorpusProblem` says of it: line, row, byte_offset.
        """
        line, row, byte_offset = (place.get(name) for name in ("line", "row", "byte_offset"))
        self._stop_or_note(CorpusProblem(self.source, reason, line, row, byte_offset), mendable)
        return mendable and self.errors == "replace"

    def report_unopened(self, error: OSError) -> None:
        """Stop, or pass over a file that the disk does not give."""
        reason = f"cannot be opened ({error.strerror or error})"
        self._stop_or_note(CorpusProblem(self.source, reason, unread=True))

    def report_unreadable(self, error: Unreadable) -> None:
        """Stop, or pass over the rest of a file: it is broken, or the disk does not give it."""
        unread = isinstance(error.__cause__, OSError)
        self._stop_or_note(CorpusProblem(self.source, error.reason, byte_offset=error.byte_offset, unread=unread))

    def _stop_or_note(self, problem: CorpusProblem, mendable: bool = False) -> None:
        self.note(problem)
        if self.errors == "stop":
            raise CorpusError(f"{problem}; put it right", ("skip", "replace") if mendable else ("skip",))

    def note(self, problem: CorpusProblem) -> None:
        """Pass on a problem that is no reason to stop."""
        if self._on_problem is not None:
            self._on_problem(problem)

    def decode(
        self, data: bytes, line: int | None = None, byte_offset: int = 0, *, row: int | None = None, what: str = ""
    ) -> str | None:
        """Decode the UTF-8 of one document that starts at this line and byte; None when it is to be dropped."""
        try:
            return data.decode("utf-8")
        except UnicodeDecodeError as error:
            reason = f"{what}not valid UTF-8 (byte 0x{data[error.start]:02x}: {error.reason})"
            place = {"row": row}
            if line is not None:
                place = {"line": line + data.count(b"\n", 0, error.start), "byte_offset": byte_offset + error.start}
            return data.decode("utf-8", "replace") if self.report(reason, mendable=True, **place) else None

    def mend(self, texts: tuple[str, ...], *, escapes: bool = False, **place: int | None) -> tuple[str, ...] | None:
        r"""Check a record for characters that no text has; None when it is to be dropped.

        They are NUL and, where JSON writes ``escapes``, halves of surrogate pairs, such as a lone ``\ud800``.
        """
        sound = []
        for text in texts:
            for pattern, reason in _NO_TEXT[: 1 + escapes]:
                if found := pattern.search(text):
                    if not self.report(reason.format(ord(found[0])), mendable=True, **place):
                        return None
                    text = pattern.sub("\ufffd", text)
            sound.append(text)
        return tuple(sound)


def shown(name: str | Path) -> str:
    r"""Make a file or field name safe to print, whatever bytes it holds.

    >>> shown("a\udcffb\n")
    'a\\udcffb\\n'
    """
    text = os.fspath(name)
    clean = "".join(c if c.isprintable() or "\u200c" <= c <= "\u200d" else ascii(c)[1:-1] for c in text[:200])
    return clean if len(text) <= 200 else clean + "…"


def missing(what: str, name: str, known: Iterable[str], alone: bool = True) -> str:
    """Say that a field or column is not there, which ones are, which was probably meant, and how to name another.

    ``alone`` it holds the text, which the argument ``field`` names; the fields of pairs have names of their own.

    >>> missing("field", "txt", ["id", "text"])
    "no field 'txt' among id, text; did you mean 'text'?; name another with field='text'"
    >>> missing("field", "text", {"id": 7, "body": "নদী"})
    "no field 'text' among id, body; name another with field='body'"
    """
    names = [shown(other)[:40] for _, other in zip(range(_LONGEST_LIST + 1), known, strict=False)]
    listed = ", ".join(names[:_LONGEST_LIST]) + (", …" if len(names) > _LONGEST_LIST else "")
    guess = nearest(name, names)
    said = f"no {what} '{shown(name)}' among {listed or 'none'}" + (guess if "did you mean" in guess else "")
    if not alone or not names:
        return said
    likely = guess.split("'")[1] if "did you mean" in guess else _longest(known) or names[0]
    return f"{said}; name another with field='{likely}'"


def _longest(record: Iterable[str]) -> str | None:
    """The field of a record that holds the longest string; of a mere header that is not known."""
    if not isinstance(record, Mapping):
        return None
    lengths = {shown(name)[:40]: len(value) for name, value in record.items() if isinstance(value, str)}
    return max(lengths, key=lambda name: lengths[name], default=None)
