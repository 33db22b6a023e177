"""What commands share at the terminal: results on stdout, progress on stderr."""

import json
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, is_dataclass
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.table import Table

from kotha.text.corpus.problems import CorpusProblem

# Results go out at full width when they go into a file, so that no line is folded.
_WIDE = 200


def results() -> Console:
    """The console for results."""
    return Console(width=None if sys.stdout.isatty() else _WIDE, highlight=False, soft_wrap=not sys.stdout.isatty())


def notes() -> Console:
    """The console for progress and remarks."""
    return Console(stderr=True, highlight=False)


def print_json(value: Any) -> None:
    """One JSON object on stdout, Bangla as Bangla."""
    plain = asdict(value) if is_dataclass(value) and not isinstance(value, type) else value
    print(json.dumps(plain, ensure_ascii=False, indent=2))


def table(
    title: str, header: list[str], rows: list[list[str]], marks: dict[tuple[int, int], str] | None = None
) -> Table:
    """A table for the terminal; best cells are green, worst ones yellow."""
    styles = {"best": "bold green", "worst": "yellow"}
    built = Table(title=_plain(title) or None, title_justify="left", header_style="bold")
    for index, name in enumerate(header):
        built.add_column(name, justify="left" if index == 0 else "right", overflow="fold")
    for row, cells in enumerate(rows):
        marked = [(cell, (marks or {}).get((row, column))) for column, cell in enumerate(cells)]
        built.add_row(*(f"[{styles[mark]}]{_plain(cell)}[/]" if mark else _plain(cell) for cell, mark in marked))
    return built


def _plain(cell: str) -> str:
    return cell.replace("[", "\\[")


@contextmanager
def progress() -> Iterator[Callable[[str, int, int], None]]:
    """A function (stage, done, total) that draws a bar for each stage, with the time left."""
    console = notes()
    share = (TextColumn("{task.description:<12}"), BarColumn(), TextColumn("{task.percentage:>3.0f} %"))
    times = (TimeElapsedColumn(), TimeRemainingColumn())
    with Progress(*share, *times, console=console, transient=True, disable=not console.is_terminal) as bars:
        tasks: dict[str, Any] = {}

        def advance(stage: str, done: int, total: int) -> None:
            if stage not in tasks:
                tasks[stage] = bars.add_task(stage, total=total)
                if not console.is_terminal:  # no bar will be seen; say at least what goes on
                    print(f"kotha: {stage} …", file=sys.stderr)
            bars.update(tasks[stage], completed=done)

        yield advance


class Problems:
    """Tells the first problems of a corpus on stderr and counts the rest.

    The newest is held back until another comes: if it stopped the command, the error itself will tell it.
    """

    shown = 5

    def __init__(self) -> None:
        self.count = 0
        self._newest: CorpusProblem | None = None

    def __call__(self, problem: CorpusProblem) -> None:
        """Take note of a problem."""
        self._tell()
        self.count += 1
        self._newest = problem

    def summarize(self) -> None:
        """Tell the last, and how many were not shown."""
        self._tell()
        if self.count > self.shown:
            print(f"kotha: … and {self.count - self.shown:,} more problems", file=sys.stderr)

    def _tell(self) -> None:
        if self._newest is not None and self.count <= self.shown:
            print(f"kotha: {self._newest}", file=sys.stderr)
        self._newest = None
