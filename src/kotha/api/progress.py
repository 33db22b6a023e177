"""Progress of long calls from Python: a line on a terminal, a bar in a notebook, and nothing elsewhere.

Functions of the API report to their listeners: ``on_progress``, ``on_event`` and ``on_remark``. If the caller passes
none of these, `displayed` shows the reports, unless ``quiet`` was called. Commands have their own display.
"""

import functools
import inspect
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from importlib import import_module
from typing import Any, ParamSpec, Protocol, TypeVar

from kotha.i18n.message import Message, ProgressMessage, Text

P = ParamSpec("P")
R = TypeVar("R")
_LISTENERS = ("on_progress", "on_event", "on_remark")
# Shorter calls show no bar; a notebook's bar is redrawn at this interval.
_DELAY_SECONDS, _REDRAW_SECONDS = 0.5, 0.2
_SAMPLE_CHARACTERS = 110
_STEP = ("step", "steps", "loss_nats", "tokens_per_second")
# Labels for the figures of a summary, by key.
_LABELS = {
    name.replace(" ", "_"): Message(name)
    for name in (
        *("accuracy", "best step", "bits per byte", "bits per character", "device", "loss nats", "macro f1"),
        *("micro batch size", "peak memory bytes", "precision", "processes", "seconds", "steps", "stopped", "tokens"),
        "tokens per second",
    )
}
_UNITS = {
    "bits_per_byte": "{value:.4f} bits/byte",
    "bits_per_character": "{value:.4f} bits/character",
    "loss_nats": "{value:.4f} nats",
}


class _State:
    """Whether calls show their progress."""

    quiet = False


def quiet(on: bool = True) -> None:
    """Do not show the progress of long calls; ``quiet(False)`` shows it again.

    Progress is shown on stderr if that is a terminal, and in notebooks. A call with ``on_progress``, ``on_event`` or
    ``on_remark`` shows nothing: its listeners receive the reports.

    >>> kotha.quiet()
    >>> kotha.quiet(False)
    """
    _State.quiet = on


@contextmanager
def silenced() -> Iterator[None]:
    """Show no progress in this block."""
    before, _State.quiet = _State.quiet, True
    try:
        yield
    finally:
        _State.quiet = before


def displayed(function: Callable[P, R]) -> Callable[P, R]:
    """Show what a function reports, if the caller passes no listener and the progress can be seen."""
    names = [name for name in _LISTENERS if name in inspect.signature(function).parameters]
    assert names, f"{function.__qualname__} has no listener"

    @functools.wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        listens = any(kwargs.get(name) is not None for name in names)
        bars = None if listens or _State.quiet else _bars()
        if bars is None:
            return function(*args, **kwargs)
        with silenced(), closing(Display(bars)) as display:
            kwargs.update({name: getattr(display, name) for name in names})
            return function(*args, **kwargs)

    return call


class Bars(Protocol):
    """A place where progress is drawn."""

    def draw(self, stage: str, done: int, total: int) -> None:
        """Draw the bar; a total of 0 is unknown."""

    def write(self, line: str) -> None:
        """Write a line above the bar."""

    def close(self) -> None:
        """Remove the bar."""


class Display:
    """The listeners for one call."""

    def __init__(self, bars: Bars) -> None:
        self._bars, self._began = bars, time.monotonic()

    def on_progress(self, stage: Text, done: int, total: int) -> None:
        """Draw a bar, unless the call has only begun; work of unknown length may not report again."""
        if not total or time.monotonic() - self._began >= _DELAY_SECONDS:
            self._bars.draw(str(stage), done, total)

    def on_remark(self, text: Text) -> None:
        """Write a remark; one about the current work is replaced by the next."""
        if isinstance(text, ProgressMessage):
            self._bars.draw(str(text), 0, 0)
        else:
            self._bars.write(str(text))

    def on_event(self, event: dict[str, Any]) -> None:
        """Draw the step of a training run, or write its evaluation with a sample."""
        if "stopping" in event:
            with suppress(RuntimeError):  # called by a signal handler, which may have interrupted another write
                self._bars.write(str(Message("saving after this step ({stopping}) …", stopping=event["stopping"])))
        elif "validation" in event:
            self._bars.write(f"{stage_message(event)}{evaluation_message(event)}  {sample_of(event)}".rstrip())
        elif "tokens_per_second" in event:
            template = "step {step:,}/{steps:,}  loss {loss_nats:.3f}  {tokens_per_second:,.0f} tokens/s"
            line = Message(template, **{name: event[name] for name in _STEP})
            self.on_progress(f"{stage_message(event)}{line}", event["step"], event["steps"])

    def close(self) -> None:
        """Remove the bar."""
        self._bars.close()


class _TerminalBars:
    """A bar of rich on stderr."""

    def __init__(self) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

        columns = (TextColumn("{task.description}", markup=False), BarColumn(20))
        times = (TextColumn("{task.percentage:>3.0f} %"), TimeElapsedColumn(), TimeRemainingColumn(compact=True))
        self._progress = Progress(*columns, *times, console=Console(file=sys.stderr), transient=True)
        self._task, self._known = self._progress.add_task("", total=None), False

    def draw(self, stage: str, done: int, total: int) -> None:
        """Draw the bar."""
        if self._known and not total:  # `update` cannot unset a total
            self._progress.remove_task(self._task)
            self._task = self._progress.add_task("", total=None)
        self._known = bool(total)
        self._progress.update(self._task, description=stage, completed=done, total=total or None)
        self._progress.start()

    def write(self, line: str) -> None:
        """Write a line above the bar."""
        self._progress.console.print(line, markup=False, highlight=False)

    def close(self) -> None:
        """Remove the bar."""
        self._progress.stop()


class _NotebookBars:
    """A bar in a notebook, with the lines above it; the lines remain when the bar is removed."""

    def __init__(self) -> None:
        self._lines: list[str] = []
        self._handle: Any = None
        self._drawn = 0.0

    def draw(self, stage: str, done: int, total: int) -> None:
        """Draw the bar, but not too often."""
        if time.monotonic() - self._drawn >= _REDRAW_SECONDS:
            share = f' value="{done}" max="{total}"' if total else ""
            self._show(f"<progress{share}></progress> {_escaped(stage)}")

    def write(self, line: str) -> None:
        """Write a line above the bar."""
        self._lines.append(_escaped(line))
        self._show("")

    def close(self) -> None:
        """Remove the bar."""
        if self._handle is not None:
            self._show("")

    def _show(self, bar: str) -> None:
        shown: Any = import_module("IPython.display")
        page = shown.HTML("<br>".join(filter(None, [*self._lines, bar])))
        if self._handle is None:
            self._handle = shown.display(page, display_id=True)
        else:
            self._handle.update(page)
        self._drawn = time.monotonic()


def _escaped(text: str) -> str:
    from kotha.report.page import escape

    return escape(text)


def _bars() -> Bars | None:
    """Return a place to draw progress, or None if nobody would see it."""
    notebook = sys.modules.get("IPython")
    if notebook is not None and hasattr(notebook.get_ipython(), "kernel"):
        return _NotebookBars()
    return _TerminalBars() if sys.stderr is not None and sys.stderr.isatty() else None


# -- lines of a training run, also for the commands -------------------------------------------------------------------


def evaluation_message(event: dict[str, Any]) -> Message:
    """Describe an evaluation by its step and its figures."""
    found = event["validation"]
    figures = [Message(unit, value=found[key]) for key, unit in _UNITS.items() if key in found][:2]
    shares = [name for name in found if "accuracy" in name or name == "macro_f1"]
    figures += [Message("{name} {share:.1%}", name=label(name), share=found[name]) for name in shares]
    return Message("step {step:>6,}  validation {figures}", step=event["step"], figures=figures)


def sample_of(event: dict[str, Any]) -> str:
    """Return the beginning of the text that a model generated in an evaluation."""
    return " ".join((event.get("sample") or "").split())[:_SAMPLE_CHARACTERS]


def stage_message(event: dict[str, Any]) -> Text:
    """Return the current stage of a run with teachers, as the start of a line."""
    if "stage" not in event:
        return ""
    return Message("stage {stage}/{stages}  ", stage=event["stage"], stages=event["stages"])


def label(name: str) -> Text:
    """Return the label for a figure in a summary."""
    return _LABELS.get(name) or name.replace("_", " ")
