"""Kill commands at system calls, cut the power between calls or make calls fail; check the invariants afterwards."""

import random
import re
import shutil
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from tests.fault_injection.cases import Case, begin, leftovers, tree
from tests.fault_injection.simulated_disk import LOST, Disk
from tests.fault_injection.system_calls import CHANGES, Call, run_slowed, run_with_fault, trace, trace_reads
from tests.launching import Launcher

ERRORS = ("EIO", "ENOSPC", "EROFS", "EDQUOT")
SLOW_MICROSECONDS = 10_000
# Signs of a traceback caused by a fault in one of Python's own module files.
_OF_PYTHON = ("ImportError:", "ModuleNotFoundError:", "Error: module '", "/importlib/", "in get_data\nOSError:")


@dataclass
class Found:
    """The result of all faults injected into one case."""

    case: str
    faults: int = 0
    interrupted: int = 0  # faults that ended the command early
    wrong: list[str] = field(default_factory=list)


@dataclass
class Harness:
    """A case with its system calls and its output in an undisturbed run."""

    launcher: Launcher
    case: Case
    folder: Path  # working directory; a copy of its initial state is kept as a sibling
    calls: list[Call] = field(default_factory=list)
    expected: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        begin(self.launcher, self.case, self.folder)
        shutil.rmtree(self._initial, ignore_errors=True)
        shutil.copytree(self.folder, self._initial)
        self.launcher.run(self.case.words(self.folder), self.log)
        once = tree(self.out)
        self.reset()
        code, calls = trace(self.launcher, self.case.words(self.folder), self.log)
        assert code == 0, self.log.read_text(encoding="utf-8")
        self.calls = [call for call in calls if call.name == "lseek" or call.touches(self.folder)]
        self.twice = tree(self.out)
        self.expected = {name: held for name, held in self.twice.items() if once.get(name) == held}
        assert self.expected, "two undisturbed runs produced no identical file"

    @property
    def _initial(self) -> Path:
        return self.folder.with_name(f"{self.folder.name}-kept")

    @property
    def log(self) -> Path:
        return self.folder.with_name("log")

    @property
    def out(self) -> Path:
        return self.folder / self.case.out

    def reset(self) -> None:
        """Restore the state that the directory had before the command."""
        shutil.rmtree(self.folder, ignore_errors=True)
        shutil.copytree(self._initial, self.folder)

    def fault_points(self, errors: bool = False) -> list[Call]:
        """Return the calls at which a fault matters: those that change the directory, and syncs."""
        reading = [call for call in self.calls if call.name == "openat" and "O_RDONLY" in call.words]
        changing = [call for call in self.calls if call.name in CHANGES and (errors or call not in reading)]
        return [call for call in changing if call.result >= 0]

    @cached_property
    def reading(self) -> list[Call]:
        """The calls that read from the directory."""
        self.reset()
        code, calls = trace_reads(self.launcher, self.case.words(self.folder), self.log)
        assert code == 0, self.log.read_text(encoding="utf-8")
        return [call for call in calls if call.result >= 0 and call.touches(self.folder)]

    def problems(self, what: str, succeeded: bool = False) -> Iterator[str]:
        """Check the directory after a fault and yield the problems.

        ``succeeded``: the command exited with 0, so its complete output must exist.
        """
        try:
            self.case.sound(self.folder)
        except Exception as problem:
            yield f"{what}: the output is corrupt: {type(problem).__name__}: {problem}"
        there = tree(self.out) if succeeded else {}
        if succeeded and (lost := sorted(self.twice.keys() - there.keys())):
            yield f"{what}: reported success, but {lost} is missing"
        if succeeded and (other := [name for name, held in self.expected.items() if there.get(name, held) != held]):
            yield f"{what}: reported success, but {other} differs"
        code = self.launcher.wait(self.launcher.start(self.case.again(self.folder), self.log))
        if code:
            yield f"{what}: cannot be resumed: {self.log.read_text(encoding='utf-8')[-400:]}"
            return
        ended = tree(self.out)
        if other := [name for name, held in self.expected.items() if ended.get(name) != held]:
            yield f"{what}: the final output differs in {other}"
        if more := sorted(ended.keys() - self.twice.keys()):
            yield f"{what}: unexpected output {more}"
        if left := leftovers(self.folder):
            yield f"{what}: temporary files left behind: {left}"


def sample_calls(every: Sequence[Call], times: int | None, seed: int) -> list[Call]:
    """Sample ``times`` calls in order; if there are fewer, use every call once or repeatedly."""
    times = len(every) if times is None else times
    rounds, rest = divmod(times, len(every))
    return [
        *list(every) * rounds,
        *(every[place] for place in sorted(random.Random(seed).sample(range(len(every)), rest))),
    ]


def kill_at_calls(harness: Harness, times: int | None = None, seed: int = 0) -> Found:
    """Send SIGKILL to the command at system calls.

    If there are more rounds than calls, the resumed command is killed a second time.
    """
    found, every, random_calls = Found(harness.case.name), harness.fault_points(), random.Random(seed)
    for number, call in enumerate(sample_calls(every, times, seed)):
        harness.reset()
        what, words = f"killed at {call.name} {call.ordinal}", harness.case.words(harness.folder)
        code = _killed(harness, words, call)
        if number >= len(every) and code == -9:
            second = random_calls.choice(every)
            what, words = f"{what}, then at {second.name} {second.ordinal}", harness.case.again(harness.folder)
            code = _killed(harness, words, second)
            found.faults += code == -9
        found.faults += 1
        found.interrupted += code == -9
        found.wrong += harness.problems(what, succeeded=code == 0)
    return found


def _killed(harness: Harness, words: list[str], call: Call) -> int:
    return run_with_fault(harness.launcher, words, harness.log, call.name, call.ordinal, "signal=KILL")


def fail_calls(harness: Harness, times: int | None = None, seed: int = 0) -> Found:
    """Make a call fail with EIO, ENOSPC, EROFS or EDQUOT."""
    errors = random.Random(seed)
    return _failing(
        harness, [(call, errors.choice(ERRORS)) for call in sample_calls(harness.fault_points(True), times, seed)]
    )


def fail_reads(harness: Harness, times: int | None = None, seed: int = 0) -> Found:
    """Make a read call fail with EIO."""
    return _failing(harness, [(call, "EIO") for call in sample_calls(harness.reading, times, seed)])


def _failing(harness: Harness, failing: list[tuple[Call, str]]) -> Found:
    found = Found(harness.case.name)
    for call, error in failing:
        harness.reset()
        words = harness.case.words(harness.folder)
        code = run_with_fault(harness.launcher, words, harness.log, call.name, call.ordinal, f"error={error}")
        found.faults += 1
        found.interrupted += code != 0
        what, log = f"{error} at {call.name} {call.ordinal}", harness.log.read_text(encoding="utf-8")
        if ("Traceback" in log or code < 0) and not hit_python_itself(log, harness.folder):
            found.wrong.append(f"{what}: exit code {code} without an error message: {log[-400:]}")
        if code and (left := leftovers(harness.folder)) and call.name not in ("unlinkat", "unlink", "rmdir"):
            found.wrong.append(f"{what}: temporary files left behind: {left}")
        found.wrong += harness.problems(what, succeeded=code == 0)
    return found


def slow_disk(harness: Harness, times: int | None = None, seed: int = 0) -> Found:
    """Delay every call; the command must succeed with the same output."""
    found = Found(harness.case.name)
    for _ in range(times or 1):
        harness.reset()
        code = run_slowed(harness.launcher, harness.case.words(harness.folder), harness.log, SLOW_MICROSECONDS)
        found.faults += 1
        found.interrupted += code != 0
        if code:
            found.wrong.append(f"slow disk: exit code {code}: {harness.log.read_text(encoding='utf-8')[-400:]}")
        found.wrong += harness.problems("slow disk", succeeded=code == 0)
    return found


def hit_python_itself(log: str, folder: Path) -> bool:
    """Return whether the fault hit one of Python's own files instead of the command's.

    Calls are identified by their ordinal, and processes that wait for each other make a varying number of calls. Python
    treats an unreadable module file as missing or empty, so the traceback names an import.
    """
    places = re.findall(r"\[Errno \d+\] [^:\n]+: '(/[^']*)'", log)
    if not places:
        last = log.rpartition("Traceback")[2]
        return any(sign in last for sign in _OF_PYTHON)
    return not any(place.startswith(f"{folder}/") or place == f"{folder}" for place in places)


def cut_power(harness: Harness, times: int | None = None, seed: int = 0) -> Found:
    """Cut the power between two calls: everything that was not synced is lost.

    Many cuts leave the same state; each distinct state is tested once, and the two states after the last call are
    always tested.
    """
    found = Found(harness.case.name)
    harness.reset()
    disk, states = Disk(harness.folder), dict[int, tuple[str, dict[str, bytes | None]]]()
    for call in harness.calls:
        disk.apply(call)
        for lost in LOST if call.name in CHANGES else ():
            left = disk.left(lost)
            states.setdefault(_key(left), (f"cut after {call.name} {call.ordinal}, {lost} lost", left))
    ends = {f"cut after the command ended, {lost} lost": disk.left(lost) for lost in LOST}
    for left in ends.values():
        states.pop(_key(left), None)
    between = list(states.values())
    if times is not None and times < len(between):
        between = [between[place] for place in sorted(random.Random(seed).sample(range(len(between)), times))]
    for what, left in [*between, *ends.items()]:
        _write(harness.folder, left)
        found.faults += 1
        found.interrupted += what not in ends
        found.wrong += harness.problems(what, succeeded=what in ends)
    return found


def simulation_matches(harness: Harness) -> bool:
    """Return whether the simulated disk ends with the same content as the real one."""
    harness.reset()
    disk = Disk(harness.folder)
    for call in harness.calls:
        disk.apply(call)
    _write(harness.folder, disk.left())
    return tree(harness.out) == harness.twice


def _key(left: dict[str, bytes | None]) -> int:
    return hash(frozenset(left.items()))


def _write(folder: Path, left: dict[str, bytes | None]) -> None:
    """Replace the contents of a directory."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    for name, held in left.items():
        if held is None:
            (folder / name).mkdir()
        else:
            (folder / name).write_bytes(held)
