"""Commands on a page and the output that the page shows below them: parse, run, compare, rewrite.

In a ``console`` block, a line ``$ kotha ...`` is a command, and the lines below it are its output; a block without
``$`` only lists commands. ``…`` in an output stands for any text, and on a line of its own for any lines. Numbers must
match (``numbers.differences``), unless ``<!-- about: any -->`` precedes the block.
"""

import contextlib
import io
import math
import re
import shlex
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from scripts.book.chapters import Part, parse
from scripts.book.numbers import differences

# The longest output that is written to a page; the rest is a line ``…``.
_MAX_LINES = 12
_ANY = "\N{HORIZONTAL ELLIPSIS}"
_BORDER = re.compile(r"[━┏┳┓┡╇┩└┴┘┗┻┛─├┼┤┃│\s]+")
_NUMBER = re.compile(r"[-+−]?[\d০-৯][\d০-৯,.]*(?:e[-+]?\d+)?")
# A terminal shows a progress bar instead, and removes it.
_PROGRESS = re.compile(rf"kotha: [^:]* {_ANY}(?: [\d০-৯]+ ?%)?")


@dataclass(frozen=True)
class Example:
    """A command and its output on the page, if the page shows one; ``line`` is the command's, from 1."""

    command: str
    shown: str | None
    line: int
    any_numbers: bool = False


def examples(page: str) -> list[Example]:
    """Return the commands of a page in their order.

    >>> [(each.command, each.shown) for each in examples("```console\\n$ kotha card box\\nA model\\n```\\n")]
    [('kotha card box', 'A model')]
    """
    return [example for part in parse(page) if part.kind == "console" for example in _examples_of(part)]


def _examples_of(part: Part) -> Iterable[Example]:
    lines = part.text.splitlines()
    places = [place for place, line in enumerate(lines) if line.startswith("$ ")]
    if not places:
        yield from (Example(line, None, part.line + place) for place, line in enumerate(lines))
    for start, end in pairwise([*places, len(lines)]):
        shown = "\n".join(lines[start + 1 : end]) if end > start + 1 else None
        yield Example(lines[start].removeprefix("$ "), shown, part.line + start, any_numbers=math.isinf(part.about))


def run(command: str) -> tuple[int, str]:
    """Run a ``kotha`` command in this process; return its exit code and both streams as a terminal shows them."""
    from kotha.cli.main import main

    printed = io.StringIO()
    with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(printed):
        code = main(shlex.split(command, comments=True)[1:])
    lines = [line.rstrip() for line in printed.getvalue().rstrip("\n").splitlines()]
    return code, "\n".join(line for line in lines if not _PROGRESS.fullmatch(line))


def difference(example: Example, printed: str) -> str | None:
    """Return how an output differs from what the page shows, or None.

    >>> example = Example("kotha generate run 'নদীর ধারে'", "নদীর ধারে …\\n…\\n2 tokens", 1)
    >>> difference(example, "নদীর ধারে একটি গ্রাম\\n2 tokens"), difference(example, "নদীর ধারে\\n3 tokens") is None
    (None, False)
    >>> difference(Example("kotha train data", "│ loss │ 4.08 │", 1, any_numbers=True), "┏━━┓\\n│ loss  │  11.5 │")
    """
    shown = example.shown or ""
    if example.any_numbers:
        shown, printed = (_NUMBER.sub("#", text) for text in (shown, printed))
    wanted, found = _lines(shown), _lines(printed)
    pattern = "".join(_pattern(line) for line in wanted)
    if re.fullmatch(pattern, "".join(f"{line}\n" for line in found)):
        return None
    if _ANY not in shown and not example.any_numbers and not differences("\n".join(wanted), "\n".join(found)):
        return None
    return f"line {example.line}: {example.command}\nthe page shows:\n{example.shown}\nthe command prints:\n{printed}"


def _lines(text: str) -> list[str]:
    """Return the lines without table borders and with single spaces, because a wider number widens its column."""
    lines = [re.sub(r"\s+", " ", line).strip() for line in text.splitlines()]
    return [line for line in lines if line and not _BORDER.fullmatch(line)]


def _pattern(line: str) -> str:
    if line == _ANY:
        return r"(?:.*\n)*?"
    return ".*".join(re.escape(part) for part in line.split(_ANY)).replace(r"\ .*", r"\ ?.*") + r"\n"


def rewrite(path: Path, outputs: dict[int, str]) -> None:
    """Write outputs below the commands of a page; ``outputs`` maps a command's line to its output."""
    lines = path.read_text(encoding="utf-8").splitlines()
    found = {example.line: example for example in examples("\n".join(lines))}
    for line in sorted(outputs, reverse=True):
        shown, printed = found[line].shown, outputs[line].splitlines()
        if len(printed) > _MAX_LINES:
            printed[_MAX_LINES - 1 :] = [_ANY]
        lines[line : line + (len(shown.splitlines()) if shown is not None else 0)] = printed
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
