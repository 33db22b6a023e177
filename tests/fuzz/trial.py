"""Try inputs in forked children, many per child, so that a hang or a crash ends a child but not the search.

An input is identified by its number: the same seed and the same initial inputs reproduce it, so the input at which a
child died can be generated again. The kernel ends a child that spends some seconds on one input, and limits its memory
to its initial size plus a gigabyte.
"""

import mmap
import os
import random
import resource
import signal
import struct
import sys
import tempfile
import traceback
from collections.abc import Iterable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from multiprocessing.connection import Connection, Pipe
from pathlib import Path
from shutil import rmtree
from typing import Any

import torch
from tests.fuzz.layers import Parcel
from tests.fuzz.lines import Line, Watch
from tests.fuzz.mutation import mutated
from tests.fuzz.targets import Loader, Target, seeds, write

import kotha
from kotha.errors import KothaError

SECONDS, WAITING, MEMORY = 5.0, 30.0, 1 << 30
_BATCH = 1000  # inputs per child
# Tracing slows an input down several times, so only the first inputs are traced, and then a sample.
_WATCHED, _WATCHED_LATER = 500, 8
_FIGURES = ("tried", "read", "refused", "memory")
_HOUSE = str(Path(kotha.__file__).parent)


@dataclass
class Found:
    """The results for one target."""

    target: str
    inputs: int = 0
    read: int = 0  # number of inputs that a loader accepted
    refused: int = 0  # number of inputs that were rejected with a message
    kept: int = 0  # number of inputs that reached a new line
    lines: int = 0  # number of lines reached
    most_memory: int = 0  # maximum growth of a child's memory in bytes
    wrong: dict[str, int] = field(default_factory=dict)  # the findings and their counts


class Search:
    """The search state of one target: its corpus and its findings."""

    def __init__(self, target: Target, seed: int, kept_in: Path) -> None:
        self.target, self.seed, self._kept_in = target, seed, kept_in
        self.pool = list(seeds(target.name).values())
        self._n_seeds = len(self.pool)
        self.found = Found(target.name)
        self._lines: set[Line] = set()

    def make(self, number: int) -> Parcel:
        """Return the input with a number; the first ones are the unchanged initial inputs."""
        if number < self._n_seeds:
            return self.pool[number]
        rng = random.Random(f"{self.seed} {self.target.name} {number}")
        parcel = mutated(rng, rng.choice(self.pool), self.pool)
        return self.target.agree(parcel) if self.target.agree is not None and rng.random() < 0.85 else parcel

    def run(self, times: int) -> Found:
        """Try a given number of further inputs."""
        end = self.found.inputs + times
        while self.found.inputs < end:
            self._batch(range(self.found.inputs, min(end, self.found.inputs + _BATCH)))
        return self.found

    def _batch(self, numbers: range) -> None:
        kept: list[int] = []
        place = numbers.start
        while place < numbers.stop:
            answers, died_at, code = in_child(self, range(place, numbers.stop), self._lines)
            for answer in answers:
                kept += self._note(answer)
            place = numbers.stop if died_at is None else died_at + 1
            if died_at is not None:
                self._note_death(died_at, code)
        new = [self.make(number) for number in kept]
        self.found.inputs = numbers.stop
        self.found.kept += len(new)
        self.found.lines = len(self._lines)
        self.pool += new

    def _note(self, answer: dict[str, Any]) -> list[int]:
        match answer:
            case {"kept": number, "lines": lines}:
                self._lines.update(lines)
                return [number]
            case {"wrong": number, "what": what, "told": told}:
                self._note_wrong(number, what, told)
            case {"read": read, "refused": refused, "memory": memory}:
                self.found.read += read
                self.found.refused += refused
                self.found.most_memory = max(self.found.most_memory, memory)
        return []

    def _note_death(self, number: int, code: int) -> None:
        """Record a crash. The input is tried again alone, because earlier inputs may have contributed to the crash."""
        answers, died_at, again = in_child(self, range(number, number + 1), self._lines)
        if died_at is not None:
            late = {-signal.SIGPROF: f"over {SECONDS:g} seconds", -signal.SIGALRM: f"waits over {WAITING:g} seconds"}
            self._note_wrong(number, late.get(again, f"it died with {again}"), "")
            return
        for answer in answers:
            self._note(answer)

    def _note_wrong(self, number: int, what: str, told: str) -> None:
        seen = self.found.wrong.get(what, 0)
        self.found.wrong[what] = seen + 1
        if not seen:
            folder = self._kept_in / f"{self.target.name}-{number}"
            rmtree(folder, ignore_errors=True)
            write(folder / "input", self.make(number))
            (folder / "what.txt").write_text(f"{what}\n\n{told}", encoding="utf-8", errors="backslashreplace")
            print(f"  {what}: kept in {folder}", file=sys.stderr, flush=True)


def in_child(search: Search, numbers: range, known: Iterable[Line]) -> tuple[list[dict[str, Any]], int | None, int]:
    """Try inputs in a child; return its messages, the input at which it died (or None), and its exit code."""
    shared = mmap.mmap(-1, 8 * len(_FIGURES))  # the child's counts survive its death
    ours, theirs = Pipe(duplex=False)
    stderr = os.dup(2)
    process = os.fork()
    if process == 0:
        code = 1
        try:
            ours.close()
            _work(search, numbers, Watch(_HOUSE, known), shared, theirs)
            code = 0
        except BaseException:  # an error in the harness: a loader's errors are results
            os.write(stderr, traceback.format_exc().encode())
        finally:
            os._exit(code)
    theirs.close()
    os.close(stderr)
    answers = []
    try:
        while True:
            answers.append(ours.recv())
    except (EOFError, OSError):
        pass
    code = os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])
    figures = dict(zip(_FIGURES, struct.unpack(f"<{len(_FIGURES)}Q", shared[:]), strict=True))
    assert code <= 0, f"{search.target.name}: the harness itself failed at input {numbers.start + figures['tried']}"
    died_at = None if code == 0 else numbers[figures["tried"] - 1]
    return [*answers, {key: figures[key] for key in ("read", "refused", "memory")}], died_at, code


def _work(search: Search, numbers: range, watch: Watch, shared: mmap.mmap, tell: Connection) -> None:
    """Run the child: open the target, try inputs, report the interesting ones, and count."""
    for late in (signal.SIGALRM, signal.SIGPROF):
        signal.signal(late, signal.SIG_DFL)
    nowhere = os.open(os.devnull, os.O_WRONLY)
    load = search.target.open()
    torch.empty(1 << 20)  # torch's allocator reserves an unused gigabyte at its first call
    os.dup2(nowhere, 1)
    os.dup2(nowhere, 2)
    before = _held()
    resource.setrlimit(resource.RLIMIT_AS, (_held("VmSize") + MEMORY, resource.RLIM_INFINITY))
    counts = dict.fromkeys(_FIGURES, 0)
    with tempfile.TemporaryDirectory(prefix="kotha-fuzz-", dir=_quick()) as place:
        for number in numbers:
            folder = Path(place) / "it"
            write(folder, search.make(number))
            counts["tried"] += 1
            shared[:] = struct.pack(f"<{len(_FIGURES)}Q", *counts.values())
            watched = number < _WATCHED or number % _WATCHED_LATER == 0
            what, result = _try(load, folder, watch if watched else nullcontext())
            if what in counts:
                counts[what] += 1
            else:
                tell.send({"wrong": number, "what": what, "told": result})
            if watched and watch.new and what in counts:
                tell.send({"kept": number, "lines": sorted(watch.new)})
            rmtree(folder)
        counts["memory"] = max(0, _held("VmHWM") - before)
        shared[:] = struct.pack(f"<{len(_FIGURES)}Q", *counts.values())


def _try(load: Loader, folder: Path, watch: AbstractContextManager[object]) -> tuple[str, str]:
    """Run one input; the result is read, rejected, or a finding with its location."""
    signal.setitimer(signal.ITIMER_PROF, SECONDS)  # processor time, which does not depend on other load
    signal.setitimer(signal.ITIMER_REAL, WAITING)
    try:
        with watch:
            load(folder)
        return "read", ""
    except KothaError as error:
        if str(error).strip():
            return "refused", ""
        return "an error without a word", ""
    except BaseException as problem:
        where = [each for each in traceback.extract_tb(problem.__traceback__) if each.filename.startswith(_HOUSE)]
        at = f"{Path(where[-1].filename).relative_to(_HOUSE)}:{where[-1].lineno}" if where else "outside the house"
        return f"{type(problem).__name__} at {at}", "".join(traceback.format_exception(problem))[-4000:]
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.setitimer(signal.ITIMER_REAL, 0)


def _held(what: str = "VmRSS") -> int:
    """Return the memory of this process in bytes."""
    lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(what))


def _quick() -> str | None:
    """Return an in-memory directory, if the system has one."""
    return "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
