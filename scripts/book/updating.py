"""Update a chapter: insert the current output of its blocks and redraw its pictures."""

import tempfile
from pathlib import Path

from scripts.book.chapters import IMAGES, Chapter
from scripts.book.running import output_of, run


def update(chapter: Chapter) -> list[str]:
    """Write the outputs and pictures of a chapter; return all other errors."""
    with tempfile.TemporaryDirectory() as folder:
        outcome = run(chapter, Path(folder))
    lines = chapter.source.splitlines()
    for place in sorted(outcome.printed, reverse=True):  # from the end, so that earlier line numbers do not change
        part, found = chapter.parts[place], outcome.printed[place]
        if part.kind == "console":
            if "…" not in part.text.splitlines():
                lines[part.line - 1 : part.line - 1 + len(part.text.splitlines())] = found.splitlines()
            continue
        behind = output_of(chapter, place)
        end = part.line + len(part.text.splitlines())  # the line after the closing fence, counted from 0
        if behind is not None:
            first = behind.line - 1
            lines[first : first + (behind.text.count("\n") + 1 if behind.text else 0)] = found.splitlines()
        elif found:
            lines[end:end] = ["", "```text", *found.splitlines(), "```"]
    chapter.path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    IMAGES.mkdir(parents=True, exist_ok=True)
    for name, drawn in outcome.pictures.items():
        (IMAGES / name).write_text(drawn, encoding="utf-8")
    return outcome.problems
