"""The blows: kills at calls, power cuts between calls, calls that fail; and what must be true after each."""

import random
import re
import shutil
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from tests.fault_injection.calls import CHANGES, Call, slowed, struck, traced, traced_reading
from tests.fault_injection.cases import Case, begin, leftovers, tree
from tests.fault_injection.disk import LOST, Disk
from tests.launching import Launcher

ERRORS = ("EIO", "ENOSPC", "EROFS", "EDQUOT")
SLOW_MICROSECONDS = 10_000
# What Python says, or where it is, when a module of its own could not be looked at or read.
_OF_PYTHON = ("ImportError:", "ModuleNotFoundError:", "Error: module '", "/importlib/", "in get_data\nOSError:")


@dataclass
class Found:
    """What came of the blows that one case was given."""

    case: str
    blows: int = 0
    broken_off: int = 0  # of them, those that ended the command before its end
    wrong: list[str] = field(default_factory=list)


@dataclass
class Range:
    """A case with what it is measured by: its calls, and what comes out when nothing happens."""

    launcher: Launcher
    case: Case
    folder: Path  # where the case lives; beside it its beginning is kept
    calls: list[Call] = field(default_factory=list)
    expected: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        begin(self.launcher, self.case, self.folder)
        shutil.rmtree(self._kept, ignore_errors=True)
        shutil.copytree(self.folder, self._kept)
        self.launcher.run(self.case.words(self.folder), self.log)
        once = tree(self.out)
        self.reset()
        code, calls = traced(self.launcher, self.case.words(self.folder), self.log)
        assert code == 0, self.log.read_text(encoding="utf-8")
        self.calls = [call for call in calls if call.name == "lseek" or call.touches(self.folder)]
        self.twice = tree(self.out)
        self.expected = {name: held for name, held in self.twice.items() if once.get(name) == held}
        assert self.expected, "two quiet runs have nothing in common"

    @property
    def _kept(self) -> Path:
        return self.folder.with_name(f"{self.folder.name}-kept")

    @property
    def log(self) -> Path:
        return self.folder.with_name("log")

    @property
    def out(self) -> Path:
        return self.folder / self.case.out

    def reset(self) -> None:
        """As it was before the command."""
        shutil.rmtree(self.folder, ignore_errors=True)
        shutil.copytree(self._kept, self.folder)

    def strikes(self, errors: bool = False) -> list[Call]:
        """The calls at which a blow can change anything: those that change what is in the folder, and the syncs."""
        reading = [call for call in self.calls if call.name == "openat" and "O_RDONLY" in call.words]
        changing = [call for call in self.calls if call.name in CHANGES and (errors or call not in reading)]
        return [call for call in changing if call.result >= 0]

    @cached_property
    def reading(self) -> list[Call]:
        """The calls that bring something from the folder."""
        self.reset()
        code, calls = traced_reading(self.launcher, self.case.words(self.folder), self.log)
        assert code == 0, self.log.read_text(encoding="utf-8")
        return [call for call in calls if call.result >= 0 and call.touches(self.folder)]

    def wrongs(self, what: str, whole: bool = False) -> Iterator[str]:
        """What is wrong after a blow; ``whole``: the command had said that it was done."""
        try:
            self.case.sound(self.folder)
        except Exception as problem:
            yield f"{what}: what is there is broken: {type(problem).__name__}: {problem}"
        there = tree(self.out) if whole else {}
        if whole and (lost := sorted(self.twice.keys() - there.keys())):
            yield f"{what}: it had said that it was done, and {lost} is lost"
        if whole and (other := [name for name, held in self.expected.items() if there.get(name, held) != held]):
            yield f"{what}: it had said that it was done, and {other} is another"
        code = self.launcher.wait(self.launcher.start(self.case.again(self.folder), self.log))
        if code:
            yield f"{what}: it cannot be gone on with: {self.log.read_text(encoding='utf-8')[-400:]}"
            return
        ended = tree(self.out)
        if other := [name for name, held in self.expected.items() if ended.get(name) != held]:
            yield f"{what}: it ends otherwise, in {other}"
        if more := sorted(ended.keys() - self.twice.keys()):
            yield f"{what}: more came out, {more}"
        if left := leftovers(self.folder):
            yield f"{what}: {left} is left behind"


def chosen(every: Sequence[Call], times: int | None, seed: int) -> list[Call]:
    """So many of the calls, in their order; where there are not so many, all of them, again and again."""
    times = len(every) if times is None else times
    whole, rest = divmod(times, len(every))
    return [
        *list(every) * whole,
        *(every[place] for place in sorted(random.Random(seed).sample(range(len(every)), rest))),
    ]


def kills(shooting: Range, times: int | None = None, seed: int = 0) -> Found:
    """The command killed (signal 9) as it makes a call, at so many of its calls.

    Where every call had its kill and more are asked for, what goes on after the first kill is killed too.
    """
    found, every, moments = Found(shooting.case.name), shooting.strikes(), random.Random(seed)
    for number, call in enumerate(chosen(every, times, seed)):
        shooting.reset()
        what, words = f"killed at {call.name} {call.ordinal}", shooting.case.words(shooting.folder)
        code = _killed(shooting, words, call)
        if number >= len(every) and code == -9:
            second = moments.choice(every)
            what, words = f"{what}, then at {second.name} {second.ordinal}", shooting.case.again(shooting.folder)
            code = _killed(shooting, words, second)
            found.blows += code == -9
        found.blows += 1
        found.broken_off += code == -9
        found.wrong += shooting.wrongs(what, whole=code == 0)
    return found


def _killed(shooting: Range, words: list[str], call: Call) -> int:
    return struck(shooting.launcher, words, shooting.log, call.name, call.ordinal, "signal=KILL")


def failures(shooting: Range, times: int | None = None, seed: int = 0) -> Found:
    """A call that fails: a broken disk, a full one, one that may only be read."""
    errors = random.Random(seed)
    return _failing(shooting, [(call, errors.choice(ERRORS)) for call in chosen(shooting.strikes(True), times, seed)])


def unread(shooting: Range, times: int | None = None, seed: int = 0) -> Found:
    """A call that brings nothing from the disk: it is broken just there."""
    return _failing(shooting, [(call, "EIO") for call in chosen(shooting.reading, times, seed)])


def _failing(shooting: Range, failing: list[tuple[Call, str]]) -> Found:
    found = Found(shooting.case.name)
    for call, error in failing:
        shooting.reset()
        words = shooting.case.words(shooting.folder)
        code = struck(shooting.launcher, words, shooting.log, call.name, call.ordinal, f"error={error}")
        found.blows += 1
        found.broken_off += code != 0
        what, said = f"{error} at {call.name} {call.ordinal}", shooting.log.read_text(encoding="utf-8")
        if ("Traceback" in said or code < 0) and not struck_elsewhere(said, shooting.folder):
            found.wrong.append(f"{what}: ended with {code} and no word of its own: {said[-400:]}")
        if code and (left := leftovers(shooting.folder)) and call.name not in ("unlinkat", "unlink", "rmdir"):
            found.wrong.append(f"{what}: {left} is left behind")
        found.wrong += shooting.wrongs(what, whole=code == 0)
    return found


def delays(shooting: Range, times: int | None = None, seed: int = 0) -> Found:
    """A disk that takes its time over every call: nothing breaks off, and all comes out as it would have."""
    found = Found(shooting.case.name)
    for _ in range(times or 1):
        shooting.reset()
        code = slowed(shooting.launcher, shooting.case.words(shooting.folder), shooting.log, SLOW_MICROSECONDS)
        found.blows += 1
        found.broken_off += code != 0
        if code:
            found.wrong.append(f"a slow disk: ended with {code}: {shooting.log.read_text(encoding='utf-8')[-400:]}")
        found.wrong += shooting.wrongs("a slow disk", whole=code == 0)
    return found


def struck_elsewhere(said: str, folder: Path) -> bool:
    """Whether a blow met a file of Python's instead of the command's.

    A call is known by its number, and processes that wait for each other make now more of them, now less. A module that
    cannot be looked at is not there to Python, or is one that holds nothing: then a name of it is missing.
    """
    places = re.findall(r"\[Errno \d+\] [^:\n]+: '(/[^']*)'", said)
    if not places:
        last = said.rpartition("Traceback")[2]
        return any(sign in last for sign in _OF_PYTHON)
    return not any(place.startswith(f"{folder}/") or place == f"{folder}" for place in places)


def power_cuts(shooting: Range, times: int | None = None, seed: int = 0) -> Found:
    """The power is cut between two calls, and the disk has forgotten what was not synced.

    Many cuts leave the same behind: each state is tried once, and the two after the last call always.
    """
    found = Found(shooting.case.name)
    shooting.reset()
    disk, states = Disk(shooting.folder), dict[int, tuple[str, dict[str, bytes | None]]]()
    for call in shooting.calls:
        disk.apply(call)
        for lost in LOST if call.name in CHANGES else ():
            left = disk.left(lost)
            states.setdefault(_key(left), (f"cut after {call.name} {call.ordinal}, {lost} lost", left))
    ends = {f"cut after it had ended, {lost} lost": disk.left(lost) for lost in LOST}
    for left in ends.values():
        states.pop(_key(left), None)
    between = list(states.values())
    if times is not None and times < len(between):
        between = [between[place] for place in sorted(random.Random(seed).sample(range(len(between)), times))]
    for what, left in [*between, *ends.items()]:
        _write(shooting.folder, left)
        found.blows += 1
        found.broken_off += what not in ends
        found.wrong += shooting.wrongs(what, whole=what in ends)
    return found


def agrees(shooting: Range) -> bool:
    """Whether the disk that is imagined holds, in the end, what the real one held."""
    shooting.reset()
    disk = Disk(shooting.folder)
    for call in shooting.calls:
        disk.apply(call)
    _write(shooting.folder, disk.left())
    return tree(shooting.out) == shooting.twice


def _key(left: dict[str, bytes | None]) -> int:
    return hash(frozenset(left.items()))


def _write(folder: Path, left: dict[str, bytes | None]) -> None:
    """Let a folder hold this and nothing else."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    for name, held in left.items():
        if held is None:
            (folder / name).mkdir()
        else:
            (folder / name).write_bytes(held)
