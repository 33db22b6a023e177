"""Training speed compared with Hugging Face's GPT-2: the same sizes, data, optimizer and precision, in one run.

    python benchmarks/train_beside_huggingface.py [--device cpu|cuda] [--rounds 5] [--out FOLDER]

Both implementations train the course's model (58 million parameters, T 128, vocabulary 32,100, no dropout) with AdamW
and clipping, in turns, as ``kotha bench train`` does (see ``kotha.api.bench``). On a CPU a smaller model is used, with
3 layers of width 256 and a vocabulary of 8,192. On a GPU, both implementations are compiled. On a CPU in float32, the
matrix products of a step are also timed alone, which gives an upper bound on the speed with the same library.
"""

import argparse
import statistics
import sys
import time
from pathlib import Path
from typing import Any

import torch

sys.path.insert(0, str(Path(__file__).parent.parent / "src"))
sys.path.insert(0, str(Path(__file__).parent))

import record

from kotha.api.bench.workloads import bench_training
from kotha.model.presets import preset

# With GPT-2's own activation, so that the other model is an unchanged GPT-2.
MODEL = preset("bangla-58m").replace(dropout=0.0, attention_dropout=0.0, activation="gelu-tanh")
if not torch.cuda.is_available():
    MODEL = MODEL.replace(n_layers=3, d_model=256, d_ff=1024, n_heads=4, d_head=64, vocab_size=8192)


def compare(device: str, precision: str, batch_size: int, rounds: int) -> dict[str, Any]:
    """Measure both, in turns."""
    outcome = bench_training(MODEL, batch_size, precision, rounds, lambda stage, done, total: None, device)
    rates = {name: side["per_second"] for name, side in outcome.implementations().items()}
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


def bare_products(batch_size: int, rounds: int) -> int:
    """Return the tokens per second if a step consisted only of its matrix products."""
    rows, heads, width = batch_size * MODEL.context_length, batch_size * MODEL.n_heads, MODEL.d_model
    layer = [(width, 3 * width), (width, width), (width, MODEL.d_ff), (MODEL.d_ff, width)]
    shapes = [*(MODEL.n_layers * layer), (width, MODEL.vocab_size)]
    reads, weights = zip(*((torch.randn(rows, n), torch.randn(n, m)) for n, m in shapes), strict=True)
    slopes = [torch.randn(rows, m) for _, m in shapes]
    length, depth = MODEL.context_length, width // MODEL.n_heads
    queries, scores = torch.randn(heads, length, depth), torch.randn(heads, length, length)
    seconds = []
    for _ in range(rounds + 1):
        began = time.perf_counter()
        for x, weight, slope in zip(reads, weights, slopes, strict=True):
            x @ weight, slope @ weight.T, x.T @ slope
        for _ in range(MODEL.n_layers):  # scores and weighted sums, each once forwards and twice backwards
            for _ in range(3):
                queries @ queries.mT, scores @ queries
        seconds.append(time.perf_counter() - began)
    return round(rows / statistics.median(seconds[1:]))


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--rounds", type=int, default=None, help="number of rounds (default: 5 on a CPU, 7 on a GPU)")
    parser.add_argument("--out", type=Path, default=record.RESULTS, help="output folder")
    options = parser.parse_args()
    on_gpu = options.device == "cuda"
    rounds = options.rounds or (7 if on_gpu else 5)
    cases = [("bfloat16", 64), ("bfloat16", 512)] if on_gpu else [("float32", 16), ("bfloat16", 1)]
    rows = []
    for precision, batch_size in cases:
        rows.append(compare(options.device, precision, batch_size, rounds))
        if not on_gpu and precision == "float32":
            rows[-1]["bare_products_tokens_per_second"] = bare_products(batch_size, rounds)
        print(rows[-1], flush=True)
    record.save(f"train_beside_huggingface_{options.device}", rows, ["torch", "transformers"], options.out)


if __name__ == "__main__":
    main()
