"""Worker processes: Ctrl-C at any moment ends them without a word, and none outlives its parent."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from tests.text.conftest import SENTENCES, trained

PROGRAM = """
import sys
from kotha.text.prepare import PrepareOptions, prepare
from kotha.text.tokenizer.tokenizer import Tokenizer

if __name__ == "__main__":
    corpus, tokenizer, out = sys.argv[1:]
    print("ready", flush=True)
    try:
        prepare([corpus], Tokenizer.load(tokenizer), out, PrepareOptions(workers=2, duplicates="keep"))
    except KeyboardInterrupt:
        sys.exit(130)
"""
# Seconds after the first worker is there; it takes its time to import, then works. None: before there is any.
MOMENTS = (None, 0.0, 0.02, 0.05, 0.1, 0.2, 0.4)

pytestmark = pytest.mark.skipif(not Path("/proc").is_dir(), reason="counts the processes of a group in /proc")


@pytest.fixture
def begin(tmp_path):
    """Start a preparation in a process group of its own, up to its first line."""
    (tmp_path / "program.py").write_text(PROGRAM, encoding="utf-8")
    lines = [json.dumps({"text": " ".join(SENTENCES) * 40}) for _ in range(60)]
    (tmp_path / "corpus.jsonl").write_text("\n".join(lines), encoding="utf-8")
    trained("bpe-words").save(tmp_path / "tokenizer")

    def begin(name: str) -> tuple[subprocess.Popen[str], Path]:
        out = tmp_path / name / "data"
        out.parent.mkdir()
        paths = [tmp_path / "program.py", tmp_path / "corpus.jsonl", tmp_path / "tokenizer", out]
        process = subprocess.Popen(
            [sys.executable, *paths],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        return process, out.parent

    return begin


def test_an_interrupt_at_any_moment_ends_silently_and_leaves_nothing(begin):
    for moment in MOMENTS:
        process, folder = begin(f"at-{moment}")
        if moment is not None:
            wait_for_a_worker(process)
            time.sleep(moment)
        os.killpg(process.pid, signal.SIGINT)
        out, errors = process.communicate(timeout=60)
        assert (out, errors) == ("", ""), moment
        if process.returncode != 0:  # 0: done before it came
            assert process.returncode == 130
            assert list(folder.iterdir()) == []


def test_no_worker_outlives_a_parent_that_was_killed(begin):
    process, _ = begin("killed")
    wait_for_a_worker(process)
    process.kill()
    process.wait(timeout=60)
    for _ in range(3000):
        left = _group(process.pid)
        if not left:
            break
        time.sleep(0.01)
    else:
        os.killpg(process.pid, signal.SIGKILL)
    process.communicate(timeout=60)  # what it had no time to close is for Python to mention
    assert left == []


def wait_for_a_worker(process: subprocess.Popen[str]) -> None:
    while len(_group(process.pid)) < 3:  # itself, what tracks its resources, a worker
        assert process.poll() is None, "it ended without workers"
        time.sleep(0.005)


def _group(leader: int) -> list[int]:
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                fields = (entry / "stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue
            if int(fields[2]) == leader and fields[0] != "Z":
                found.append(int(entry.name))
    return found
