"""Peak memory and time of the next-token loss with its gradients: chunked and plain, each in its own process.

    python benchmarks/loss_memory.py [--tokens 8192] [--width 512] [--vocabulary 32100] [--only kotha]

The sizes are those of one step of the course's model. Memory is the increase in the process's peak resident memory over
the memory for its inputs. It includes the gradients that every variant must return (hidden and head, listed as
``floor``).
"""

import argparse
import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from record import save

VARIANTS = {
    "plain": "F.cross_entropy(F.linear(hidden, weight), targets)",
    "torch, no options": "F.linear_cross_entropy(hidden, weight, targets)",
    "torch, default options": "F.linear_cross_entropy(..., options=LinearCrossEntropyOptions())",
    "kotha": "kotha.model.loss.next_token_loss",
    "kotha, label smoothing 0.1": "kotha.model.loss.next_token_loss",
}


def measure(variant: str, n_tokens: int, width: int, vocabulary: int) -> dict[str, float]:
    import torch

    torch.manual_seed(0)
    hidden = torch.randn(n_tokens, width, requires_grad=True)
    weight = torch.randn(vocabulary, width).mul_(0.02).requires_grad_()
    targets = torch.randint(vocabulary, (n_tokens,))
    compute(variant, hidden[:8], weight[:8], targets[:8] % 8).backward()  # what the libraries load at first use
    hidden.grad = weight.grad = None
    before, start = high_water_bytes(), time.perf_counter()
    loss = compute(variant, hidden, weight, targets)
    loss.backward()
    return {
        "peak_bytes": high_water_bytes() - before,
        "seconds": round(time.perf_counter() - start, 3),
        "loss_nats": loss.item(),
        "gradient_norm": weight.grad.norm().item(),
    }


def compute(variant: str, hidden: Any, weight: Any, targets: Any) -> Any:
    import torch.nn.functional as functional
    from torch import nn

    from kotha.model.loss import next_token_loss

    match variant:
        case "plain":
            return functional.cross_entropy(functional.linear(hidden, weight), targets)
        case "torch, no options":
            return functional.linear_cross_entropy(hidden, weight, targets)
        case "torch, default options":
            options = nn.LinearCrossEntropyOptions()
            return functional.linear_cross_entropy(hidden, weight, targets, options=options)
        case "kotha":
            return next_token_loss(hidden, weight, targets)
    return next_token_loss(hidden, weight, targets, label_smoothing=0.1)


def high_water_bytes() -> int:
    """Return the peak resident memory of this process (Linux)."""
    lines = Path("/proc/self/status").read_text(encoding="utf-8").splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("VmHWM"))


def run(arguments: argparse.Namespace) -> dict[str, Any]:
    sizes = [str(arguments.tokens), str(arguments.width), str(arguments.vocabulary)]
    results = {}
    for variant in [arguments.only] if arguments.only else VARIANTS:
        command = [sys.executable, __file__, "--measure", variant, *sizes]
        answer = json.loads(subprocess.check_output(command, text=True, env={**os.environ, "OMP_NUM_THREADS": "1"}))
        results[variant] = {"what": VARIANTS[variant], **answer}
        print(f"{variant:34} {answer['peak_bytes'] / 2**20:8.0f} MiB {answer['seconds']:7.1f} s", file=sys.stderr)
    return results


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tokens", type=int, default=8192)
    parser.add_argument("--width", type=int, default=512)
    parser.add_argument("--vocabulary", type=int, default=32_100)
    parser.add_argument("--only", choices=VARIANTS)
    if sys.argv[1:2] == ["--measure"]:
        variant, *sizes = sys.argv[2:]
        print(json.dumps(measure(variant, *(int(size) for size in sizes))))
        return
    arguments = parser.parse_args()
    n_tokens, width, vocabulary = arguments.tokens, arguments.width, arguments.vocabulary
    figures = {
        "sizes": {"tokens": n_tokens, "width": width, "vocabulary": vocabulary, "dtype": "float32", "threads": 1},
        "all_logits_bytes": n_tokens * vocabulary * 4,
        "floor_bytes": (n_tokens + vocabulary) * width * 4,
        "variants": run(arguments),
    }
    save("loss_memory", figures, ["torch", "kotha"])


if __name__ == "__main__":
    main()
