"""A few blows for each command, always; thousands with ``make kills``, ``make cuts`` and ``make faults``."""

from collections.abc import Callable
from pathlib import Path

import pytest
from tests.fault_injection.blows import (
    Found,
    Range,
    agrees,
    chosen,
    delays,
    failures,
    kills,
    power_cuts,
    struck_elsewhere,
    unread,
)
from tests.fault_injection.calls import missing, read_calls
from tests.fault_injection.cases import CASES
from tests.fault_injection.disk import Disk
from tests.launching import Launcher

traceable = pytest.mark.skipif(bool(missing()), reason=missing() or "it can be traced")


@pytest.fixture(scope="module")
def shooting(launcher: Launcher, tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Range]:
    """Each case set up once."""
    ready: dict[str, Range] = {}

    def get(name: str) -> Range:
        if name not in ready:
            ready[name] = Range(launcher, CASES[name], tmp_path_factory.mktemp(name) / "it")
        return ready[name]

    return get


@traceable
@pytest.mark.parametrize(
    "name",
    [
        "prepare",
        "index",
        *(pytest.param(name, marks=pytest.mark.slow) for name in ("tokenizer", "train", "export", "gguf")),
    ],
)
@pytest.mark.parametrize("blows", [kills, power_cuts, failures, unread])
def test_after_a_blow_it_ends_as_if_nothing_had_happened(
    shooting: Callable[[str], Range], name: str, blows: Callable[[Range, int], Found]
) -> None:
    found = blows(shooting(name), 3)
    assert found.blows >= 3
    assert found.broken_off or (name == "index" and blows is unread), "what SQLite cannot read it often reads again"
    assert found.wrong == []


@traceable
def test_a_slow_disk_changes_nothing(shooting: Callable[[str], Range]) -> None:
    found = delays(shooting("prepare"))
    assert (found.blows, found.broken_off, found.wrong) == (1, 0, [])


@traceable
@pytest.mark.parametrize("name", ["prepare", "index"])
def test_the_disk_that_is_imagined_is_the_real_one(shooting: Callable[[str], Range], name: str) -> None:
    assert agrees(shooting(name)), "a way of writing was not seen"


# -- the disk that forgets, on calls written by hand ------------------------------------------------------------------


def calls_on(root: Path, *lines: str) -> list[str]:
    def coded(text: str) -> str:
        return "".join(f"\\x{byte:02x}" for byte in text.encode())

    here, file, name = coded(str(root)), coded(f"{root}/.part"), coded(f"{root}/whole")
    return [
        line.replace("HERE", here).replace("PART", file).replace("WHOLE", name).replace("TEXT", coded("কথা"))
        for line in lines
    ]


WRITTEN = (
    '7 openat(AT_FDCWD<HERE>, "PART", O_WRONLY|O_CREAT, 0666) = 3<PART>',
    '7 write(3<PART>, "TEXT", 9) = 9',
)
RENAMED = '7 renameat(AT_FDCWD<HERE>, "PART", AT_FDCWD<HERE>, "WHOLE") = 0'


@pytest.mark.parametrize(
    ("lines", "without_data", "without_names"),
    [
        (WRITTEN, {".part": b""}, {}),
        ((*WRITTEN, "7 fsync(3<PART>) = 0"), {".part": "কথা".encode()}, {}),
        ((*WRITTEN, RENAMED), {"whole": b""}, {}),
        ((*WRITTEN, RENAMED, "7 fsync(4<HERE>) = 0"), {"whole": b""}, {"whole": b""}),
        ((*WRITTEN, "7 fsync(3<PART>) = 0", RENAMED), {"whole": "কথা".encode()}, {}),
        ((*WRITTEN, "7 fsync(3<PART>) = -1 EIO (Input/output error)", RENAMED), {"whole": b""}, {}),
    ],
)
def test_what_was_not_synced_is_lost(
    tmp_path: Path, lines: tuple[str, ...], without_data: dict[str, bytes], without_names: dict[str, bytes]
) -> None:
    disk = Disk(tmp_path)
    for call in read_calls(calls_on(tmp_path, *lines)):
        disk.apply(call)
    assert disk.left("data") == without_data and disk.left("names") == without_names
    assert list(disk.left().values()) == ["কথা".encode()]


def test_a_call_that_another_interrupted_is_one_call() -> None:
    lines = ['7 write(3<>, "\\x61", 1 <unfinished ...>', "8 fsync(4<>) = 0", "7 <... write resumed>) = 1"]
    assert [(call.process, call.name, call.result) for call in read_calls(lines)] == [(8, "fsync", 0), (7, "write", 1)]


def test_as_many_are_chosen_as_were_asked_for() -> None:
    every = list(read_calls([f"7 fsync({number}<>) = 0" for number in range(5)]))
    assert chosen(every, None, 0) == every and len(chosen(every, 3, 0)) == 3 and len(chosen(every, 13, 0)) == 13


@pytest.mark.parametrize(
    ("said", "elsewhere"),
    [
        ("OSError: [Errno 5] Input/output error: '/it/run/config.json'", False),
        ("OSError: [Errno 5] Input/output error: '/lib/json/__init__.py'", True),
        ("OSError: [Errno 5] Input/output error", False),
        ("ImportError: cannot import name 'scanner' from partially initialized module 'json'", True),
        ("ModuleNotFoundError: No module named 'attr._next_gen'", True),
        ("AttributeError: module 'json' has no attribute 'loads'", True),
        ("AttributeError: 'NoneType' object has no attribute 'loads'", False),
        ('File "<frozen importlib._bootstrap_external>", line 1131, in get_data\nOSError: [Errno 5] It broke', True),
        ('File "<frozen importlib._bootstrap>", line 690, in _load_unlocked\nOSError: [Errno 5] It broke', False),
        ("KeyError: 'model'", False),
        ("ImportError: a module\n\nTraceback (most recent call last):\nKeyError: 'model'", False),
    ],
)
def test_only_a_blow_that_met_python_itself_is_excused(said: str, elsewhere: bool) -> None:
    assert struck_elsewhere(f"Traceback (most recent call last):\n{said}\n", Path("/it")) == elsewhere
