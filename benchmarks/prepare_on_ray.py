"""Measure `prepare` on Ray: throughput and memory by the number of workers, and equal shards after a worker is killed.

    python benchmarks/prepare_on_ray.py [--gigabytes 10] [--workers 1 2 4] [--folder DIR] [--stop-after 1]

The text is generated: documents consist of random sentences from the built-in stories, so that no two are alike and
validation documents do not leak into the training text. It is prepared by one process without Ray, then by a Ray
cluster on this machine with two workers, one of which is killed (SIGKILL) while it works, and then with each number of
workers. Each run is the command itself in its own process, observed from outside: memory is the proportional set size
(PSS) of the command, of each worker, and of all processes started by Ray, sampled twice a second. On a busy machine the
elapsed time is unreliable, so CPU seconds and the load are reported too. The folder needs space for the text and one
data folder. A folder given by ``--folder`` keeps the text and the results, and the same command continues with the
remaining runs (``--stop-after`` limits their number).
"""

import argparse
import contextlib
import hashlib
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from record import save

from kotha.text.stories.corpus import story
from kotha.text.tokenizer.trainers import train

SENTENCES_A_DOCUMENT = 40
STORIES = 4000


def sentences() -> list[str]:
    """Return the distinct sentences of some stories."""
    texts = (story(1, index).text for index in range(STORIES))
    found = (sentence.strip() + "।" for text in texts for sentence in text.split("।") if sentence.strip())
    return list(dict.fromkeys(found))


def write_text(path: Path, pool: list[str], gigabytes: float) -> dict[str, int]:
    """Write documents until the file has this size; the documents are the same each time."""
    chooser, size, documents = random.Random(0), 0, 0
    with path.open("wb", buffering=1 << 20) as file:
        while size < gigabytes * 1e9:
            text = " ".join(chooser.choices(pool, k=SENTENCES_A_DOCUMENT))
            size += file.write(json.dumps({"text": text}, ensure_ascii=False).encode() + b"\n")
            documents += 1
    return {"file_bytes": size, "documents": documents, "different_sentences": len(pool)}


def about_text(folder: Path, gigabytes: float) -> dict[str, int]:
    """Create the text and its tokenizer if they do not exist, and return a description of the text."""
    told = folder / "text.json"
    if not told.exists():
        start = time.perf_counter()
        train((story(1, index).text for index in range(3000)), "unigram", 8192).save(folder / "tokenizer")
        told.write_text(json.dumps(write_text(folder / "text.jsonl", sentences(), gigabytes)))
        print(told.read_text(), f"written in {time.perf_counter() - start:.0f} s", file=sys.stderr, flush=True)
    found: dict[str, int] = json.loads(told.read_text())
    if not 0 <= found["file_bytes"] - gigabytes * 1e9 < 1e6:
        sys.exit(f"{folder} contains a text of a different size; choose another folder")
    return found


def family(pid: int) -> dict[int, str]:
    """Return a process and all of its descendants, each with its name."""
    found: dict[int, str] = {}
    left = [pid]
    while left:
        process = Path(f"/proc/{left.pop()}")
        try:
            found[int(process.name)] = process.joinpath("cmdline").read_bytes().split(b"\0")[0].decode()
            left += [int(each) for task in process.glob("task/*/children") for each in task.read_text().split()]
        except OSError:  # the process has just ended
            continue
    return found


def is_worker(name: str) -> bool:
    return name.startswith("ray::RemoteHand")


def memory(pid: int) -> int:
    """Return the memory of a process in bytes; pages shared with other processes are counted in proportion."""
    try:
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    except OSError:
        return 0
    return sum(int(line.split()[1]) * 1024 for line in lines if line.startswith("Pss:"))


def processor_seconds(pid: int) -> float:
    """Return the CPU seconds that a process has used so far."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2].split()
    except OSError:
        return 0.0
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


class Watch:
    """Observes a running command; ``act`` is called at each sample with the elapsed seconds and the processes."""

    def __init__(self, pid: int, act: Callable[[float, dict[int, str]], None]) -> None:
        self.peaks = {"command": 0, "worker": 0, "all": 0}
        self._spent: dict[int, float] = {}
        self._pid, self._act, self._start = pid, act, time.perf_counter()
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._look)
        self._thread.start()

    def _look(self) -> None:
        while not self._done.wait(0.5):
            names = family(self._pid)
            sizes = {pid: memory(pid) for pid in names}
            workers = [size for pid, size in sizes.items() if is_worker(names[pid])]
            now = {"command": sizes.get(self._pid, 0), "worker": max(workers, default=0), "all": sum(sizes.values())}
            self._spent |= {pid: max(self._spent.get(pid, 0.0), processor_seconds(pid)) for pid in names}
            self.peaks = {name: max(peak, now[name]) for name, peak in self.peaks.items()}
            self._act(time.perf_counter() - self._start, names)

    def end(self) -> dict[str, Any]:
        self._done.set()
        self._thread.join()
        peaks = {f"peak_bytes_of_{name}": peak for name, peak in self.peaks.items()}
        return {"processor_seconds": round(sum(self._spent.values()), 1), **peaks}


def run(text: Path, tokenizer: Path, out: Path, how: list[str], kill_after: float | None = None) -> dict[str, Any]:
    """Run the command once; the first worker that has used ``kill_after`` CPU seconds is killed."""
    command = [sys.executable, "-m", "kotha", "prepare", str(text), "--tokenizer", str(tokenizer), "--out", str(out)]
    killed: list[float] = []

    def kill_one(seconds: float, names: dict[int, str]) -> None:
        for worker in [pid for pid, name in names.items() if is_worker(name)]:
            if kill_after is not None and processor_seconds(worker) > kill_after and not killed:
                os.kill(worker, signal.SIGKILL)
                killed.append(round(seconds, 1))

    start, load = time.perf_counter(), os.getloadavg()[0]
    process = subprocess.Popen([*command, *how, "--json"], stdout=subprocess.PIPE, text=True)
    watch = Watch(process.pid, kill_one)
    output, _ = process.communicate()
    seconds = time.perf_counter() - start
    peaks = watch.end()
    assert process.returncode == 0, "prepare failed"
    assert (kill_after is None) == (not killed), "no worker was running, so none was killed"
    report = json.loads(output)
    found = {
        "how": " ".join(how),
        "seconds": round(seconds, 1),
        "megabytes_per_second": round(text.stat().st_size / 1e6 / seconds, 2),
        **peaks,
        "load_before_and_at_the_end": [round(load, 1), round(os.getloadavg()[0], 1)],
        "sha256": {path.name: digest(path) for path in sorted(out.iterdir())},
        "train_documents": report["train_documents"],
        "validation_documents": report["validation_documents"],
        "leaked": report["leaked"],
    }
    shutil.rmtree(out)
    return found | ({"killed_after_seconds": killed[0]} if killed else {})


def digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--gigabytes", type=float, default=10)
    parser.add_argument("--workers", type=int, nargs="+", default=[1, 2, 4])
    parser.add_argument("--folder", type=Path, help="folder with enough space (default: a temporary folder)")
    parser.add_argument(
        "--no-kill", action="store_true", help="omit the run in which a worker is killed (for a small text)"
    )
    parser.add_argument("--stop-after", type=int, help="maximum number of remaining runs to do")
    options = parser.parse_args()
    with contextlib.ExitStack() as stack:
        folder = options.folder or Path(stack.enter_context(tempfile.TemporaryDirectory()))
        folder.mkdir(parents=True, exist_ok=True)
        written = about_text(folder, options.gigabytes)
        tokenizer = folder / "tokenizer"
        on_ray = [["--on", "ray", "--workers", str(count)] for count in options.workers]
        killed = [] if options.no_kill else [["--on", "ray", "--workers", "2"]]
        ways = [["--workers", "1"], *killed, *on_ray]
        seen = folder / "seen.json"
        runs: list[dict[str, Any]] = json.loads(seen.read_text()) if seen.exists() else []
        last = len(ways) if options.stop_after is None else min(len(ways), len(runs) + options.stop_after)
        for place in range(len(runs), last):
            shutil.rmtree(folder / "data", ignore_errors=True)
            # Two workers share the encoding, which is about two thirds of the work; this is half of one worker's share.
            kill_after = runs[0]["processor_seconds"] / 6 if place == 1 and not options.no_kill else None
            runs.append(run(folder / "text.jsonl", tokenizer, folder / "data", ways[place], kill_after))
            told = {name: value for name, value in runs[-1].items() if name != "sha256"}
            print(told, file=sys.stderr, flush=True)
            seen.write_text(json.dumps(runs))
    hashes = [each.pop("sha256") for each in runs]
    assert all(each == hashes[0] for each in hashes), "the shards differ"
    if len(runs) == len(ways):
        figures = {"text": written, "runs": runs, "sha256_of_every_run": hashes[0]}
        save("prepare_on_ray", figures, ["ray", "tokenizers", "regex", "numpy"])


if __name__ == "__main__":
    main()
