"""Extract paragraphs from md, html and pdf files, each with its position.

HTML is parsed with the standard library, ignoring scripts and styles, and PDF with pypdf, an optional dependency. OCR
is not supported, so a PDF of scanned pages contains no text, which is reported as a problem.
"""

import re
from collections.abc import Callable, Iterator
from html.parser import HTMLParser
from pathlib import Path

from kotha.i18n.message import Message
from kotha.retrieval.pdf import read_pdf
from kotha.text.corpus.problems import ProblemReporter, Unreadable

# Pairs of text and position, in order; the file is held in memory.
Paragraphs = Iterator[tuple[str, str]]

_MOST_BYTES = 64 << 20


def read_paragraphs(file: Path, complaints: ProblemReporter) -> Paragraphs:
    """Return the paragraphs in a file; report a problem if it has none, is too large or is corrupted."""
    try:
        if file.stat().st_size > _MOST_BYTES:
            size = file.stat().st_size
            raise Unreadable(
                Message("{n:,} bytes exceed the limit of {most:,} for one document", n=size, most=_MOST_BYTES)
            )
        empty = True
        for text, place in READERS[file.suffix.lower()](file, complaints):
            text = text.strip()
            if text and complaints.are_sound((text,)):
                empty = False
                yield text, place
        if empty:
            raise Unreadable(Message("the file contains no text; scanned pages need OCR first"))
    except (Unreadable, OSError) as error:
        complaints.pass_over(error)


def _decoded(file: Path, complaints: ProblemReporter) -> str:
    return complaints.decode(file.read_bytes().removeprefix(b"\xef\xbb\xbf"), 1) or ""


# -- Markdown ---------------------------------------------------------------------------------------------------------

# Markup to remove: code fences, rules, and markers of headings, quotes and lists. The text of links and images is kept.
_LAYOUT = re.compile(
    r"^\s*(?:```.*|~~~.*|[-=*_]{3,}\s*|\|?[\s:|-]+\|[\s:|-]*)$|^\s{0,3}(?:#{1,6}|>|[-*+]|\d+\.)\s+", re.M
)
_LINK = re.compile(r"!?\[([^\]]*)\]\([^)]*\)")
_EMPHASIS = re.compile(r"(\*\*|__|\*|`)(?=\S)(.+?)(?<=\S)\1")


def _read_markdown(file: Path, complaints: ProblemReporter) -> Paragraphs:
    lines = _decoded(file, complaints).split("\n")
    start = 0
    for end in range(len(lines) + 1):
        if end == len(lines) or not lines[end].strip():
            block = "\n".join(lines[start:end])
            yield _EMPHASIS.sub(r"\2", _LINK.sub(r"\1", _LAYOUT.sub("", block))), f"line {start + 1}"
            start = end + 1


# -- HTML -------------------------------------------------------------------------------------------------------------

_SILENT = {"script", "style", "template", "noscript", "head", "svg", "nav"}
# Inline tags; every other tag begins or ends a block.
_INLINE = {
    *("a", "abbr", "b", "bdi", "bdo", "big", "cite", "code", "em", "font", "i", "img", "kbd", "label", "mark", "q"),
    *("ruby", "s", "small", "span", "strong", "sub", "sup", "time", "tt", "u", "var", "wbr"),
}


class _HTMLText(HTMLParser):
    """The text blocks of a page, with the line on which each begins."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.blocks: list[tuple[str, str]] = []
        self._parts: list[str] = []
        self._line = 1
        self._silent: list[str] = []

    def handle_starttag(self, tag: str, attrs: object) -> None:
        """End the current block at a block-level start tag."""
        if tag == "body":
            self._silent.clear()  # an unclosed head
        if tag in _SILENT:
            self._silent.append(tag)
        elif tag not in _INLINE:
            self.end_block()

    def handle_endtag(self, tag: str) -> None:
        """End the current block at a block-level end tag."""
        if tag in self._silent:
            del self._silent[self._silent.index(tag) :]
        elif tag not in _INLINE:
            self.end_block()

    def handle_data(self, data: str) -> None:
        """Collect text, except in scripts, styles and similar elements."""
        if not self._silent and data.strip():
            if not self._parts:
                self._line = self.getpos()[0]
            self._parts.append(data)
        elif self._parts:
            self._parts.append(" ")

    def parse_marked_section(self, i: int, report: bool | int = True) -> int:
        """Skip `<![…>` as a browser does; the standard parser fails on some contents."""
        return self.parse_bogus_comment(i, bool(report))

    def end_block(self) -> None:
        """Store the collected text as a block."""
        text = " ".join("".join(self._parts).split())
        if text:
            self.blocks.append((text, f"line {self._line}"))
        self._parts = []


def _read_html(file: Path, complaints: ProblemReporter) -> Paragraphs:
    page = _HTMLText()
    page.feed(_decoded(file, complaints))
    page.close()
    page.end_block()
    return iter(page.blocks)


READERS: dict[str, Callable[[Path, ProblemReporter], Paragraphs]] = {
    ".md": _read_markdown,
    ".markdown": _read_markdown,
    ".html": _read_html,
    ".htm": _read_html,
    ".pdf": read_pdf,
}
