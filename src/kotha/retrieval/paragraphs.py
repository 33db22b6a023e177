"""Extract paragraphs from md, html and pdf files, each with its position.

HTML is read without scripts and styles, in time proportional to its size: the standard library's parser takes minutes
for 100 kB of unclosed tags. PDF is read with pypdf, an optional dependency. OCR is not supported, so a PDF of scanned
pages contains no text, which is reported as a problem.
"""

import html
import re
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

from kotha.i18n.message import Message
from kotha.retrieval.pdf import read_pdf
from kotha.text.corpus.problems import ProblemReporter, Unreadable

# Pairs of text and position, in order; the file is held in memory.
Paragraphs = Iterator[tuple[str, str]]

_MOST_BYTES, _MOST_PDF_BYTES = 16 << 20, 64 << 20


def read_paragraphs(file: Path, complaints: ProblemReporter) -> Paragraphs:
    """Return the paragraphs in a file; report a problem if it has none, is too large or is corrupted."""
    try:
        size, most = file.stat().st_size, _MOST_PDF_BYTES if file.suffix.lower() == ".pdf" else _MOST_BYTES
        if size > most:
            template = "{n:,} bytes exceed the limit of {most:,} for one document; split the file"
            raise Unreadable(Message(template, n=size, most=most))
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
# No repetition gives back what it matched (++), and none passes the next opening mark, so that the time is linear.
_LAYOUT = re.compile(
    r"^[^\S\n]*+(?:```.*|~~~.*|[-=*_]{3,}+[^\S\n]*+|(?=[^|\n]*+\|)(?:[:|-]|[^\S\n])++)$"
    r"|^\s{0,3}(?:#{1,6}|>|[-*+]|\d++\.)\s++",
    re.M,
)
_LINK = re.compile(r"!?\[([^\[\]]*+)\]\((?:[^()]++|\([^()]*+\))*+\)")
_EMPHASIS = re.compile(
    r"\*\*(?=\S)((?:[^*\n]++|\*(?!\*))++)(?<=\S)\*\*|__(?=\S)((?:[^_\n]++|_(?!_))++)(?<=\S)__"
    r"|\*(?=\S)([^*\n]++)(?<=\S)\*|`(?=\S)([^`\n]++)(?<=\S)`"
)


def _read_markdown(file: Path, complaints: ProblemReporter) -> Paragraphs:
    lines = _decoded(file, complaints).split("\n")
    start = 0
    for end in range(len(lines) + 1):
        if end == len(lines) or not lines[end].strip():
            block = _LAYOUT.sub("", "\n".join(lines[start:end]))
            block = _LINK.sub(r"\1", _LINK.sub(r"\1", block))  # twice, for an image in a link
            yield _EMPHASIS.sub(r"\1\2\3\4", block), f"line {start + 1}"
            start = end + 1


# -- HTML -------------------------------------------------------------------------------------------------------------

_SILENT = {"script", "style", "template", "noscript", "head", "svg", "nav"}
# Inline tags; every other tag begins or ends a block.
_INLINE = {
    *("a", "abbr", "b", "bdi", "bdo", "big", "cite", "code", "em", "font", "i", "img", "kbd", "label", "mark", "q"),
    *("ruby", "s", "small", "span", "strong", "sub", "sup", "time", "tt", "u", "var", "wbr"),
}
# Text up to the next markup, and a tag, whose quoted values may contain ">". An unclosed quote ends with the tag.
_TEXT = re.compile(r"[^<]*+(?:<(?![a-zA-Z/!?])[^<]*+)*+")
_TAG = re.compile(r"""<(/?)([a-zA-Z][^\s/>]*+)(?:[^>=]++|=\s*+(?:"[^"]*+"|'[^']*+'|))*+>""")
_DECLARATION = re.compile(r"<(?:[!?]|/(?![a-zA-Z]))")  # ends with the next ">"
_COMMENT_END = re.compile("--!?>")
_RAW_END = {tag: re.compile(rf"</{tag}(?=[\s/>])", re.IGNORECASE) for tag in ("script", "style")}


def _tokens(page: str) -> Iterator[tuple[str, str, int]]:
    """Yield texts ("text") and tags ("" for a start tag, "/" for an end tag) with their indices, in linear time.

    As in a browser, a page may end within a tag, a comment or a script, which is then skipped.
    """
    at: int | None = 0
    while at is not None and at < len(page):
        if (text := _TEXT.match(page, at)) and text[0]:
            yield "text", text[0], at
            at = text.end()
        if tag := _TAG.match(page, at):
            kind, name, at = tag[1], tag[2].lower(), tag.end()
            yield kind, name, at
            if not kind and name in _RAW_END:
                at = end.start() if (end := _RAW_END[name].search(page, at)) else None
        elif page.startswith("<!--", at):
            at = end.end() if (end := _COMMENT_END.search(page, at + 2)) else None
        elif _DECLARATION.match(page, at):
            at = page.find(">", at) + 1 or None
        else:
            at = None


def _read_html(file: Path, complaints: ProblemReporter) -> Paragraphs:
    page, parts, silent = _decoded(file, complaints), list[str](), list[str]()
    line, counted, start = 1, 0, 1  # lines are counted up to an index; the block starts on line ``start``
    for kind, value, index in _tokens(page):
        if kind == "text":
            text = _unescaped(value)
            if silent or not text.strip():
                parts += [" "] * bool(parts)
                continue
            if not parts:
                first = index + len(value) - len(value.lstrip())
                line, counted = line + page.count("\n", counted, first), first
                start = line
            parts.append(text)
        elif not kind and value in _SILENT:
            silent += [value] * (value not in silent)
        elif kind and value in silent:
            del silent[silent.index(value) :]
        elif value not in _INLINE:
            silent = [] if value == "body" and not kind else silent  # an unclosed head
            yield " ".join("".join(parts).split()), f"line {start}"
            parts.clear()
    yield " ".join("".join(parts).split()), f"line {start}"


def _unescaped(text: str) -> str:
    with suppress(ValueError):  # a number of thousands of digits
        return html.unescape(text)
    return text


READERS: dict[str, Callable[[Path, ProblemReporter], Paragraphs]] = {
    ".md": _read_markdown,
    ".markdown": _read_markdown,
    ".html": _read_html,
    ".htm": _read_html,
    ".pdf": read_pdf,
}
