"""Ctrl-C at any moment of any command: one line, exit code 130, no partial output, unless the command has ended."""

import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.launching import Launcher

from kotha.cli.main import main

STOPPED = "kotha: stopped; no partial output was left behind"
INDEXED = "kotha: stopped; {index} has the documents indexed so far; run the same command again to add the others"
pytestmark = pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="sees in /proc when a program listens")
# The arguments of each command; OUT is the command's own folder, and the other files are fixtures.
COMMANDS = {
    "stories": "corpus stories --documents 2000 --out OUT/s.jsonl",
    "inspect": "corpus inspect STORIES --json",
    "tokenizer": "tokenizer train STORIES --vocab-size 900 --out OUT/tok",
    "card": "tokenizer card TOKENIZER --text STORIES --html OUT/card.html",
    "view": "tokenizer view TOKENIZER কথা",
    "prepare": "prepare STORIES --tokenizer TOKENIZER --out OUT/data --workers 1",
    "workers": "prepare STORIES --tokenizer TOKENIZER --out OUT/data --workers 2",
    "plan": "plan --preset pocket --html OUT/plan.html",
    "train": "train DATA --preset mini --recipe classic --set batch_size=2 --steps 200 --out OUT/run",
    "evaluate": "evaluate RUN STORIES --json",
    "doctor": "doctor RUN",
    "compare": "compare RUN",
    "generate": "generate RUN কথা --tokens 300",
    "chat": "chat RUN --plain",
    "attention": "inside attention RUN --text কথা --html OUT/attention.html",
    "worksheet": "inside worksheet --html OUT/worksheet.html",
    "hf": "export RUN --to hf --out OUT/hf",
    "onnx": "export RUN --to onnx --out OUT/onnx",
    "gguf": "export RUN --to gguf --out OUT/gguf",
    "index": "index STORIES --out OUT/index --passage-length 100",
    "help": "--help",
}


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    folder = tmp_path_factory.mktemp("made")
    names = {"STORIES": "s.jsonl", "TOKENIZER": "tok", "DATA": "data", "RUN": "run"}
    paths = {name: str(folder / file) for name, file in names.items()}
    for words in (
        "corpus stories --documents 120 --out STORIES",
        "tokenizer train STORIES --vocab-size 700 --out TOKENIZER",
        "prepare STORIES --tokenizer TOKENIZER --out DATA",
        # A layout that every export target supports.
        "train DATA --preset bangla-modern --set n_layers=1 d_model=32 n_heads=2 d_ff=64 context_length=16 "
        "--set batch_size=2 micro_batch_size=2 --steps 2 --out RUN",
    ):
        assert main(fill_in(words, paths)) == 0
    return paths


def fill_in(words: str, paths: dict[str, str]) -> list[str]:
    for name, path in paths.items():
        words = words.replace(name, path)
    return words.split()


Start = Callable[[list[str], Path], tuple[int, Callable[[], int]]]
"""Starts a command with stderr in a file; returns its process id, and a function that waits for the exit code."""


def from_a_shell(words: list[str], log: Path) -> tuple[int, Callable[[], int]]:
    """Start a command as a shell does: with Ctrl-C enabled, in its own process group."""
    with log.open("w", encoding="utf-8") as errors:
        process = subprocess.Popen(
            [sys.executable, "-m", "kotha", *words],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=errors,
            start_new_session=True,
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
        )
    return process.pid, process.wait


@pytest.fixture
def imported(launcher: Launcher) -> Start:
    """Starts commands in a Python process that has imported everything."""

    def start(words: list[str], log: Path) -> tuple[int, Callable[[], int]]:
        process = launcher.start(words, log, errors_only=True)
        return process, lambda: launcher.wait(process)

    return start


def listens(process: int) -> bool:
    """Whether the signal handlers are installed, or the process has ended."""
    lines = Path(f"/proc/{process}/status").read_text(encoding="ascii").splitlines()
    status = dict(line.split(":\t", 1) for line in lines if ":\t" in line)
    return status["State"].startswith("Z") or bool(int(status["SigCgt"], 16) >> (signal.SIGTERM - 1) & 1)


def interrupt(start: Start, words: list[str], log: Path, moment: float) -> tuple[int, str]:
    """Press Ctrl-C a given number of seconds after the handlers are installed; return the exit code and stderr."""
    process, wait = start(words, log)
    while not listens(process):
        time.sleep(0.001)
    time.sleep(moment)
    os.killpg(process, signal.SIGINT)
    return wait(), log.read_text(encoding="utf-8")


def check(start: Start, name: str, paths: dict[str, str], out: Path, moment: float) -> bool:
    """Interrupt a command at a given moment and check the result; return whether it was stopped."""
    out.mkdir()
    words = fill_in(COMMANDS[name], {**paths, "OUT": str(out)})
    code, result = interrupt(start, words, out.with_name("log"), moment)
    about = f"{name} after {moment:.3f} s: exit {code}\n{result}"
    assert code in (0, 130), about
    assert "Traceback" not in result and "Error" not in result, about
    left = sorted(str(path.relative_to(out)) for path in out.rglob("*"))
    assert not [path for path in left if ".kotha-" in path], f"{about}\n{left}"
    if code == 130:
        said, of_index = result.splitlines()[-1], INDEXED.format(index=out / "index")
        assert said in (STOPPED, of_index) or "resume with: kotha train" in said, about
        assert said != of_index or left == ["index"], f"{about}\n{left}"
        assert result.count("kotha: stopped") == 1, about
        kept = {"train": "run"}.get(name)  # a saved run can be resumed
        assert not left or (kept and f"{kept}/config.json" in left) or whole(name, left), f"{about}\n{left}"
    return code == 130


def whole(name: str, left: list[str]) -> bool:
    """Whether the result was already complete."""
    last = {"prepare": "data/dataset.json", "workers": "data/dataset.json", "hf": "hf/config.json"}
    last |= {"onnx": "onnx/kotha.json", "gguf": "gguf/model-f16.gguf", "tokenizer": "tok/tokenizer.json"}
    return last.get(name) in left or len(left) == 1


def moments(start: Start, names: list[str], count: int, made: dict[str, str], tmp_path: Path) -> None:
    """Interrupt commands at random moments, one after the other, until ``count`` were stopped.

    A command that had already ended is interrupted earlier the next time, so the loop terminates on any machine.
    """
    chance, lengths, stopped, number = random.Random(), dict[str, float](), 0, 0
    while stopped < count:
        number, name = number + 1, names[number % len(names)]
        if name not in lengths:
            begun = time.monotonic()
            _, wait = start(fill_in(COMMANDS[name], {**made, "OUT": str(tmp_path / f"whole-{name}")}), tmp_path / "log")
            assert wait() == 0, (name, (tmp_path / "log").read_text(encoding="utf-8"))
            lengths[name] = time.monotonic() - begun
        moment = chance.uniform(0, lengths[name])
        if check(start, name, made, tmp_path / str(number), moment):
            stopped += 1
        else:  # it had already ended, because the machine was busier during the first, timed run
            lengths[name] = moment
        assert number < 10 * count, f"{stopped} of {number} were stopped"


def test_ctrl_c_at_some_moments(imported: Start, made: dict[str, str], tmp_path: Path) -> None:
    moments(imported, ["stories", "workers", "generate", "index"], 8, made, tmp_path)


def test_ctrl_c_while_a_command_starts(made: dict[str, str], tmp_path: Path) -> None:
    moments(from_a_shell, ["view"], 2, made, tmp_path)


@pytest.mark.slow
def test_ctrl_c_at_hundreds_of_moments(made: dict[str, str], tmp_path: Path) -> None:
    moments(from_a_shell, list(COMMANDS), 350, made, tmp_path)
