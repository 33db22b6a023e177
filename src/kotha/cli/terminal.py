"""What commands share at the terminal: results on stdout, progress on stderr."""

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

# Results go out at full width when they go into a file, so that no line is folded.
_WIDE = 200
# A column with a longer cell is read, from its left.
_SENTENCE = 60
# So many problems of a corpus are told.
_TOLD = 5
# How often a log, where no bar is drawn, is told how far long work is.
_SECONDS_BETWEEN_LINES = 60


class Output:
    """What a command found: one value for ``--json``, or else ``parts`` to read and then ``remarks`` on stderr.

    What was found is also saved as a ``page``, where one is named.
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
        self.error = error  # raised once the rest has been shown

    def show(self, as_json: bool) -> None:
        """Print it."""
        if self.page is not None:
            log(Message("page in {path}", path=self.found.save(self.page)))
        if as_json:
            print_json(self.found, self.indent)
        else:
            print_parts(*self.parts)
            for remark in self.remarks:
                log(remark)
        if self.error is not None:
            raise self.error


class Commands(NamedTuple):
    """Lines to copy, never folded."""

    heading: Text
    lines: Sequence[str]


class _Shown(Console):
    """A console whose own escape sequences reach the terminal, and nobody else's."""

    def render(self, renderable: Any, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        """As rich does, with control characters of the text shown."""
        for text, style, control in super().render(renderable, options):
            yield Segment(text if control else visible(text), style, control)


def console(stream: TextIO, **settings: Any) -> Console:
    """A console on a stream; what goes into a pipe or a file stays as it is."""
    kind = _Shown if stream.isatty() else Console
    return kind(file=plain_stream(stream), highlight=False, **settings)


def results() -> Console:
    """The console for results."""
    asked = sys.stdout.isatty()
    return console(sys.stdout, width=None if asked else _WIDE, soft_wrap=not asked)


def notes() -> Console:
    """The console for progress and remarks."""
    return console(sys.stderr)


def print_json(value: Any, indent: int | None = 2) -> None:
    """One JSON value on stdout, Bangla as Bangla; a number that JSON cannot hold is null."""
    if hasattr(value, "to_dict"):
        value = value.to_dict()
    elif is_dataclass(value) and not isinstance(value, type):
        value = asdict(value)
    print(as_json_text(value, indent), flush=True)


def print_parts(*parts: Any) -> None:
    """Tables with what is said below them, sentences, lines to copy, and what rich renders; a string is data."""
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


def rendered(made: Table) -> RichTable:
    """A table for the terminal; best cells are green, worst ones yellow.

    Messages are in the reader's language. A string is data and stays, unless its column has ``labels`` of ours: then it
    is looked up as a message without values.
    """
    styles = {"best": "bold green", "worst": "yellow"}
    built = RichTable(title=escape(translate(made.title)) or None, title_justify="left", header_style="bold")
    for index, name in enumerate(made.header):
        is_read = index == 0 or any(len(str(cells[index])) > _SENTENCE for cells in made.cells)
        built.add_column(translate(name), justify="left" if is_read else "right", overflow="fold")
    for row, cells in enumerate(made.cells):
        shown = []
        for column, cell in enumerate(cells):
            text = escape(cell if isinstance(cell, str) and column not in made.labels else translate(cell))
            mark = styles.get(made.marks.get((row, column), ""))
            shown.append(f"[{mark}]{text}[/]" if mark else text)
        built.add_row(*shown)
    return built


@contextmanager
def status(message: Message) -> Iterator[Any]:
    """Say what is done meanwhile, where it is seen."""
    with notes().status(translate(message)) as shown:
        yield shown


@contextmanager
def progress() -> Iterator[OnProgress]:
    """A function (stage, done, total) that draws a bar for each stage, with the time left.

    Where nobody would see a bar, a stage is named when it begins, and once a minute how far it is.
    """
    console = notes()
    share = (TextColumn("{task.description:<12}"), BarColumn(), TextColumn("{task.percentage:>3.0f} %"))
    times = (TimeElapsedColumn(), TimeRemainingColumn())
    with Progress(*share, *times, console=console, transient=True, disable=not console.is_terminal) as bars:
        tasks: dict[Text, Any] = {}
        told = time.monotonic()

        def advance(stage: Text, done: int, total: int) -> None:
            nonlocal told
            now = time.monotonic()
            if stage not in tasks:
                tasks[stage] = bars.add_task(translate(stage), total=total)
                if not console.is_terminal:
                    log(Message("{stage} …", stage=translate(stage)))
                    told = now
            elif not console.is_terminal and now - told >= _SECONDS_BETWEEN_LINES and 0 < done < total:
                log(Message("{stage} … {done:.0%}", stage=translate(stage), done=done / total))
                told = now
            bars.update(tasks[stage], completed=done)

        yield advance


@contextmanager
def problems_told() -> Iterator[Callable[[Messenger], None]]:
    """A function that tells the first problems of a corpus on stderr and counts the rest.

    The newest is held back until another comes: if it stopped the command, the error itself will tell it.
    """
    count = 0
    newest: Messenger | str = ""

    def tell_newest() -> None:
        if 0 < count <= _TOLD:
            log(newest)

    def take(problem: Messenger) -> None:
        nonlocal count, newest
        tell_newest()
        count, newest = count + 1, problem

    yield take
    tell_newest()
    if count > _TOLD:
        log(Message("… and {count:,} more problems", count=count - _TOLD))


@contextmanager
def listening() -> Iterator[dict[str, Any]]:
    """Who hears of work on a corpus: how far it is, and what is wrong with it."""
    with progress() as advance, problems_told() as problems:
        yield {"on_progress": advance, "on_problem": problems}
