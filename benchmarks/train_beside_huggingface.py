"""Training speed beside Hugging Face's GPT-2: the same sizes, data, optimizer and precision, in one run.

    python benchmarks/train_beside_huggingface.py [--device cpu|cuda] [--out FOLDER]

Both train the course's model (58 million parameters, T 128, vocabulary 32,100, no dropout; on a CPU one of 3 layers of
256 and 8,192 words, so that it ends) with AdamW and clipping, turn by turn, as ``kotha bench train`` measures: see
``kotha.bench``. On a GPU both are compiled.
"""

import argparse
import sys
from pathlib import Path
from typing import Any

import torch

sys.path.insert(0, str(Path(__file__).parent.parent / "src"))
sys.path.insert(0, str(Path(__file__).parent))

import record

from kotha.bench.sides import bench_training
from kotha.model.presets import preset
from kotha.train.device.precision import choose_arithmetic

# With GPT-2's own activation, so that the other side is GPT-2 as its users have it.
MODEL = preset("bangla-58m").replace(dropout=0.0, attention_dropout=0.0, activation="gelu-tanh")
if not torch.cuda.is_available():
    MODEL = MODEL.replace(n_layers=3, d_model=256, d_ff=1024, n_heads=4, d_head=64, vocab_size=8192)


def compare(device: str, precision: str, batch_size: int, rounds: int) -> dict[str, Any]:
    """Both, turn by turn."""
    outcome = bench_training(
        MODEL, batch_size, choose_arithmetic(precision, device), rounds, lambda stage, done, total: None
    )
    rates = {name: side["per_second"] for name, side in outcome.sides().items()}
    seconds = {"ours": outcome.seconds["kotha"], "peer": outcome.seconds["transformers"]}
    peaks = {"ours": outcome.figures["gpu_bytes"]["kotha"], "peer": outcome.figures["gpu_bytes"]["transformers"]}
    return {
        "device": device,
        "precision": precision,
        "compiled": device == "cuda",
        "batch_size": batch_size,
        "ours_tokens_per_second": round(rates["kotha"]),
        "peer_tokens_per_second": round(rates["transformers"]),
        "ratio": round(rates["kotha"] / rates["transformers"], 3),
        "spread": {name: [round(outcome.amount / each) for each in sorted(some)] for name, some in seconds.items()},
        **({"peak_bytes": peaks} if device == "cuda" else {}),
    }


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--out", type=Path, default=record.RESULTS, help="folder of the result")
    options = parser.parse_args()
    on_gpu = options.device == "cuda"
    cases = [("bfloat16", 64), ("bfloat16", 512)] if on_gpu else [("float32", 16), ("bfloat16", 1)]
    rows = []
    for precision, batch_size in cases:
        rows.append(compare(options.device, precision, batch_size, 7 if on_gpu else 5))
        print(rows[-1], flush=True)
    record.save(f"train_beside_huggingface_{options.device}", rows, ["torch", "transformers"], options.out)


if __name__ == "__main__":
    main()
