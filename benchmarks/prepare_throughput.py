"""Compare `prepare` with a bare `tokenizers` batch encode, and measure its peak memory on a large corpus.

    python benchmarks/prepare_throughput.py [--megabytes 1000] [--timed 80] [--news ../shared/data/news]

Throughput: `encode_batch_fast` and `prepare` encode the same documents with the same tokenizer and number of workers.
`encode_batch_fast` encodes from memory, in chunks, and returns the ids as lists: once with the saved normalizer, and
once without it on text that is already normalized. `prepare` also reads the files twice, normalizes, removes
duplicates, checks for leaks and writes shards. The results are medians of three rounds in one run. Memory: `prepare`
runs in its own process, which is observed from outside, including its children.
"""

import argparse
import itertools
import json
import os
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import tokenizers
from record import save

from kotha.text.corpus.documents import read_documents
from kotha.text.prepare import PrepareOptions, prepare
from kotha.text.stories.corpus import story
from kotha.text.tokenizer.tokenizer import Tokenizer
from kotha.text.tokenizer.trainers import train

WORKERS = os.cpu_count() or 1


def bare_encode(backend: tokenizers.Tokenizer, texts: list[str]) -> float:
    start = time.perf_counter()
    for first in range(0, len(texts), 500):
        for encoding in backend.encode_batch_fast(texts[first : first + 500], add_special_tokens=False):
            len(encoding.ids)
    return time.perf_counter() - start


def timed_prepare(path: Path, tokenizer: Tokenizer) -> float:
    with tempfile.TemporaryDirectory() as folder:
        start = time.perf_counter()
        prepare([path], tokenizer, Path(folder) / "data", PrepareOptions(workers=WORKERS))
        return time.perf_counter() - start


def throughput(name: str, path: Path, vocab_size: int, rounds: int) -> dict[str, Any]:
    texts = [document.text for document in read_documents([path])]
    megabytes = sum(len(text.encode()) for text in texts) / 1e6
    figures: dict[str, Any] = {"corpus": name, "megabytes": round(megabytes, 1), "workers": WORKERS}
    for kind in ("unigram", "bpe"):
        tokenizer = train(texts[:7000], kind, vocab_size)
        normalized = [tokenizer.normalize(text) for text in texts]
        bare = tokenizers.Tokenizer.from_str(tokenizer.backend.to_str())
        bare.normalizer = None
        seconds: dict[str, list[float]] = {"prepare": [], "bare": [], "with_normalizer": []}
        for _ in range(rounds):
            seconds["bare"].append(bare_encode(bare, normalized))
            seconds["with_normalizer"].append(bare_encode(tokenizer.backend, texts))
            seconds["prepare"].append(timed_prepare(path, tokenizer))
        median = {key: statistics.median(values) for key, values in seconds.items()}
        figures[kind] = {
            **{f"{key}_megabytes_per_second": round(megabytes / value, 2) for key, value in median.items()},
            "ratio_to_bare": round(median["bare"] / median["prepare"], 2),
            "ratio_to_encode_with_normalizer": round(median["with_normalizer"] / median["prepare"], 2),
        }
        print(name, kind, figures[kind], file=sys.stderr)
    return figures


def _stories_chunk(bounds: tuple[int, int]) -> str:
    rows = ({"text": story(1, index).text} for index in range(*bounds))
    return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)


def write_stories(path: Path, megabytes: float) -> int:
    """Write generated stories until the texts have this size; return the number of bytes."""
    written = 0
    with ProcessPoolExecutor(WORKERS) as pool, path.open("w", encoding="utf-8") as file:
        starts = itertools.count(0, 200)
        while written < megabytes * 1e6:
            bounds = [(start, start + 200) for start in itertools.islice(starts, 4 * WORKERS)]
            for chunk in pool.map(_stories_chunk, bounds):
                file.write(chunk)
                written += len(chunk.encode())
                if written >= megabytes * 1e6:
                    break
    return written


def resident(pid: int) -> int:
    """Return the memory of a process and its children in bytes; shared pages are counted in proportion (PSS)."""
    total = 0
    children = Path(f"/proc/{pid}/task/{pid}/children")
    try:
        for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
            if line.startswith("Pss:"):
                total += int(line.split()[1]) * 1024
        for child in children.read_text().split():
            total += resident(int(child))
    except OSError:  # the process has just ended
        return total
    return total


def peak_memory(path: Path, tokenizer: Path, out: Path) -> dict[str, Any]:
    command = [
        sys.executable,
        "-m",
        "kotha",
        "prepare",
        str(path),
        "--tokenizer",
        str(tokenizer),
        "--out",
        str(out),
        "--json",
    ]
    start = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    peak = 0
    done = threading.Event()

    def watch() -> None:
        nonlocal peak
        while not done.wait(0.1):
            peak = max(peak, resident(process.pid))

    watcher = threading.Thread(target=watch)
    watcher.start()
    output, _ = process.communicate()
    done.set()
    watcher.join()
    assert process.returncode == 0, "prepare failed"
    return {"peak_bytes": peak, "seconds": round(time.perf_counter() - start, 1), "report": json.loads(output)}


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--megabytes", type=float, default=1000)
    parser.add_argument("--timed", type=float, default=80, help="size of the stories to time, in megabytes")
    parser.add_argument("--vocabulary", type=int, nargs=2, default=[8192, 32_100], help="for stories, and for news")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--news", type=Path, default=Path("../shared/data/news"))
    options = parser.parse_args()
    figures: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as folder:
        small = Path(folder) / "stories-small.jsonl"
        write_stories(small, options.timed)
        figures["throughput"] = [throughput("stories", small, options.vocabulary[0], options.rounds)]
        if options.news.is_dir():
            figures["throughput"].append(
                throughput("news", options.news / "train.jsonl.zst", options.vocabulary[1], options.rounds)
            )
        large = Path(folder) / "stories.jsonl"
        size = write_stories(large, options.megabytes)
        texts = (document.text for document in itertools.islice(read_documents([small]), 3000))
        learned = train(texts, "unigram", options.vocabulary[0])
        tokenizer = learned.save(Path(folder) / "tokenizer")
        figures["memory"] = {"corpus_bytes": size, **peak_memory(large, tokenizer, Path(folder) / "data")}
        print(figures["memory"], file=sys.stderr)
    save("prepare_throughput", figures, ["tokenizers", "regex", "numpy"])


if __name__ == "__main__":
    main()
