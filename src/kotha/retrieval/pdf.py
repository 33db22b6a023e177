"""Paragraphs of a pdf: letters as they were written and not as they were drawn (pdf's ActualText).

A pdf holds glyphs in the order in which they are drawn: in Bangla a vowel sign that stands to the left comes before
its consonant, and a conjunct is one glyph that no single letter names. Whoever prints such a text (a browser, an
office program) writes the letters beside the glyphs, as /ActualText. pypdf passes over it, but lets one look at each
operation before it is done: the letters are put in the place of the glyphs there, and stay as wide as those, so that
spaces are found where they are. Where nobody wrote the letters down, the glyphs are taken as before.
"""

import logging
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from kotha.errors import CorpusError, library
from kotha.i18n.message import Message
from kotha.text.corpus.problems import Complaints, Unreadable

_NEED_PYPDF = "reading PDF files needs pypdf: pip install 'kotha[pdf]'"
_SHOWS = (b"Tj", b"TJ", b"'", b'"')


def read_pdf(file: Path, complaints: Complaints) -> Iterator[tuple[str, str]]:
    """Paragraphs of a pdf, each with its page."""
    logging.getLogger("pypdf").setLevel(logging.CRITICAL)  # it mends and tells; what it cannot mend it raises
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
    except Exception as error:  # a broken file shows itself in many ways there
        reason = " ".join(str(error).split())[:200] or type(error).__name__
        raise Unreadable(Message("not a readable PDF ({reason})", reason=reason)) from error


def page_text(page: Any) -> str:
    """The text of one page of a pypdf reader."""
    return str(page.extract_text(visitor_operand_before=_ActualText()))


class _Letters(str):
    """Letters that are measured as the glyphs that stand for them."""

    glyphs: str

    def __new__(cls, text: str, glyphs: str) -> "_Letters":
        made = super().__new__(cls, text)
        made.glyphs = glyphs
        return made

    def __iter__(self) -> Iterator[str]:
        return iter(self.glyphs)

    def __bool__(self) -> bool:
        return bool(self.glyphs)  # glyphs whose letters were said with the first of them are wide all the same


class _ActualText:
    """Listens to the operations of a page, and puts letters in the place of glyphs where they are written down."""

    def __init__(self) -> None:
        self._open: list[str | None] = []  # what each marked span that is not yet closed reads as; None: as it is

    def __call__(self, operator: bytes, operands: Any, *_: object) -> None:
        """Before an operation: its operands may be changed in place."""
        if operator in (b"BDC", b"BMC"):
            self._open.append(_told(operands))
        elif operator == b"EMC" and self._open:
            self._open.pop()
        elif operator in _SHOWS and operands and (span := self._outermost()) is not None:
            if operator == b"TJ" and isinstance(operands[0], list):
                operands[0][:] = [self._letters(each, span) for each in operands[0]]
            else:
                operands[-1] = self._letters(operands[-1], span)

    def _outermost(self) -> int | None:
        """The span whose letters stand for all that is in it."""
        return next((place for place, text in enumerate(self._open) if text is not None), None)

    def _letters(self, glyphs: Any, span: int) -> Any:
        """All letters of a span for its first glyphs, and none for those after them; a number moves on as it did."""
        if not isinstance(glyphs, bytes | str):
            return glyphs
        text, self._open[span] = self._open[span] or "", ""
        return _Letters(text, glyphs if isinstance(glyphs, str) else _drawn(glyphs))


def _told(operands: Any) -> str | None:
    """What a marked span reads as; None where it does not say so."""
    about = operands[1] if len(operands) > 1 else None
    text = about.get("/ActualText") if isinstance(about, dict) else None
    if isinstance(text, bytes):
        return text.decode("utf-16" if text[:2] in (b"\xfe\xff", b"\xff\xfe") else "latin-1", "replace")
    return str(text) if isinstance(text, str) else None


def _drawn(glyphs: bytes) -> str:
    """Glyphs as pypdf measures them: two bytes each in the fonts that have many."""
    return glyphs.decode("latin-1" if len(glyphs) % 2 else "utf-16-be", "replace")
