"""Ctrl-C and SIGTERM at any moment of any command: one line, nothing half-written, exit 130 (143).

Python's own way, an exception wherever the program happens to be, is lost inside a destructor, is reported by whoever
runs an import, and ends ``python -m`` by signal when it passes through a string that is executed, as every dataclass
is. So nothing is raised here: the handler itself removes what is being written, says its line and ends the process. A
command that has something to save (training), or that takes an interrupt as an answer (chat), listens in its own way
for as long as it needs to.
"""

import os
import shlex
import signal
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from types import FrameType
from typing import Any

from kotha.errors import KothaError
from kotha.i18n.message import Message

INTERRUPTED = 128 + signal.SIGINT
STOPPED = Message("stopped; no partial output was left behind")
_LEFT = Message("stopped; the partial output could not be removed; run the same command again to remove it")
_SHOW_CURSOR = "\x1b[?25h\r\x1b[K"  # a progress bar hides it


class StoppedError(KothaError):
    """Work that was interrupted and is safe; the message says how to go on.

    Under torchrun the exit code is 0 all the same: it would take another for a failure, and start again.
    """

    def __init__(self, template: str, /, alone: bool = True, **values: Any) -> None:
        super().__init__(template, **values)
        self.code = INTERRUPTED if alone else 0


def stopped(summary: Mapping[str, Any], *command: object, alone: bool = True) -> StoppedError | None:
    """Of a training that was stopped, how it goes on."""
    if not summary["stopped"]:
        return None
    go_on = shlex.join(["kotha", *map(str, command)])
    told = "stopped at step {steps:,} and saved; resume with: {go_on}"
    return StoppedError(told, alone=alone, steps=summary["steps"], go_on=go_on)


def install_signal_handlers() -> None:
    """From here on, an interrupt ends the program in one line; who was told to ignore them still does."""
    for number in (signal.SIGTERM, signal.SIGINT):
        if signal.getsignal(number) != signal.SIG_IGN:
            signal.signal(number, stop)


def ignore_signals() -> None:
    """The result is out: nothing is left to interrupt."""
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, signal.SIG_IGN)


def stop(number: int, _: FrameType | None = None) -> None:
    """Leave nothing behind, say so, and end."""
    ignore_signals()
    if "multiprocessing.util" in sys.modules:
        _end_workers()
    if "ray" in sys.modules and "kotha.text.parallel.ray_cluster" in sys.modules:
        sys.modules["kotha.text.parallel.ray_cluster"].end_at_once()
    atomic = sys.modules.get("kotha.storage.atomic")  # which may be halfway imported
    all_gone = not getattr(atomic, "_unfinished", None) or atomic is None or atomic.give_up()
    translate = getattr(sys.modules.get("kotha.cli.language"), "translate", str)  # nothing is imported any more
    say_at_once(f"kotha: {translate(STOPPED if all_gone else _LEFT)}")
    os._exit(128 + number)


def _end_workers() -> None:
    """End the processes that work for us, and let go of the semaphores that they shared, which have names."""
    from multiprocessing import active_children, util
    from threading import Thread

    for child in active_children():
        child.kill()
    # In a thread: whom we interrupted may hold a lock that this would wait for, and nobody waits for long here.
    letting_go = Thread(target=util._run_finalizers, args=(0,), daemon=True)  # type: ignore[attr-defined]
    letting_go.start()
    letting_go.join(timeout=2)


def say_at_once(line: str) -> None:
    """A line on stderr from inside a handler, where Python's own streams may be in the middle of another."""
    with suppress(OSError):
        os.write(2, f"{_SHOW_CURSOR if os.isatty(2) else ''}{line}\n".encode())


@contextmanager
def raised() -> Iterator[None]:
    """Ctrl-C as Python's exception, for a command that answers it."""
    before = signal.getsignal(signal.SIGINT)
    if before != stop:  # a notebook, a test: theirs already
        yield
        return
    signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def read_line(prompt: str = "") -> str | None:
    """A line that somebody writes; the prompt only where they see it. None when there is no more."""
    with raised():
        if prompt and sys.stdin.isatty():
            try:
                return input(prompt)
            except EOFError:
                print()
                return None
        line = sys.stdin.readline()
        return line.removesuffix("\n") if line else None
