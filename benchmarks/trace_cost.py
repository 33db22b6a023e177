"""Measure the cost of tracing: forward passes of a model before it is traced, after a trace, and during a trace.

    python benchmarks/trace_cost.py [--preset bangla-58m] [--rounds 15] [--out FOLDER]

All three are measured in turn in one process, so that other load slows them equally, and medians are reported. The
first two should be equal, because the hooks are removed at the end of the `with` block.
"""

import argparse
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path

import torch

sys.path.insert(0, str(Path(__file__).parent.parent / "src"))
sys.path.insert(0, str(Path(__file__).parent))

import record

from kotha.inside.trace import trace
from kotha.model.gpt import GPT
from kotha.model.presets import preset


def seconds(work: Callable[[], object]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


@torch.no_grad()
def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--preset", default="bangla-58m")
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--out", type=Path, default=record.RESULTS)
    options = parser.parse_args()
    config = preset(options.preset)
    tokens = torch.randint(0, config.vocab_size, (4, config.context_length))
    torch.manual_seed(0)
    fresh = GPT(config).eval()
    traced_before = GPT(config).eval()
    with trace(traced_before):
        traced_before(tokens)

    def traced(places: list[str] | None) -> None:
        with trace(traced_before, hook_points=places):
            traced_before(tokens)

    ways: dict[str, Callable[[], object]] = {
        "never traced": lambda: fresh(tokens),
        "traced before": lambda: traced_before(tokens),
        "traced now, weights alone": lambda: traced(["*.attention.weights"]),
        "traced now, every place": lambda: traced(None),
    }
    for work in ways.values():
        work()
    times: dict[str, list[float]] = {name: [] for name in ways}
    for _ in range(options.rounds):
        for name, work in ways.items():
            times[name].append(seconds(work))
    medians = {name: statistics.median(each) for name, each in times.items()}
    rows = {
        name: {"seconds": round(value, 5), "ratio": round(value / medians["never traced"], 3)}
        for name, value in medians.items()
    }
    for name, row in rows.items():
        print(f"{name:28} {row['seconds']:.4f} s  {row['ratio']:.3f}")
    figures = {"preset": options.preset, "tokens": list(tokens.shape), "ways": rows}
    record.save("trace_cost", figures, ["torch", "kotha"], options.out)


if __name__ == "__main__":
    main()
