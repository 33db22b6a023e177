"""Ctrl-C at any moment of any command: one line, exit 130, nothing left; or it had ended before."""

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from kotha.cli.main import main

STOPPED = "kotha: stopped; nothing half-written was left behind"
pytestmark = pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="sees in /proc when a program listens")
# What each command is given; OUT is a folder of its own, and the rest was made before.
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
        # Of a layout that every door of export lets through.
        "train DATA --preset bangla-modern --set n_layers=1 d_model=32 n_heads=2 d_ff=64 context_length=16 "
        "--set batch_size=2 --steps 2 --out RUN",
    ):
        assert main(fill_in(words, paths)) == 0
    return paths


def fill_in(words: str, paths: dict[str, str]) -> list[str]:
    for name, path in paths.items():
        words = words.replace(name, path)
    return words.split()


def start(words: list[str]) -> subprocess.Popen[str]:
    """A command as a shell starts it: listening to Ctrl-C, in a group of its own."""
    return subprocess.Popen(
        [sys.executable, "-m", "kotha", *words],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )


def listens(process: subprocess.Popen[str]) -> bool:
    """Whether its first line has run: Python catches SIGTERM only when asked to."""
    status = Path(f"/proc/{process.pid}/status").read_text(encoding="ascii")
    caught = next(line for line in status.splitlines() if line.startswith("SigCgt"))
    return bool(int(caught.split()[1], 16) >> (signal.SIGTERM - 1) & 1)


def interrupt(words: list[str], moment: float) -> tuple[int, str]:
    """Press Ctrl-C so many seconds after the first line; exit code and what was said."""
    process = start(words)
    try:
        while process.poll() is None and not listens(process):
            time.sleep(0.001)
        time.sleep(moment)
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGINT)
        _, said = process.communicate(timeout=300)
    finally:
        if process.poll() is None:
            process.kill()
    return process.returncode, said


def check(name: str, paths: dict[str, str], out: Path, moment: float) -> int:
    """Interrupt a command at a moment; whether it was stopped."""
    out.mkdir()
    code, said = interrupt(fill_in(COMMANDS[name], {**paths, "OUT": str(out)}), moment)
    about = f"{name} after {moment:.3f} s: exit {code}\n{said}"
    assert code in (0, 130), about
    assert "Traceback" not in said and "Error" not in said, about
    left = sorted(str(path.relative_to(out)) for path in out.rglob("*"))
    assert not [path for path in left if ".partial" in path or ".old" in path], f"{about}\n{left}"
    if code == 130:
        assert said.splitlines()[-1] == STOPPED or "go on with: kotha train" in said.splitlines()[-1], about
        assert said.count("kotha: stopped") == 1, about
        kept = {"train": "run"}.get(name)  # what it has saved can be gone on with
        assert not left or (kept and f"{kept}/config.json" in left) or whole(name, left), f"{about}\n{left}"
    return code == 130


def whole(name: str, left: list[str]) -> bool:
    """Whether a result was in its place already, and whole."""
    last = {"prepare": "data/dataset.json", "workers": "data/dataset.json", "hf": "hf/config.json"}
    last |= {"onnx": "onnx/kotha.json", "gguf": "gguf/model-f16.gguf", "tokenizer": "tok/tokenizer.json"}
    return last.get(name) in left or len(left) == 1


def moments(names: list[str], count: int, made: dict[str, str], tmp_path: Path) -> int:
    """Interrupt each command at random moments of its whole time, one after the other; how many were stopped."""
    chance, lengths, stopped = random.Random(), {}, 0
    for number in range(count):
        name = names[number % len(names)]
        if name not in lengths:
            begun = time.monotonic()
            whole_time = start(
                fill_in(COMMANDS[name], {**made, "OUT": str(tmp_path / f"whole {name}".replace(" ", "-"))})
            )
            whole_time.communicate()
            assert whole_time.returncode == 0, name
            lengths[name] = time.monotonic() - begun
        stopped += check(name, made, tmp_path / str(number), chance.uniform(0, lengths[name]))
    return stopped


def test_ctrl_c_at_some_moments(made: dict[str, str], tmp_path: Path) -> None:
    assert moments(["view", "stories", "workers", "generate"], 20, made, tmp_path) > 5


@pytest.mark.slow
def test_ctrl_c_at_five_hundred_moments(made: dict[str, str], tmp_path: Path) -> None:
    assert moments(list(COMMANDS), 500, made, tmp_path) > 200
