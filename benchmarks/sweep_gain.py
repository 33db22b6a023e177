"""Does what a sweep found hold for other seeds?

    kotha sweep DATA … --out SWEEP --json > found.json
    python benchmarks/sweep_gain.py DATA found.json [--seeds 1 2 3] [--out FOLDER]

A sweep has one seed for each trial, so its best trial is also the luckiest. Here the default recipe and the best one
are trained again with seeds that the sweep never saw, by the lines that it printed.
"""

import argparse
import json
import shlex
import statistics
import sys
import tempfile
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent.parent / "src"))
sys.path.insert(0, str(Path(__file__).parent))

import record

from kotha.artifacts.run_folder import RunFolder
from kotha.text.shards import Dataset
from kotha.training.plan.rules import EVALUATIONS
from kotha.training.settings import TrainRequest
from kotha.training.start import train_run
from kotha.training.sweep.space import as_changes


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("data")
    parser.add_argument("found", type=Path)
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2, 3])
    parser.add_argument("--out", type=Path, default=record.RESULTS)
    asked = parser.parse_args()
    found = json.loads(asked.found.read_text(encoding="utf-8"))
    sides = {"default": found["default_values"], "best": found["best"]["values"]}
    reached: dict[str, list[float]] = {name: [] for name in sides}
    for seed in asked.seeds:
        for name, values in sides.items():
            changes = {**found["changes"], **as_changes(values), "seed": seed}
            if "steps" in changes:  # as often as the sweep's trials were looked at
                changes.setdefault("evaluate_every", -(-changes["steps"] // EVALUATIONS))
            reached[name].append(_trained(asked.data, found, changes))
            print(name, seed, reached[name][-1], file=sys.stderr, flush=True)
    states = [each["state"] for each in found["trials"]]
    steps = [each["steps"] or 0 for each in found["trials"]]
    figures = {
        "sweep": shlex.join(shlex.split(found["command"])[3:]),
        "trials": len(states),
        "stopped_early": states.count("pruned"),
        "steps_of_all_trials": sum(steps),
        "steps_without_stopping": len(steps) * max(steps),
        "importance": found["importance"],
        "searched": found["searched"],
        **{
            name: {
                "values": values,
                "in_the_sweep": found[name]["value"],
                "seeds": reached[name],
                "mean": statistics.mean(reached[name]),
            }
            for name, values in sides.items()
        },
        "gain_in_the_sweep": 1 - found["best"]["value"] / found["default"]["value"],
        "gain_on_other_seeds": 1 - statistics.mean(reached["best"]) / statistics.mean(reached["default"]),
        "unit": found["unit"],
    }
    record.save("sweep_gain", figures, ["torch", "optuna"], asked.out)


def _trained(data: str, found: dict[str, Any], changes: dict[str, Any]) -> float:
    """Bits a byte of the best model of one training."""
    with tempfile.TemporaryDirectory() as folder:
        request = TrainRequest(found["preset"], found["recipe"], found["minutes"], changes=changes)
        return float(train_run(Dataset(data), RunFolder(Path(folder) / "run"), request)["bits_per_byte"])


if __name__ == "__main__":
    main()
