"""Fuzz the loaders and report the results.

    python -m tests.fuzz [--targets tokenizer pictures] [--inputs 1000000] [--seed 0] [--jobs 2]
                         [--out FOLDER] [--wrong FOLDER]
    python -m tests.fuzz --again FOLDER

Each target starts with the seeds in ``tests/fuzz/seeds`` and mutates them. An input that reaches a new line of Kotha is
mutated further (coverage-guided fuzzing). An input is a finding if it is neither read nor rejected with a message, or
takes more than five seconds or a gigabyte. Findings are saved under ``--wrong``; ``--again`` replays a finding.
"""

import argparse
import multiprocessing
import os
import resource
import sys
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

from tests.fuzz.targets import TARGETS
from tests.fuzz.trial import Search

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))

import record

_TURN = 50_000  # inputs per round, shared by all targets, so that an interrupted search has tried every target


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--targets", nargs="+", choices=TARGETS, default=list(TARGETS))
    parser.add_argument("--inputs", type=int, default=1_000_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=len(os.sched_getaffinity(0)), help="targets at once; each core one")
    parser.add_argument("--out", type=Path, default=record.RESULTS)
    parser.add_argument("--wrong", type=Path, default=Path("build/fuzz"))
    parser.add_argument("--again", type=Path)
    given = parser.parse_args()
    if given.again is not None:
        TARGETS[given.again.name.rpartition("-")[0]].open()(given.again / "input")
        return 0
    import_all()
    searches = [Search(TARGETS[name], given.seed, given.wrong) for name in given.targets]
    shares = sum(search.target.share for search in searches)
    seconds = dict.fromkeys(given.targets, 0.0)
    turns = 1 + given.inputs // _TURN
    for turn in range(1, turns + 1):
        wanted = [-(-given.inputs * search.target.share * turn // (shares * turns)) for search in searches]
        for place, search, used in side_by_side(searches, wanted, seconds, given.jobs):
            searches[place] = search
            seconds[search.found.target] += used
        rows = [{**asdict(search.found), "seconds": round(seconds[search.found.target], 1)} for search in searches]
        save(given.seed, rows, given.out)
        print(f"turn {turn} of {turns}", file=sys.stderr, flush=True)
    for row in rows:
        result = f"{row['target']:18} {row['inputs']:7} inputs, {row['read']:7} read, {row['refused']:7} refused"
        print(
            f"{result}, {row['lines']:5} lines, {row['seconds']:7} s, wrong {sum(row['wrong'].values())}", *row["wrong"]
        )
    return int(any(row["wrong"] for row in rows))


def side_by_side(
    searches: list[Search], wanted: list[int], seconds: dict[str, float], jobs: int
) -> Iterator[tuple[int, Search, float]]:
    """Run each search up to a given number of inputs in forked processes; return its state and duration in seconds.

    The slowest searches start first, so that none runs alone at the end.
    """
    order = sorted(range(len(searches)), key=lambda place: -seconds[searches[place].found.target])
    with multiprocessing.get_context("fork").Pool(jobs) as pool:
        yield from pool.imap_unordered(_turn, [(place, searches[place], wanted[place]) for place in order])


def _turn(given: tuple[int, Search, int]) -> tuple[int, Search, float]:
    place, search, wanted = given
    began = _used()
    search.run(wanted - search.found.inputs)
    return place, search, _used() - began


def _used() -> float:
    """Return the CPU seconds that this process and its children have used."""
    return sum(sum(resource.getrusage(who)[:2]) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))


def save(seed: int, rows: list[dict[str, Any]], out: Path) -> None:
    """Save the current results."""
    totals = {key: sum(row[key] for row in rows) for key in ("inputs", "read", "refused", "kept")}
    totals["wrong"] = sum(sum(row["wrong"].values()) for row in rows)
    totals["most_memory"] = max(row["most_memory"] for row in rows)
    libraries = ["torch", "tokenizers", "safetensors", "numpy", "pillow", "pyarrow", "fastapi"]
    record.save("fuzz", {"seed": seed, **totals, "targets": rows}, libraries, out)


def import_all() -> None:
    """Import modules that each child would otherwise import; none of them starts a thread."""
    os.environ["TOKENIZERS_PARALLELISM"] = "false"
    os.environ["ARROW_DEFAULT_MEMORY_POOL"] = "system"  # Arrow's own pool reserves a gigabyte that it does not use
    import PIL.Image
    import pyarrow.parquet
    import pypdf

    import kotha.finetune
    import kotha.server.app
    from kotha.export.huggingface import import_
    from kotha.retrieval import index

    PIL.Image.init()
    assert all((pyarrow, pypdf, kotha, import_, index))


if __name__ == "__main__":
    sys.exit(main())
