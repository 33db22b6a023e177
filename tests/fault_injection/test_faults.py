"""A few faults for each command; ``make fault-injection KIND=kill`` injects thousands."""

from collections.abc import Callable
from pathlib import Path

import pytest
from tests.fault_injection.cases import CASES
from tests.fault_injection.faults import (
    Found,
    Harness,
    cut_power,
    fail_calls,
    fail_reads,
    hit_python_itself,
    kill_at_calls,
    sample_calls,
    simulation_matches,
    slow_disk,
)
from tests.fault_injection.simulated_disk import Disk
from tests.fault_injection.system_calls import missing, read_calls
from tests.launching import Launcher

traceable = pytest.mark.skipif(bool(missing()), reason=missing() or "tracing works")


@pytest.fixture(scope="module")
def harness(launcher: Launcher, tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Harness]:
    """Return the harness of a case; each harness is set up once."""
    ready: dict[str, Harness] = {}

    def get(name: str) -> Harness:
        if name not in ready:
            ready[name] = Harness(launcher, CASES[name], tmp_path_factory.mktemp(name) / "it")
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
@pytest.mark.parametrize("inject", [kill_at_calls, cut_power, fail_calls, fail_reads])
def test_a_command_recovers_from_every_fault(
    harness: Callable[[str], Harness], name: str, inject: Callable[[Harness, int], Found]
) -> None:
    found = inject(harness(name), 3)
    assert found.faults >= 3
    assert found.interrupted or (name == "index" and inject is fail_reads), "SQLite retries failed reads"
    assert found.wrong == []


@traceable
def test_a_slow_disk_changes_nothing(harness: Callable[[str], Harness]) -> None:
    found = slow_disk(harness("prepare"))
    assert (found.faults, found.interrupted, found.wrong) == (1, 0, [])


@traceable
@pytest.mark.parametrize("name", ["prepare", "index"])
def test_the_simulated_disk_matches_the_real_one(harness: Callable[[str], Harness], name: str) -> None:
    assert simulation_matches(harness(name)), "the simulation missed a write"


# -- the simulated disk, on handwritten calls ------------------------------------------------------------------


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
def test_unsynced_data_is_lost(
    tmp_path: Path, lines: tuple[str, ...], without_data: dict[str, bytes], without_names: dict[str, bytes]
) -> None:
    disk = Disk(tmp_path)
    for call in read_calls(calls_on(tmp_path, *lines)):
        disk.apply(call)
    assert disk.left("data") == without_data and disk.left("names") == without_names
    assert list(disk.left().values()) == ["কথা".encode()]


def test_an_interrupted_call_is_parsed_as_one() -> None:
    lines = ['7 write(3<>, "\\x61", 1 <unfinished ...>', "8 fsync(4<>) = 0", "7 <... write resumed>) = 1"]
    assert [(call.process, call.name, call.result) for call in read_calls(lines)] == [(8, "fsync", 0), (7, "write", 1)]


def test_the_requested_number_of_calls_is_sampled() -> None:
    every = list(read_calls([f"7 fsync({number}<>) = 0" for number in range(5)]))
    assert (
        sample_calls(every, None, 0) == every
        and len(sample_calls(every, 3, 0)) == 3
        and len(sample_calls(every, 13, 0)) == 13
    )


@pytest.mark.parametrize(
    ("expected", "elsewhere"),
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
def test_only_faults_in_python_itself_are_excused(expected: str, elsewhere: bool) -> None:
    assert hit_python_itself(f"Traceback (most recent call last):\n{expected}\n", Path("/it")) == elsewhere
