"""What can be wrong with an input, and what a reader does about it.

A reader that meets something broken never raises on its own account: it tells its :class:`Complaints`, which stops,
or notes the problem and lets the reader go on. So the policies of ``errors`` live here and nowhere else.
"""

import os
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any, ClassVar

from kotha.errors import CorpusError, closest
from kotha.i18n.message import Message, Option, Text, english
from kotha.text.choices import Errors

OnProblem = Callable[["CorpusProblem"], None]

_LONGEST_LIST = 12
# What no text has, and what is then said of its code point.
_NO_TEXT: tuple[tuple[re.Pattern[str], Callable[[int], Message]], ...] = (
    (re.compile("\0"), lambda _: Message("a NUL character (is this a text file?)")),
    (
        re.compile("[\ud800-\udfff]"),
        lambda n: Message("the lone surrogate \\u{code} is not a character", code=f"{n:04x}"),
    ),
)


@dataclass(frozen=True, slots=True)
class CorpusProblem:
    """One thing wrong with one input, and where: a message of its own.

    ``line`` and ``row`` count from 1.

    >>> print(CorpusProblem("news.jsonl", "not valid JSON", line=17))
    news.jsonl, line 17: not valid JSON
    """

    source: str
    reason: Text
    line: int | None = None
    row: int | None = None
    field: str | None = None  # the one that is wrong, where it is one
    unread: bool = False  # the disk did not give it: nobody knows what it holds
    template: ClassVar[str] = "{places}: {reason}"

    @property
    def values(self) -> Mapping[str, Any]:
        """See ``kotha.i18n.catalogue.Messenger``."""
        counted = {"line {n}": self.line, "row {n}": self.row}
        places = [Message(template, n=n) for template, n in counted.items() if n is not None]
        return {"places": [self.source, *places], "reason": self.reason}

    def __str__(self) -> str:
        return english(self.template, self.values)


class Unreadable(ValueError):  # noqa: N818 - a signal between the byte layer and its reader, never shown to a user
    """This record, or the rest of this file, cannot be read."""

    def __init__(self, reason: Text) -> None:
        super().__init__(str(reason))
        self.reason = reason


class Complaints:
    """Where the readers of one source take what they find wrong."""

    def __init__(self, source: str, errors: Errors, on_problem: OnProblem | None = None) -> None:
        self.source = source
        self.errors = errors
        self._on_problem = on_problem

    def report(self, reason: Text, **place: Any) -> None:
        """Stop with a CorpusError, or leave it at a note.

        ``place`` is what a `CorpusProblem` says of it: line, row, field.
        """
        problem = CorpusProblem(self.source, reason, **place)
        self.note(problem)
        if self.errors == "stop":
            raise CorpusError("{problem}; fix the input", skippable=True, problem=problem)

    def pass_over(self, error: OSError | Unreadable) -> None:
        """Stop, or pass over the rest of a file: it is broken, or the disk does not give it."""
        unread = isinstance(error, OSError) or isinstance(error.__cause__, OSError)
        self.report(why(error), unread=unread)

    def note(self, problem: CorpusProblem) -> None:
        """Pass on a problem that is no reason to stop."""
        if self._on_problem is not None:
            self._on_problem(problem)

    def decode(self, data: bytes, line: int) -> str | None:
        """Decode the UTF-8 of one document that starts at this line; None when it is to be dropped."""
        try:
            return data.decode("utf-8")
        except UnicodeDecodeError as error:
            byte = f"0x{data[error.start]:02x}"
            reason = Message("not valid UTF-8 (byte {byte}: {why})", byte=byte, why=error.reason)
            self.report(reason, line=line + data.count(b"\n", 0, error.start))
            return None

    def are_sound(self, texts: tuple[str, ...], *, escapes: bool = False, **place: int) -> bool:
        r"""Whether a record is free of characters that no text has.

        They are NUL and, where JSON writes ``escapes``, halves of surrogate pairs, such as a lone ``\ud800``.
        """
        for pattern, reason in _NO_TEXT[: 1 + escapes]:
            for found in filter(None, map(pattern.search, texts)):
                self.report(reason(ord(found[0])), **place)
                return False
        return True


def shown(name: str | Path) -> str:
    r"""Make a file or field name safe to print, whatever bytes it holds.

    >>> shown("a\udcffb\n")
    'a\\udcffb\\n'
    """
    text = os.fspath(name)
    clean = "".join(c if c.isprintable() or "\u200c" <= c <= "\u200d" else ascii(c)[1:-1] for c in text[:200])
    return clean if len(text) <= 200 else clean + "…"


def why(error: OSError | ValueError) -> Text:
    """Why a file cannot be opened or read."""
    if isinstance(error, OSError):
        return Message("cannot be opened ({why})", why=error.strerror or str(error))
    return error.reason if isinstance(error, Unreadable) else str(error)


def foreign(error: Exception) -> Text:
    """What is told of an error that another package may have raised: its text may hold anything, keys too."""
    return getattr(error, "strerror", None) or type(error).__name__


def empty_field(name: str) -> Message:
    """Say that a row lacks a value."""
    return Message("the field {name!r} is empty", name=name)


def missing(name: str, known: Iterable[str], alone: bool = True) -> Message:
    """Say that a field is not there and which ones are.

    ``alone`` it holds the text, and the argument ``field`` names another: one spelled alike, or the last.

    >>> print(missing("txt", ["id", "text"]))
    no field 'txt' among id, text; try field='text'
    """
    names = [shown(each)[:40] for each in islice(known, _LONGEST_LIST + 1)]
    listed = names[:_LONGEST_LIST] + ["…"] * (len(names) - _LONGEST_LIST) or Message("none")
    values = {"name": shown(name), "known": listed}
    if not alone or not names:
        return Message("no field '{name}' among {known}", **values)
    another = Option("field", closest(name, names) or names[-1])
    return Message("no field '{name}' among {known}; try {field}", **values, field=another)
