"""Handle Ctrl-C and SIGTERM at any point in any command: one line, no partial output, exit code 130 or 143.

Python can raise KeyboardInterrupt at any point. In a destructor the exception is lost, in an import it is reported as
an import error, and in code run by ``exec`` (such as when a dataclass is created) the signal ends the program. This
handler therefore raises no exception: it removes partial output, prints one line and ends the process. Commands that
have something to save (training), or that treat an interrupt as input (chat), temporarily install their own
handlers.
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
_PARTIAL_LEFT = Message("stopped; the partial output could not be removed; run the same command again to remove it")
_SHOW_CURSOR = "\x1b[?25h\r\x1b[K"  # a progress bar hides the cursor; show it again


class StoppedError(KothaError):
    """Work was interrupted and saved; the message says how to resume.

    Under torchrun the exit code is 0, because torchrun treats any other code as a failure and restarts.
    """

    def __init__(self, template: str, /, alone: bool = True, **values: Any) -> None:
        super().__init__(template, **values)
        self.code = INTERRUPTED if alone else 0


def stopped(summary: Mapping[str, Any], *command: object, alone: bool = True) -> StoppedError | None:
    """Return an error that says how to resume if the training run was stopped, otherwise None."""
    if not summary["stopped"]:
        return None
    resume = shlex.join(["kotha", *map(str, command)])
    template = "stopped at step {steps:,} and saved; resume with: {go_on}"
    return StoppedError(template, alone=alone, steps=summary["steps"], go_on=resume)


def install_signal_handlers() -> None:
    """Make interrupts print one line and end the program, unless the parent process ignores them."""
    for number in (signal.SIGTERM, signal.SIGINT):
        if signal.getsignal(number) != signal.SIG_IGN:
            signal.signal(number, stop)


def ignore_signals() -> None:
    """Ignore interrupts; called once the result has been printed."""
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, signal.SIG_IGN)


def stop(number: int, _: FrameType | None = None) -> None:
    """Remove partial output, print one line, and end the process."""
    ignore_signals()
    if "multiprocessing.util" in sys.modules:
        _end_workers()
    if "ray" in sys.modules and "kotha.text.parallel.ray_cluster" in sys.modules:
        sys.modules["kotha.text.parallel.ray_cluster"].end_at_once()
    atomic = sys.modules.get("kotha.storage.atomic")  # may be partially imported
    removed = not getattr(atomic, "_unfinished", None) or atomic is None or atomic.give_up()
    indexes: list[Any] = getattr(sys.modules.get("kotha.retrieval.sqlite_store"), "give_up", list)()
    message = STOPPED if removed else _PARTIAL_LEFT
    if indexes:
        template = "stopped; {path} has the documents indexed so far; run the same command again to add the others"
        message = Message(template, path=indexes[0])
    translate = getattr(sys.modules.get("kotha.cli.language"), "translate", str)  # no imports in a handler
    say_at_once(f"kotha: {translate(message)}")
    os._exit(128 + number)


def _end_workers() -> None:
    """Kill the worker processes and release the named semaphores that they share."""
    from multiprocessing import active_children, util
    from threading import Thread

    for child in active_children():
        child.kill()
    # Runs in a thread with a timeout, because the interrupted code may hold a lock that the finalizers need.
    finalizers = Thread(target=util._run_finalizers, args=(0,), daemon=True)  # type: ignore[attr-defined]
    finalizers.start()
    finalizers.join(timeout=2)


def say_at_once(line: str) -> None:
    """Write a line to stderr from a signal handler, bypassing Python's streams, which may be in use."""
    with suppress(OSError):
        os.write(2, f"{_SHOW_CURSOR if os.isatty(2) else ''}{line}\n".encode())


@contextmanager
def raised() -> Iterator[None]:
    """Raise KeyboardInterrupt on Ctrl-C inside the ``with`` block, for commands that handle it."""
    before = signal.getsignal(signal.SIGINT)
    if before != stop:  # a notebook or a test has its own handler
        yield
        return
    signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def read_line(prompt: str = "") -> str | None:
    """Read a line, showing the prompt only on a terminal; return None at the end of the input."""
    with raised():
        if prompt and sys.stdin.isatty():
            try:
                return input(prompt)
            except EOFError:
                print()
                return None
        line = sys.stdin.readline()
        return line.removesuffix("\n") if line else None
