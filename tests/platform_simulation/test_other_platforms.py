"""Commands on simulated Windows and macOS produce the same bytes as on Linux."""

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest
from tests.platform_simulation import simulated_platform

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the simulation needs Linux")

_ROOT = Path(__file__).parents[2]
_TINY = ["--preset", "pocket", "--set", "batch_size=4", "n_layers=1", "d_model=32", "n_heads=2", "context_length=32"]
_TRAIN = ["train", "data", "--out", "run", *_TINY, "--steps", "4", "--checkpoint-every", "2", "--set", "warmup_steps=1"]
COMMANDS: list[tuple[list[str], int]] = [
    (["corpus", "stories", "--documents", "60", "--out", "s.jsonl"], 0),
    (["tokenizer", "train", "s.jsonl", "--vocab-size", "400", "--out", "tok"], 0),
    (["prepare", "s.jsonl", "--tokenizer", "tok", "--out", "data", "--workers", "1"], 0),
    (["prepare", "s.jsonl", "--tokenizer", "tok", "--out", "data", "--workers", "1"], 1),  # data already exists
    (["prepare", "s.jsonl", "--tokenizer", "tok", "--out", "data", "--workers", "1", "--overwrite"], 0),
    (_TRAIN, 0),
    (_TRAIN, 1),
    ([*_TRAIN, "--resume", "--set", "steps=6"], 0),
    (["inside", "attention", "run", "--text", "আমি", "--html", "page.html"], 0),
    (["index", "s.jsonl", "--out", "asked.db"], 0),
]
# These are slow.
MORE: list[tuple[list[str], int]] = [
    (["presets"], 0),
    (["evaluate", "run", "--text", "আমি বাড়ি যাই।"], 0),
    (["doctor", "run", "--html", "doctor.html"], 0),
    (["generate", "run", "আমি", "--tokens", "8"], 0),
    (["export", "run", "--to", "hf", "--out", "hf"], 0),
    (["export", "run", "--to", "hf", "--out", "hf", "--overwrite"], 0),
    (["export", "run", "--to", "gguf", "--out", "model.gguf"], 0),
    (["ask", "--index", "asked.db", "নদী কোথায়?", "--json"], 0),
    (["plan", "--preset", "pocket", "--json"], 0),
]
# The system that Kotha's modules see: Windows has no /proc either, but the simulation reads it.
SEEN = {
    "linux": {"platform": "linux", "affinity": True, "proc": True},
    "windows": {"platform": "win32", "affinity": False, "proc": True},
    "macos": {"platform": "darwin", "affinity": False, "proc": False},
}
# Files whose content does not depend on time or location.
SAME = ["s.jsonl", "tok/*", "data/*", "run/checkpoints/step-*/*.safetensors", "page.html", "hf/*", "model.gguf"]


@dataclass
class SimulatedRun:
    """The results of all commands in a directory."""

    folder: Path
    codes: list[int]
    said: str
    one_file_there: list[str]

    def files(self) -> dict[str, bytes]:
        found = sorted(path for pattern in SAME for path in self.folder.glob(pattern) if path.is_file())
        return {path.relative_to(self.folder).as_posix(): path.read_bytes() for path in found}


def python(*words: str) -> subprocess.CompletedProcess[str]:
    """Run a separate Python process, because a platform must be simulated before Kotha is imported."""
    environment = {**os.environ, "PYTHONPATH": f"{_ROOT / 'src'}:{_ROOT}", "OMP_NUM_THREADS": "1"}
    words = (sys.executable, *words)
    ran = subprocess.run(words, capture_output=True, text=True, encoding="utf-8", cwd=_ROOT, env=environment)
    assert ran.returncode == 0, ran.stderr
    return ran


def run_on(system: str, folder: Path, commands: list[list[str]]) -> SimulatedRun:
    ran = python("-m", "tests.platform_simulation.simulated_platform", system, str(folder), json.dumps(commands))
    result = ('{"seen"', '{"command"', '{"one_file')
    rows = [json.loads(line) for line in ran.stdout.splitlines() if line.startswith(result)]
    assert rows.pop(0)["seen"] == SEEN[system], "the simulation is not active"
    return SimulatedRun(folder, [row["code"] for row in rows[:-1]], ran.stderr, rows[-1]["one_file_there"])


@pytest.fixture(scope="module")
def here(tmp_path_factory: pytest.TempPathFactory) -> SimulatedRun:
    return run_on("linux", tmp_path_factory.mktemp("here"), [words for words, _ in COMMANDS])


@pytest.mark.parametrize("system", ["windows", pytest.param("macos", marks=pytest.mark.slow)])
def test_the_same_work_ends_in_the_same_bytes(system: str, here: SimulatedRun, tmp_path: Path) -> None:
    compare(run_on(system, tmp_path, [words for words, _ in COMMANDS]), here, COMMANDS)


@pytest.mark.slow
@pytest.mark.parametrize("system", ["windows", "macos"])
def test_more_work_ends_in_the_same_bytes(system: str, tmp_path: Path) -> None:
    commands, places = [*COMMANDS, *MORE], [tmp_path / "there", tmp_path / "here"]
    for place in places:
        place.mkdir()
    there, here = (
        run_on(each, place, [words for words, _ in commands])
        for each, place in zip((system, "linux"), places, strict=True)
    )
    compare(there, here, commands)


def compare(there: SimulatedRun, here: SimulatedRun, commands: list[tuple[list[str], int]]) -> None:
    assert there.codes == here.codes == [code for _, code in commands], there.said
    assert "Traceback" not in there.said and there.one_file_there == []
    mine, others = here.files(), there.files()
    assert len(mine) > 10 and set(others) == set(mine)
    assert [name for name, what in mine.items() if others[name] != what] == []
    assert not list(there.folder.rglob(".*kotha-*")), "nothing is left behind, locks included"


@pytest.mark.parametrize("system", ["windows", "macos"])
def test_every_module_can_be_imported(system: str, tmp_path: Path) -> None:
    program = f"""
import importlib, pkgutil
from pathlib import Path
import torch
from tests.platform_simulation import simulated_platform
simulated_platform.activate({system!r}, Path({str(tmp_path)!r}))
import kotha
for each in pkgutil.walk_packages(kotha.__path__, "kotha."):
    if each.name != "kotha.__main__":
        importlib.import_module(each.name)
        print(each.name)
"""
    assert len(python("-c", program).stdout.splitlines()) > 300


@pytest.mark.slow
@pytest.mark.parametrize("platform", ["win32", "darwin"])
def test_no_name_is_used_that_another_system_lacks(platform: str) -> None:
    """typeshed records which names exist on which platform."""
    words = [sys.executable, "-m", "mypy", "--platform", platform]
    ran = subprocess.run(words, capture_output=True, text=True, cwd=_ROOT)
    assert ran.returncode == 0, ran.stdout


def test_what_is_open_stays_where_it_is_on_windows(tmp_path: Path) -> None:
    """Test the simulation itself: each of these calls succeeds on Linux."""
    program = f"""
import json, os, sys
from pathlib import Path
from tests.platform_simulation import simulated_platform
simulated_platform.activate("windows", Path({str(tmp_path)!r}))
os.chdir({str(tmp_path)!r})
import kotha.storage.atomic, kotha.storage.locks
locks = kotha.storage.locks
found = {{"fcntl": hasattr(locks, "fcntl"), "platform": kotha.storage.atomic.sys.platform, "here": sys.platform}}
def tried(what):
    try:
        what()
    except OSError as error:
        return type(error).__name__
    return "went well"
Path("a").write_text("নদী", encoding="utf-8")
Path("b").write_text("x\\n", encoding="utf-8")
with open("a") as file:
    found["replace"] = tried(lambda: os.replace("b", "a"))
    found["unlink"] = tried(lambda: Path("a").unlink())
found["rename"] = tried(lambda: Path("b").rename("a"))
found["colon"] = tried(lambda: Path("a:b").write_text("x", encoding="utf-8"))
found["nul"] = tried(lambda: Path("nul.txt").mkdir())
found["folder"] = tried(lambda: kotha.storage.atomic.os.open(".", os.O_RDONLY))
found["line"] = Path("b").read_bytes().decode()
held = kotha.storage.locks.Lock(Path("b"))
try:
    kotha.storage.locks.Lock(Path("b"))
except kotha.storage.locks.InUseError as error:
    found["held"] = str(error)
held.release()
held.release()
kotha.storage.locks.Lock(Path("b")).release()
found["left"] = sorted(os.listdir("."))
print(json.dumps(found))
"""
    assert json.loads(python("-c", program).stdout) == {
        "fcntl": False,
        "platform": "win32",
        "here": "linux",
        "replace": "PermissionError",
        "unlink": "PermissionError",
        "rename": "FileExistsError",
        "colon": "OSError",
        "nul": "OSError",
        "folder": "PermissionError",
        "line": "x\r\n",
        "held": "b is in use: another process is writing there; wait until it ends, stop it, or choose another path",
        "left": ["a", "b"],
    }


def test_two_names_that_are_one_elsewhere_are_noticed(tmp_path: Path) -> None:
    files = simulated_platform._Files(tmp_path, windows=False)
    (tmp_path / "Model.json").touch()
    files._check_new(tmp_path / "model.json")
    files._check_new(tmp_path / "other.json")
    assert files.broken == ["'model.json' and 'Model.json' are one file there"]
