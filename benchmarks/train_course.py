"""Train on a data folder without the command line, for a GPU machine with torch and few other packages.

    python benchmarks/train_course.py DATA OUT [--preset bangla-58m] [--recipe course] [--set steps=10000 …]
                                      [--bring-weights [bfloat16|float32]]

The script writes config.json, metrics.jsonl and summary.json to OUT; checkpoints are stored in a temporary folder. With
--bring-weights, the script also writes the best model to OUT, as bfloat16 by default, in parts of 16 MB for machines
that limit the size of files they return; `cat OUT/best.[0-9]* > model.safetensors` joins them.
"""

import argparse
import ast
import shutil
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent.parent / "src"))

import torch

from kotha.artifacts import model_folder as bundle
from kotha.artifacts.run_folder import RunFolder
from kotha.model.presets import preset
from kotha.text.shards import Dataset
from kotha.training.config import recipe
from kotha.training.start import start_run

PART_BYTES = 16_000_000


def setting(text: str) -> tuple[str, Any]:
    name, _, value = text.partition("=")
    try:
        return name, ast.literal_eval(value)
    except (ValueError, SyntaxError):
        return name, value


def bring_weights(run: Path, out: Path, kind: torch.dtype) -> None:
    best = bundle.load(run)
    bundle.save(run / "brought", best.model.to(kind), best.tokenizer)
    data = (run / "brought" / bundle.WEIGHTS_FILE).read_bytes()
    for part, start in enumerate(range(0, len(data), PART_BYTES)):
        (out / f"best.{part:02}").write_bytes(data[start : start + PART_BYTES])
    shutil.copy(run / "brought" / bundle.CONFIG_FILE, out / "best-config.json")


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("data", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--preset", default="bangla-58m")
    parser.add_argument("--recipe", default="course")
    parser.add_argument("--set", nargs="*", type=setting, default=[], metavar="NAME=VALUE")
    parser.add_argument("--model", nargs="*", type=setting, default=[], metavar="NAME=VALUE")
    parser.add_argument("--bring-weights", nargs="?", choices=["bfloat16", "float32"], const="bfloat16")
    options = parser.parse_args()
    data = Dataset(options.data)
    model = preset(options.preset).replace(**dict(options.model))
    config = recipe(options.recipe, **dict(options.set))
    with tempfile.TemporaryDirectory() as folder:
        run = RunFolder(Path(folder) / "run")
        start = time.perf_counter()

        def tell(event: dict[str, Any]) -> None:
            if "validation" in event:
                found = event["validation"]
                seconds = time.perf_counter() - start
                print(
                    f"{seconds:6.0f} s  step {event['step']:6d}  validation {found['loss_nats']:.4f} nats  "
                    f"{found['bits_per_byte']:.4f} bits/byte",
                    flush=True,
                )

        summary = start_run(model, config, data, run, on_event=tell).run()
        print(summary)
        options.out.mkdir(parents=True, exist_ok=True)
        for name in ("config.json", "metrics.jsonl", "summary.json"):
            shutil.copy(run.path / name, options.out / name)
        if options.bring_weights:
            bring_weights(run.path, options.out, getattr(torch, options.bring_weights))


if __name__ == "__main__":
    main()
