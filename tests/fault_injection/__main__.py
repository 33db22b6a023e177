"""Put commands under fire, and say what came of it.

    python -m tests.fault_injection kills|cuts|faults|reads|delays [--cases train index] [--times N] [--seed S]

``kills``: killed (signal 9) as they make a call of the file system. ``cuts``: the power is cut between two calls, and
what was not synced is lost. ``faults``: a call fails (a broken disk, a full one, one that may only be read).
``reads``: a call that reads fails (a disk that is broken just there).
``delays``: every call takes a while. After each blow: nothing half passes for whole, nothing that was acknowledged is
lost, the command can be gone on with and ends byte for byte as if nothing had happened, and nothing is left behind.
Without ``--times`` every call is struck once; with it the blows are shared among the cases by how many calls each
makes.
"""

import argparse
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path

from tests.fault_injection.blows import Found, Range, delays, failures, kills, power_cuts, unread
from tests.fault_injection.calls import missing
from tests.fault_injection.cases import CASES
from tests.launching import Launcher

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))

import record

KINDS: dict[str, Callable[[Range, int | None, int], Found]] = {
    **{"kills": kills, "cuts": power_cuts, "faults": failures, "reads": unread, "delays": delays},
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
        sys.exit(f"fire: {reason}")
    rows: list[dict[str, object]] = []
    with tempfile.TemporaryDirectory(prefix="kotha-fire-") as place, Launcher() as launcher:
        ranges = [Range(launcher, CASES[name], Path(place) / name / "it") for name in given.cases]
        reads, faults = given.kind == "reads", given.kind == "faults"
        calls = [len(each.reading if reads else each.strikes(faults)) for each in ranges]
        for each, n_calls in zip(ranges, calls, strict=True):
            times = None if given.times is None else max(1, round(given.times * n_calls / sum(calls)))
            began = time.monotonic()
            found = KINDS[given.kind](each, times, given.seed)
            rows.append({**asdict(found), "calls": n_calls, "seconds": round(time.monotonic() - began, 1)})
            said = f"{found.case:10} {n_calls:4} calls, {found.blows:5} blows, {found.broken_off:5} broke it off"
            print(f"{said}, wrong {len(found.wrong)}", *found.wrong, sep="\n  ", flush=True)
            record.save(f"fire_{given.kind}", {"seed": given.seed, "cases": rows}, ["torch"], given.out)
    return int(any(row["wrong"] for row in rows))


if __name__ == "__main__":
    sys.exit(main())
