"""Extract paragraphs from a PDF, using the original characters (ActualText) instead of the glyphs where possible.

A PDF stores glyphs in drawing order: in Bangla a vowel sign on the left comes before its consonant, and a conjunct is
one glyph without a code point of its own. Programs that export Bangla text to PDF (browsers, office programs) store the
characters next to the glyphs, as /ActualText. pypdf ignores it, but calls a hook before each operation; here, the hook
replaces the glyphs with the characters. The characters keep the width of the glyphs so that spaces are detected
correctly. If a span has no /ActualText, its glyphs are used.
"""

import logging
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from kotha.errors import CorpusError, InstallCommand, library
from kotha.i18n.message import Message
from kotha.text.corpus.problems import ProblemReporter, Unreadable

_NEED_PYPDF = Message("reading PDF files needs pypdf; install it with: {command}", command=InstallCommand("pdf"))
_SHOWS = (b"Tj", b"TJ", b"'", b'"')


def read_pdf(file: Path, complaints: ProblemReporter) -> Iterator[tuple[str, str]]:
    """Yield the paragraphs in a PDF, each with its page."""
    logging.getLogger("pypdf").setLevel(logging.CRITICAL)  # pypdf logs the errors that it repairs, and raises others
    pypdf = library("pypdf", _NEED_PYPDF, CorpusError)
    try:
        reader = pypdf.PdfReader(file)
        if reader.is_encrypted and not reader.decrypt(""):
            raise Unreadable(Message("the file is password-protected; save it without a password"))
        for number, page in enumerate(reader.pages, 1):
            for block in re.split(r"\n\s*\n", page_text(page)):
                yield " ".join(block.split()), f"page {number}"
    except (CorpusError, Unreadable, OSError):
        raise
    except Exception as error:  # pypdf raises many kinds of errors for a corrupt file
        reason = " ".join(str(error).split())[:200] or type(error).__name__
        raise Unreadable(Message("not a readable PDF ({reason})", reason=reason)) from error


def page_text(page: Any) -> str:
    """Return the text of one page of a pypdf reader."""
    return str(page.extract_text(visitor_operand_before=_ActualText()))


class _Letters(str):
    """Characters with the width of the glyphs that they replace."""

    glyphs: str

    def __new__(cls, text: str, glyphs: str) -> "_Letters":
        made = super().__new__(cls, text)
        made.glyphs = glyphs
        return made

    def __iter__(self) -> Iterator[str]:
        return iter(self.glyphs)

    def __bool__(self) -> bool:
        return bool(self.glyphs)  # glyphs after the first have no characters, but still a width


class _ActualText:
    """A visitor of a page's operations that replaces glyphs with the characters of their /ActualText."""

    def __init__(self) -> None:
        self._open: list[str | None] = []  # the ActualText of each open marked span; None if it has none

    def __call__(self, operator: bytes, operands: Any, *_: object) -> None:
        """Process one operation before pypdf does, and change its operands in place if needed."""
        if operator in (b"BDC", b"BMC"):
            self._open.append(_actual_text(operands))
        elif operator == b"EMC" and self._open:
            self._open.pop()
        elif operator in _SHOWS and operands and (span := self._outermost()) is not None:
            if operator == b"TJ" and isinstance(operands[0], list):
                operands[0][:] = [self._letters(each, span) for each in operands[0]]
            else:
                operands[-1] = self._letters(operands[-1], span)

    def _outermost(self) -> int | None:
        """Return the outermost open span that has an ActualText, which replaces all glyphs in the span."""
        return next((index for index, text in enumerate(self._open) if text is not None), None)

    def _letters(self, glyphs: Any, span: int) -> Any:
        """Replace the first glyph string in a span with all of the span's characters, and empty later ones.

        Kerning is kept.
        """
        if not isinstance(glyphs, bytes | str):
            return glyphs
        text, self._open[span] = self._open[span] or "", ""
        return _Letters(text, glyphs if isinstance(glyphs, str) else _drawn(glyphs))


def _actual_text(operands: Any) -> str | None:
    """Return the ActualText of a marked span; None if it has none."""
    properties = operands[1] if len(operands) > 1 else None
    text = properties.get("/ActualText") if isinstance(properties, dict) else None
    if isinstance(text, bytes):
        return text.decode("utf-16" if text[:2] in (b"\xfe\xff", b"\xff\xfe") else "latin-1", "replace")
    return str(text) if isinstance(text, str) else None


def _drawn(glyphs: bytes) -> str:
    """Return glyphs in the form that pypdf measures: two bytes each in fonts with many glyphs."""
    return glyphs.decode("latin-1" if len(glyphs) % 2 else "utf-16-be", "replace")
