"""Parse a chapter: its prose, its code blocks with their output, and the comments that check its numbers.

The convention, which any Markdown viewer shows as plain text:

- ``python`` blocks run in order in one namespace; a ``text`` block after one contains its output, if there is any.
- ``console`` blocks contain lines ``$ kotha ...`` with the output of each; a line ``…`` stands for any lines.
- ``<!-- holds: 0.88 = weights[0, 0] -->`` compares a number in the prose with an expression, evaluated at this point.
- ``<!-- given: 2017 -->`` lists numbers that are not computed here: years, papers, examples.
- every other number in the prose must occur in the code or the output under the same heading.
- ``<!-- about: 5% -->`` before a block or a picture sets the relative tolerance for its numbers, for example
  for training results; ``about: any`` allows any numbers.

Blocks without a language are drawings and formulas, which are not run.
"""

import math
import re
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
LEARN = ROOT / "docs" / "learn"
IMAGES = ROOT / "docs" / "images" / "book"

_FENCE = re.compile(r"^```(\S*)$")
_COMMENT = re.compile(r"<!--(.*?)-->", re.DOTALL)
_DIRECTIVE = re.compile(r"\s*(holds|given|about):(.*)", re.DOTALL)
_IMAGE = re.compile(r"!\[[^\]]*\]\(\.\./images/book/([\w.-]+)\)")
_PERCENT = re.compile(r"\s*([\d.]+)\s*%\s*")


@dataclass(frozen=True)
class Held:
    """A number in the prose, as written there, and the expression that must have this value."""

    shown: str
    expression: str
    line: int


@dataclass
class Part:
    """A part of the prose, or a block with its language; ``line`` is the number of its first line, from 1."""

    kind: str  # prose, python, text, console; or another language, or "" for a drawing
    text: str
    line: int
    about: float = 0.0  # relative tolerance for its numbers
    holds: list[Held] = field(default_factory=list)
    given: list[str] = field(default_factory=list)
    pictures: list[tuple[str, float]] = field(default_factory=list)  # file name, relative tolerance
    section: int = 0  # the heading above it

    @property
    def plain(self) -> str:
        """The text without its comments."""
        return _COMMENT.sub("", self.text)


@dataclass(frozen=True)
class Chapter:
    """A chapter in one language."""

    path: Path

    @property
    def name(self) -> str:
        """The name without the language, such as ``01-text``."""
        return self.path.name.removesuffix(".md").removesuffix(".bn")

    @property
    def language(self) -> str:
        """``en`` or ``bn``."""
        return "bn" if self.path.name.endswith(".bn.md") else "en"

    @property
    def label(self) -> str:
        """The name used in tests and messages."""
        return f"{self.name}.{self.language}"

    @cached_property
    def source(self) -> str:
        """The text of the file."""
        return self.path.read_text(encoding="utf-8")

    @cached_property
    def title(self) -> str:
        """The first heading."""
        found = re.search(r"^# (.+)$", self.source, re.MULTILINE)
        assert found, f"{self.path.name} does not begin with a heading"
        return found[1].strip()

    @cached_property
    def parts(self) -> list[Part]:
        """The parts of the chapter, in order."""
        return parse(self.source)


def chapters(folder: Path = LEARN) -> list[Chapter]:
    """Return all chapters, in order, each in both languages; the build comes last."""
    return [Chapter(path) for name in ("[0-9][0-9]-*.md", "build*.md") for path in sorted(folder.glob(name))]


def parse(source: str) -> list[Part]:
    """Return the prose and the blocks in a Markdown text, with their directives."""
    parts: list[Part] = []
    lines = source.splitlines()
    start, place = 0, 0
    while place < len(lines):
        fence = _FENCE.match(lines[place])
        if fence is None:
            place += 1
            continue
        _add_prose(parts, lines[start:place], start + 1)
        end = next((at for at in range(place + 1, len(lines)) if lines[at] == "```"), None)
        if end is None:
            raise ValueError(f"line {place + 1}: this code block is never closed")
        parts.append(Part(fence[1], "\n".join(lines[place + 1 : end]), place + 2, about=_about_before(parts)))
        start = place = end + 1
    _add_prose(parts, lines[start:], start + 1)
    section = 0
    for part in parts:
        section += part.kind == "prose" and part.text.lstrip().startswith("## ")
        part.section = section
    return parts


def _add_prose(parts: list[Part], lines: list[str], line: int) -> None:
    """Add prose, divided at the starts of sections."""
    begins = [0, *(place for place, text in enumerate(lines) if text.startswith("## ") and place), len(lines)]
    for start, end in pairwise(begins):
        if any(text.strip() for text in lines[start:end]):
            parts.append(_prose("\n".join(lines[start:end]), line + start))


def _prose(text: str, line: int) -> Part:
    part = Part("prose", text, line)
    about = 0.0
    for found in re.finditer(f"{_COMMENT.pattern}|{_IMAGE.pattern}", text, re.DOTALL):
        if found[2]:
            part.pictures.append((found[2], about))
            about = 0.0
            continue
        directive = _DIRECTIVE.fullmatch(found[1])
        if directive is None:
            continue
        here = line + text.count("\n", 0, found.start())
        if directive[1] == "holds":
            part.holds += [_held(item, here) for item in re.split(r"[;\n]", directive[2]) if item.strip()]
        elif directive[1] == "given":
            part.given += directive[2].split(";")
        else:
            about = _share(directive[2], here)
    return part


def _held(item: str, line: int) -> Held:
    shown, equals, expression = item.partition("=")
    if not equals:
        raise ValueError(f"line {line}: holds needs `number = expression`, not {item.strip()!r}")
    return Held(shown.strip(), expression.strip(), line)


def _about_before(parts: list[Part]) -> float:
    """Return the relative tolerance for a block, if the prose before it ends with an ``about`` comment."""
    if not parts or parts[-1].kind != "prose":
        return 0.0
    last = re.search(r"<!--\s*about:([^>]*?)-->\s*$", parts[-1].text)
    return _share(last[1], parts[-1].line) if last else 0.0


def _share(text: str, line: int) -> float:
    if text.strip() == "any":
        return math.inf
    found = _PERCENT.fullmatch(text)
    if found is None:
        raise ValueError(f"line {line}: about needs a percentage, not {text.strip()!r}")
    return float(found[1]) / 100
