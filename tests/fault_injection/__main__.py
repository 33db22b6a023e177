"""Inject faults into commands at their file-system calls and report the damage.

    python -m tests.fault_injection KIND [--cases train index] [--times N] [--seed S]

KIND is one of:

- ``kill``: SIGKILL at a call
- ``power-cut``: everything that was not synced is lost
- ``io-error``: a call that writes fails (EIO, ENOSPC, EROFS, EDQUOT)
- ``read-error``: a call that reads fails (EIO)
- ``slow``: every call is delayed

After each fault, no partial output is accepted as complete, no acknowledged data is lost, the command can be resumed
and produces the same bytes as an undisturbed run, and no temporary file is left. Without ``--times``, every call gets
one fault. With it, the faults are divided among the cases in proportion to their number of calls.
"""

import argparse
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path

from tests.fault_injection.cases import CASES
from tests.fault_injection.faults import Found, Harness, cut_power, fail_calls, fail_reads, kill_at_calls, slow_disk
from tests.fault_injection.system_calls import missing
from tests.launching import Launcher

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))

import record

KINDS: dict[str, Callable[[Harness, int | None, int], Found]] = {
    **{
        "kill": kill_at_calls,
        "power-cut": cut_power,
        "io-error": fail_calls,
        "read-error": fail_reads,
        "slow": slow_disk,
    },
}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("kind", choices=KINDS)
    parser.add_argument("--cases", nargs="+", choices=CASES, default=list(CASES))
    parser.add_argument("--times", type=int)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, default=record.RESULTS)
    given = parser.parse_args()
    if reason := missing():
        sys.exit(reason)
    rows: list[dict[str, object]] = []
    with tempfile.TemporaryDirectory(prefix="kotha-faults-") as folder, Launcher() as launcher:
        harnesses = [Harness(launcher, CASES[name], Path(folder) / name / "it") for name in given.cases]
        reads, errors = given.kind == "read-error", given.kind == "io-error"
        calls = [len(each.reading if reads else each.fault_points(errors)) for each in harnesses]
        for each, n_calls in zip(harnesses, calls, strict=True):
            times = None if given.times is None else max(1, round(given.times * n_calls / sum(calls)))
            began = time.monotonic()
            found = KINDS[given.kind](each, times, given.seed)
            rows.append({**asdict(found), "calls": n_calls, "seconds": round(time.monotonic() - began, 1)})
            line = f"{found.case:10} {n_calls:4} calls, {found.faults:5} faults, {found.interrupted:5} interrupted"
            print(f"{line}, wrong {len(found.wrong)}", *found.wrong, sep="\n  ", flush=True)
            record.save(
                f"fault_injection_{given.kind.replace('-', '_')}",
                {"seed": given.seed, "cases": rows},
                ["torch"],
                given.out,
            )
    return int(any(row["wrong"] for row in rows))


if __name__ == "__main__":
    sys.exit(main())
