"""Run a chapter, and check its blocks, printed numbers, numbers in the prose, and pictures."""

import contextlib
import io
import os
import re
import shlex
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from scripts.book.chapters import IMAGES, Chapter, Part
from scripts.book.numbers import answered, differences, numbers_of, prose_numbers, reads_as

_COLUMNS = "100"  # the terminal width that commands see
_SIZES = re.compile(r"[\d.]+")


@dataclass
class Outcome:
    """The result of running a chapter: errors, the output of each block, and its pictures."""

    problems: list[str] = field(default_factory=list)
    printed: dict[int, str] = field(default_factory=dict)  # by the index of the block among the parts
    pictures: dict[str, str] = field(default_factory=dict)


def run(chapter: Chapter, folder: Path) -> Outcome:
    """Run all code in a chapter, in order, in an empty folder."""
    outcome = Outcome()
    names: dict[str, Any] = {"__name__": "__main__"}
    with contextlib.chdir(folder), _terminal():
        for place, part in enumerate(chapter.parts):
            if part.kind == "python":
                outcome.printed[place] = _run_python(chapter, part, names)
            elif part.kind == "console":
                outcome.printed[place] = _run_console(part)
            _hold(part, names, outcome)
    outcome.pictures = {path.name: path.read_text(encoding="utf-8") for path in sorted(folder.glob("*.svg"))}
    return outcome


def check(chapter: Chapter, folder: Path) -> list[str]:
    """Return the errors in a chapter, one per line; empty if all outputs match."""
    outcome = run(chapter, folder)
    _compare_blocks(chapter, outcome)
    _compare_pictures(chapter, outcome)
    _compare_prose(chapter, outcome)
    return [f"{chapter.path.name}:{problem}" for problem in outcome.problems]


def _run_python(chapter: Chapter, part: Part, names: dict[str, Any]) -> str:
    printed = io.StringIO()
    placed = "\n" * (part.line - 1) + part.text  # so that a traceback shows the line in the chapter
    with contextlib.redirect_stdout(printed):
        exec(compile(placed, str(chapter.path), "exec"), names)
    return printed.getvalue().rstrip("\n")


def _run_console(part: Part) -> str:
    """Run the commands in a block; return the block with their current output."""
    from kotha.cli.main import main

    lines: list[str] = []
    for command in _commands(part):
        printed = io.StringIO()
        words = shlex.split(command)
        assert words[0] == "kotha", f"line {part.line}: only kotha commands can be run, not {command!r}"
        with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(io.StringIO()) as said:
            code = main(words[1:])
        assert code == 0, f"line {part.line}: {command} failed: {said.getvalue()}"
        lines += [f"$ {command}", *(line.rstrip() for line in printed.getvalue().rstrip("\n").splitlines())]
    return "\n".join(lines)


def _commands(part: Part) -> list[str]:
    return [line.removeprefix("$ ") for line in part.text.splitlines() if line.startswith("$ ")]


@contextlib.contextmanager
def _terminal() -> Any:
    before = os.environ.get("COLUMNS")
    os.environ["COLUMNS"] = _COLUMNS
    try:
        yield
    finally:
        if before is None:
            del os.environ["COLUMNS"]
        else:
            os.environ["COLUMNS"] = before


def _hold(part: Part, names: dict[str, Any], outcome: Outcome) -> None:
    for held in part.holds:
        value = eval(held.expression, names)
        if held.shown not in part.plain:
            outcome.problems.append(f"{held.line}: checks {held.shown}, which is not in the paragraph")
        if not reads_as(float(value), held.shown):
            outcome.problems.append(f"{held.line}: says {held.shown}, but {held.expression} is {float(value)}")


# -- comparing -----------------------------------------------------------------------------------------------------


def _compare_blocks(chapter: Chapter, outcome: Outcome) -> None:
    for place, found in outcome.printed.items():
        part = chapter.parts[place]
        if part.kind == "console":
            difference = _console_differences(part, found)
        else:
            behind = output_of(chapter, place)
            expected, about = ("", 0.0) if behind is None else (behind.text, behind.about or part.about)
            difference = differences(expected, found, about)
        if difference:
            outcome.problems.append(f"{part.line}: {difference}")


def output_of(chapter: Chapter, place: int) -> Part | None:
    """Return the text block with the output of a block: the next part, with only comments in between."""
    for part in chapter.parts[place + 1 :]:
        if part.kind == "prose" and not part.plain.strip():
            continue
        return part if part.kind == "text" else None
    return None


def _console_differences(part: Part, found: str) -> str | None:
    """Compare a console block, which may omit lines with ``…``; the lines shown must occur in this order."""
    if "…" not in part.text.splitlines():
        return differences(part.text, found, part.about)
    rest = found.splitlines()
    for line in part.text.splitlines():
        if line == "…":
            continue
        while rest and differences(line, rest[0], part.about):
            rest.pop(0)
        if not rest:
            return f"no line {line!r} in\n{found}"
        rest.pop(0)
    return None


def _compare_pictures(chapter: Chapter, outcome: Outcome) -> None:
    shown = {name: (part.line, about) for part in chapter.parts for name, about in part.pictures}
    for name in sorted(outcome.pictures.keys() - shown.keys()):
        outcome.problems.append(f"1: draws {name} but does not show it")
    for name, (line, about) in shown.items():
        kept = IMAGES / name
        if name not in outcome.pictures:
            outcome.problems.append(f"{line}: shows {name}, which the code does not draw")
        elif not kept.is_file():
            outcome.problems.append(f"{line}: {name} is not in docs/images/book; run the update")
        elif not same_picture(kept.read_text(encoding="utf-8"), outcome.pictures[name], about):
            outcome.problems.append(f"{line}: {name} differs from what the code draws; run the update")


def same_picture(kept: str, drawn: str, about: float = 0.0) -> bool:
    """Return whether two drawings look the same: equal words, and no visible difference in numbers."""
    if _SIZES.sub("#", kept) != _SIZES.sub("#", drawn):
        return bool(about) and kept[:200].split(">")[0] == drawn[:200].split(">")[0]  # a trained curve's ticks may move
    pairs = zip(_SIZES.findall(kept), _SIZES.findall(drawn), strict=True)
    return all(
        one == other or abs(float(one) - float(other)) <= 0.02 + max(about, 0.01) * abs(float(one))
        for one, other in pairs
    )


def _compare_prose(chapter: Chapter, outcome: Outcome) -> None:
    """Check that each number in the prose is in the code or output under its heading, or in a directive."""
    answers: dict[int, set[str]] = {}
    for part in chapter.parts:
        if part.kind in ("text", "console", "python"):
            answers.setdefault(part.section, set()).update(numbers_of(part.text))
    for part in chapter.parts:
        if part.kind != "prose":
            continue
        known = answers.get(part.section, set()) | {number for held in part.holds for number in numbers_of(held.shown)}
        known |= {number for given in part.given for number in numbers_of(given)}
        for number in prose_numbers(part.plain):
            if not answered(number, known):
                outcome.problems.append(f"{part.line}: {number} is not checked; print it, or add holds or given")
