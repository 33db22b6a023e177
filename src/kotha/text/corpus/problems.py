"""Problems in input files, and how readers handle them.

A reader reports invalid input to its ``ProblemReporter``, which either raises an exception or records the problem and
lets the reader continue. Only this module implements the ``errors`` policies.
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
# Characters that do not belong in text, and the message for each.
_NOT_TEXT: tuple[tuple[re.Pattern[str], Callable[[int], Message]], ...] = (
    (re.compile("\0"), lambda _: Message("a NUL character (is this a text file?)")),
    (
        re.compile("[\ud800-\udfff]"),
        lambda n: Message("the lone surrogate \\u{code} is not a character", code=f"{n:04x}"),
    ),
)


@dataclass(frozen=True, slots=True)
class CorpusProblem:
    """A problem in one input, with its position; ``line`` and ``row`` count from 1.

    >>> print(CorpusProblem("news.jsonl", "not valid JSON", line=17))
    news.jsonl, line 17: not valid JSON
    """

    source: str
    reason: Text
    line: int | None = None
    row: int | None = None
    field: str | None = None  # the invalid field, if the problem is in a single field
    unread: bool = False  # whether an I/O error prevented reading
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
    """Raised if a record or the rest of a file cannot be read."""

    def __init__(self, reason: Text) -> None:
        super().__init__(str(reason))
        self.reason = reason


class ProblemReporter:
    """Collects the problems in one source and applies the ``errors`` policy."""

    def __init__(self, source: str, errors: Errors, on_problem: OnProblem | None = None) -> None:
        self.source = source
        self.errors = errors
        self._on_problem = on_problem

    def report(self, reason: Text, **position: Any) -> None:
        """Record a problem, and raise a CorpusError if ``errors`` is "stop".

        ``position`` holds fields of `CorpusProblem`: line, row, field.
        """
        problem = CorpusProblem(self.source, reason, **position)
        self.note(problem)
        if self.errors == "stop":
            raise CorpusError("{problem}; fix the input", skippable=True, problem=problem)

    def pass_over(self, error: OSError | Unreadable) -> None:
        """Report that the rest of a file is skipped because it is invalid or cannot be read."""
        unread = isinstance(error, OSError) or isinstance(error.__cause__, OSError)
        self.report(why(error), unread=unread)

    def note(self, problem: CorpusProblem) -> None:
        """Pass a problem to ``on_problem`` without raising."""
        if self._on_problem is not None:
            self._on_problem(problem)

    def decode(self, data: bytes, line: int) -> str | None:
        """Decode a document that starts at this line as UTF-8; report invalid data and return None."""
        try:
            return data.decode("utf-8")
        except UnicodeDecodeError as error:
            byte = f"0x{data[error.start]:02x}"
            reason = Message("not valid UTF-8 (byte {byte}: {why})", byte=byte, why=error.reason)
            self.report(reason, line=line + data.count(b"\n", 0, error.start))
            return None

    def are_sound(self, texts: tuple[str, ...], *, escapes: bool = False, **position: int) -> bool:
        r"""Return whether a record is free of invalid characters; otherwise, report the first one.

        The invalid characters are NUL and, if JSON ``escapes`` may be present, lone surrogates such as ``\ud800``.
        """
        for pattern, reason in _NOT_TEXT[: 1 + escapes]:
            for found in filter(None, map(pattern.search, texts)):
                self.report(reason(ord(found[0])), **position)
                return False
        return True


def shown(name: str | Path) -> str:
    r"""Escape unprintable characters in the name of a file or field, and truncate it.

    >>> shown("a\udcffb\n")
    'a\\udcffb\\n'
    """
    text = os.fspath(name)
    clean = "".join(c if c.isprintable() or "\u200c" <= c <= "\u200d" else ascii(c)[1:-1] for c in text[:200])
    return clean if len(text) <= 200 else clean + "…"


def why(error: OSError | ValueError) -> Text:
    """Return why a file cannot be opened or read."""
    if isinstance(error, OSError):
        return Message("cannot be opened ({why})", why=error.strerror or str(error))
    return error.reason if isinstance(error, Unreadable) else str(error)


def foreign(error: Exception) -> Text:
    """Describe another package's error without its message, which could contain secrets."""
    return getattr(error, "strerror", None) or type(error).__name__


def empty_field(name: str) -> Message:
    """Return the message for a row that has no value in a field."""
    return Message("the field {name!r} is empty", name=name)


def missing(name: str, known: Iterable[str], alone: bool = True) -> Message:
    """Return the message for a missing field; the message lists the existing fields.

    If only one field is requested (``alone``), the message suggests a value for ``field``: the closest name, or the
    last.

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
