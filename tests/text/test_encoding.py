"""Worker processes: Ctrl-C ends them silently at any moment, and none outlives its parent."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from tests.text.conftest import SENTENCES, trained

# One process is used for all moments, because starting Python takes the most time.
PROGRAM = """
import signal, sys
from kotha.text.prepare import PrepareOptions, prepare
from kotha.text.tokenizer.tokenizer import Tokenizer

if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.default_int_handler)  # background processes start without it
    corpus, tokenizer, *folders = sys.argv[1:]
    options = PrepareOptions(workers=2, duplicates="keep", leak_threshold=None)
    for out in folders:
        try:
            print("ready", flush=True)
            prepare([corpus], Tokenizer.load(tokenizer), out, options)
            print("done", flush=True)
        except KeyboardInterrupt:
            print("interrupted", flush=True)
"""
# Seconds after the first worker starts (it first imports modules, then works); None: before any worker exists.
MOMENTS = (None, 0.0, 0.05, 0.3)

pytestmark = pytest.mark.skipif(not Path("/proc").is_dir(), reason="counts the processes of a group in /proc")


# A script without a main guard: running it again in a worker would start everything again.
SCRIPT = """
import sys
import kotha

kotha.prepare([sys.argv[1]], sys.argv[2], sys.argv[3], workers=2)
print(__file__, __spec__)
"""


@pytest.fixture
def begin(tmp_path):
    """A function that starts several runs of prepare, one after another, in a separate process group."""
    (tmp_path / "program.py").write_text(PROGRAM, encoding="utf-8")
    lines = [json.dumps({"text": " ".join(SENTENCES) * 40}) for _ in range(60)]
    (tmp_path / "corpus.jsonl").write_text("\n".join(lines), encoding="utf-8")
    trained("bpe-words").save(tmp_path / "tokenizer")

    def begin(*folders: Path) -> subprocess.Popen[str]:
        for folder in folders:
            folder.mkdir()
        paths = [tmp_path / "program.py", tmp_path / "corpus.jsonl", tmp_path / "tokenizer"]
        return subprocess.Popen(
            [sys.executable, *paths, *(folder / "data" for folder in folders)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )

    return begin


def test_an_interrupt_at_any_moment_exits_silently_without_leftovers(begin, tmp_path):
    folders = [tmp_path / f"at-{moment}" for moment in MOMENTS]
    process = begin(*folders)
    for moment, folder in zip(MOMENTS, folders, strict=True):
        assert process.stdout.readline() == "ready\n"
        if moment is not None:
            wait_for_a_worker(process)
            time.sleep(moment)
        os.killpg(process.pid, signal.SIGINT)
        if (line := process.stdout.readline()) != "done\n":  # it may finish before the signal arrives
            assert line == "interrupted\n", moment
            assert list(folder.iterdir()) == [], moment
            assert len(_group(process.pid)) <= 2, moment  # the process and its resource tracker
    assert process.communicate(timeout=60) == ("", "")
    assert process.returncode == 0


def test_no_worker_outlives_a_parent_that_was_killed(begin, tmp_path):
    process = begin(tmp_path / "killed")
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
    process.communicate(timeout=60)  # Python may warn about unclosed resources
    assert left == []


def wait_for_a_worker(process: subprocess.Popen[str]) -> None:
    while len(_group(process.pid)) < 3:  # the process, its resource tracker, a worker
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


@pytest.mark.parametrize("piped", [False, True])
def test_a_script_without_a_guard_is_not_run_again_by_its_workers(tmp_path, piped):
    (tmp_path / "corpus.jsonl").write_text(
        "\n".join([json.dumps({"text": " ".join(SENTENCES)})] * 30), encoding="utf-8"
    )
    trained("bpe-words").save(tmp_path / "tokenizer")
    script = tmp_path / "script.py"
    script.write_text(SCRIPT, encoding="utf-8")
    words = [
        sys.executable,
        "-" if piped else script,
        tmp_path / "corpus.jsonl",
        tmp_path / "tokenizer",
        tmp_path / "out",
    ]
    done = subprocess.run(words, input=SCRIPT if piped else None, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["<stdin>" if piped else str(script), "None"]
    assert (tmp_path / "out" / "dataset.json").is_file()
