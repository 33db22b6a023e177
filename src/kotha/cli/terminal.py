"""Terminal output for commands: results on stdout, progress and remarks on stderr."""

import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, is_dataclass
from pathlib import Path
from typing import Any, NamedTuple, TextIO

from rich.console import Console, ConsoleOptions
from rich.markup import escape
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.segment import Segment
from rich.table import Table as RichTable

from kotha.cli.control_characters import plain_stream, visible
from kotha.cli.language import log, translate
from kotha.errors import KothaError
from kotha.i18n.catalogue import Messenger
from kotha.i18n.message import Message, OnProgress, Text
from kotha.report.table import Table as Table
from kotha.storage.json_files import as_json as as_json_text

# Width of results in a file, so that no line is wrapped.
_WIDE = 200
# A column with a longer cell holds sentences and is left-aligned.
_SENTENCE = 60
# Number of corpus problems that are printed.
_MAX_PROBLEMS = 5
# Interval of progress lines where no progress bar is drawn.
_SECONDS_BETWEEN_LINES = 60


class Output:
    """A command's output: ``found`` with ``--json``, otherwise ``parts`` on stdout and ``remarks`` on stderr.

    ``found`` is also saved as a page if ``page`` is a path.
    """

    def __init__(
        self,
        found: Any,
        *parts: Any,
        remarks: Iterable[Text] = (),
        page: Path | None = None,
        indent: int | None = 2,
        error: KothaError | None = None,
    ) -> None:
        self.found, self.parts, self.remarks, self.page = found, parts, remarks, page
        self.indent = indent  # of the JSON
        self.error = error  # raised after the rest has been printed

    def show(self, as_json: bool) -> None:
        """Print the output, save the page, and raise the error, if any."""
        if self.page is not None:
            log(Message("page saved to {path}", path=self.found.save(self.page)))
        if as_json:
            print_json(self.found, self.indent)
        else:
            print_parts(*self.parts)
            for remark in self.remarks:
                log(remark)
        if self.error is not None:
            raise self.error


class Commands(NamedTuple):
    """Lines to copy, never wrapped."""

    heading: Text
    lines: Sequence[str]


class _VisibleConsole(Console):
    """A console that writes rich's own escape sequences, but shows those in the text as visible symbols."""

    def render(self, renderable: Any, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        """Render as rich does, but show control characters in the text as visible symbols."""
        for text, style, control in super().render(renderable, options):
            yield Segment(text if control else visible(text), style, control)


def console(stream: TextIO, **settings: Any) -> Console:
    """Return a console for a stream; text written to a pipe or a file is not changed."""
    kind = _VisibleConsole if stream.isatty() else Console
    return kind(file=plain_stream(stream), highlight=False, **settings)


def results() -> Console:
    """Return the console for results."""
    is_terminal = sys.stdout.isatty()
    return console(sys.stdout, width=None if is_terminal else _WIDE, soft_wrap=not is_terminal)


def notes() -> Console:
    """Return the console for progress and remarks."""
    return console(sys.stderr)


def print_json(value: Any, indent: int | None = 2) -> None:
    """Print a JSON value on stdout, with Bangla unescaped and NaN and infinities as null."""
    if hasattr(value, "to_dict"):
        value = value.to_dict()
    elif is_dataclass(value) and not isinstance(value, type):
        value = asdict(value)
    print(as_json_text(value, indent), flush=True)


def print_parts(*parts: Any) -> None:
    """Print tables with their remarks, messages, commands to copy, and rich renderables."""
    console = results()
    for part in parts:
        if isinstance(part, Table):
            console.print(rendered(part))
            print_parts(*part.remarks)
        elif isinstance(part, Commands):
            lines = ["", translate(part.heading), *(f"  {line}" for line in part.lines)]
            console.print("\n".join(lines), markup=False, soft_wrap=True)
        else:
            console.print(translate(part) if isinstance(part, str | Message) else part, markup=False)


def rendered(table: Table) -> RichTable:
    """Convert a table for the terminal; the best cells are green, and the worst yellow.

    Messages are translated. Strings are data and are not translated, except in ``labels`` columns, where they are
    looked up as messages without values.
    """
    styles = {"best": "bold green", "worst": "yellow"}
    built = RichTable(title=escape(translate(table.title)) or None, title_justify="left", header_style="bold")
    for index, name in enumerate(table.header):
        is_text = index == 0 or any(len(str(cells[index])) > _SENTENCE for cells in table.cells)
        built.add_column(translate(name), justify="left" if is_text else "right", overflow="fold")
    for row, cells in enumerate(table.cells):
        texts = []
        for column, cell in enumerate(cells):
            text = escape(cell if isinstance(cell, str) and column not in table.labels else translate(cell))
            mark = styles.get(table.marks.get((row, column), ""))
            texts.append(f"[{mark}]{text}[/]" if mark else text)
        built.add_row(*texts)
    return built


@contextmanager
def status(message: Message) -> Iterator[Any]:
    """Show a spinner with a message on a terminal."""
    with notes().status(translate(message)) as shown:
        yield shown


@contextmanager
def progress() -> Iterator[OnProgress]:
    """Yield a function (stage, done, total) that draws a progress bar for each stage, with the remaining time.

    If the output is not a terminal, the function prints a line when a stage begins, and once a minute after that.
    """
    console = notes()
    share = (TextColumn("{task.description:<12}"), BarColumn(), TextColumn("{task.percentage:>3.0f} %"))
    times = (TimeElapsedColumn(), TimeRemainingColumn())
    with Progress(*share, *times, console=console, transient=True, disable=not console.is_terminal) as bars:
        tasks: dict[Text, Any] = {}
        printed = time.monotonic()

        def advance(stage: Text, done: int, total: int) -> None:
            nonlocal printed
            now = time.monotonic()
            if stage not in tasks:
                tasks[stage] = bars.add_task(translate(stage), total=total or None)
                if not console.is_terminal:
                    log(Message("{stage} …", stage=translate(stage)))
                    printed = now
            elif not console.is_terminal and now - printed >= _SECONDS_BETWEEN_LINES and 0 < done < total:
                log(Message("{stage} … {done:.0%}", stage=translate(stage), done=done / total))
                printed = now
            bars.update(tasks[stage], completed=done)

        yield advance


@contextmanager
def report_problems() -> Iterator[Callable[[Messenger], None]]:
    """Yield a function that prints the first problems in a corpus on stderr and counts the rest.

    The latest problem is printed only when another one follows, because a problem that stops the command is reported as
    its error.
    """
    count = 0
    latest: Messenger | str = ""

    def print_latest() -> None:
        if 0 < count <= _MAX_PROBLEMS:
            log(latest)

    def take(problem: Messenger) -> None:
        nonlocal count, latest
        print_latest()
        count, latest = count + 1, problem

    yield take
    print_latest()
    if count > _MAX_PROBLEMS:
        log(Message("… and {count:,} more problems", count=count - _MAX_PROBLEMS))


@contextmanager
def corpus_listeners() -> Iterator[dict[str, Any]]:
    """Yield ``on_progress`` and ``on_problem`` for functions that read a corpus."""
    with progress() as advance, report_problems() as problems:
        yield {"on_progress": advance, "on_problem": problems}
