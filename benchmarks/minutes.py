"""Measure `kotha train DATA --minutes M` for several M: bits per byte as a function of the training time.

    python benchmarks/minutes.py DATA [--minutes 1 3 10 30] [--seeds 0] [--name minutes] [--work FOLDER]
                                 [--set NAME=VALUE]

Only the time is set, so this measures the defaults. The models are scored on the held-out documents, with windows that
advance by half a context, as in `kotha evaluate`. `spent` is the training time; `seconds` is the time of the whole
command.
"""

import argparse
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent.parent / "src"))
sys.path.insert(0, str(Path(__file__).parent))

import record

import kotha


def trained(data: Path, minutes: float, seed: int, out: Path, settings: dict[str, Any]) -> dict[str, Any]:
    """Train for this number of minutes, and score the model."""
    began = time.perf_counter()
    run = kotha.train(data, minutes=minutes, seed=seed, out=out, **settings)
    seconds, summary, config = time.perf_counter() - began, run.summary, run.model.config
    score = run.model.evaluate(data, baselines="none")
    return {
        "minutes": minutes,
        "seed": seed,
        "seconds": round(seconds, 1),
        "spent": round(summary["seconds"], 1),
        "steps": summary["steps"],
        "tokens": summary["tokens"],
        "layers": config.n_layers,
        "width": config.d_model,
        "bits_per_byte": score.bits_per_byte,
    }


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("data", type=Path)
    parser.add_argument("--minutes", type=float, nargs="+", default=[1, 3, 10, 30])
    parser.add_argument("--seeds", type=int, nargs="+", default=[0])
    parser.add_argument("--name", default="minutes")
    parser.add_argument("--work", type=Path)
    parser.add_argument("--set", nargs="*", default=[])
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        found = []
        for minutes in options.minutes:
            for seed in options.seeds:
                out = (options.work or Path(folder)) / f"{minutes:g}-{seed}"
                found.append(trained(options.data, minutes, seed, out, record.from_words(options.set)))
                print(found[-1], flush=True)
                record.save(options.name, {"data": options.data.name, "runs": found}, ["torch"])


if __name__ == "__main__":
    main()
