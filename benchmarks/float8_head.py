"""The head's three products in eight bits (float8) instead of sixteen: does it pay, and does the loss notice?

    python benchmarks/float8_head.py --out FOLDER

Replaces the loss's chunk loop by one whose products are torch's ``_scaled_mm``: logits from E4M3 rows and head, the
gradients from a slope in E5M2, written as such by the kernel that makes it. A slope lies between -1 and 1 but for the
number of targets, so its scale is known beforehand. Speeds are those of the loop that ``kotha train`` runs, in turns
with the bfloat16 loss; ``learning.py`` tells with ``"float8": true`` what the loss says.
"""

import argparse
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent.parent / "src"))
sys.path.insert(0, str(Path(__file__).parent))

import torch
from torch import Tensor

from kotha.model import loss as wide

FINE, SLOPE = torch.float8_e4m3fn, torch.float8_e5m2
SLOPE_SCALE = 2.0**14  # the slope's largest number, 1, stands near the end of E5M2's range


def narrowed(matrix: Tensor) -> tuple[Tensor, Tensor]:
    scale = matrix.abs().amax().float().clamp(min=1e-12) / torch.finfo(FINE).max
    return (matrix.float() / scale).to(FINE), scale


def loss_and_slope(logits: Tensor, target: Tensor, counted: Tensor, n_words: int) -> tuple[Tensor, Tensor]:
    """Nats of the rows that count, summed, and the slope of each in eight bits, times SLOPE_SCALE."""
    words = torch.arange(logits.shape[-1], device=logits.device)
    numbers = logits.float().where(words < n_words, -torch.inf)
    normaliser = numbers.logsumexp(dim=-1, keepdim=True)
    losses = (normaliser - numbers.gather(1, target)) * counted
    slope = ((numbers - normaliser).exp() - (words == target).float()) * (counted * SLOPE_SCALE)
    return losses.sum(), slope.to(SLOPE)


def product(left: Tensor, right: Tensor, scale: Tensor, other: Tensor) -> Tensor:
    """left @ right.T: both lie along what is summed over."""
    found: Tensor = torch._scaled_mm(left, right.t(), scale_a=scale, scale_b=other, out_dtype=torch.bfloat16)
    return found


compiled: dict[str, Any] = {}


def fast(function: Any, tensor: Tensor) -> Any:
    if not tensor.is_cuda:
        return function
    return compiled.setdefault(function.__name__, torch.compile(function, dynamic=False))


class Float8Chunked(torch.autograd.Function):
    """As ``_Chunked``, without bias, label smoothing and teachers."""

    @staticmethod
    def forward(ctx: Any, rows: Tensor, weight: Tensor, bias: Any, targets: Tensor, *_: Any) -> Tensor:
        assert bias is None
        counted = targets != wide.IGNORED
        n_targets = counted.sum()
        total = torch.zeros((), device=rows.device)
        n_words = weight.shape[0]
        head = wide._filled_up(weight, rows.dtype)
        head8, head_scale = fast(narrowed, rows)(head)
        head8_turned = head8.t().contiguous()  # (C, V)
        slope_scale = (1 / (n_targets * SLOPE_SCALE)).float()
        grad_rows = torch.empty_like(rows)
        grad_weight = torch.zeros_like(head, dtype=torch.float32)
        size = wide._chunk_rows(rows.shape[0], weight)
        for start in range(0, rows.shape[0], size):
            here = slice(start, start + size)
            rows8, rows_scale = fast(narrowed, rows)(rows[here])
            logits = product(rows8, head8, rows_scale, head_scale)  # (n, V)
            target = targets[here].where(counted[here], 0)[:, None]
            nats, slope = fast(loss_and_slope, rows)(logits, target, counted[here][:, None].float(), n_words)
            total += nats / n_targets
            grad_rows[here] = product(slope, head8_turned, slope_scale, head_scale)
            grad_weight += product(slope.t().contiguous(), rows8.t().contiguous(), slope_scale, rows_scale)
        ctx.save_for_backward(grad_rows, grad_weight[:n_words].to(weight.dtype))
        return total

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        grad_rows, grad_weight = ctx.saved_tensors
        return grad_rows * grads[0], grad_weight * grads[0], None, None, None, None, None


def use(float8: bool, usual: Any = wide._Chunked) -> None:
    wide._Chunked = Float8Chunked if float8 else usual


def main() -> None:
    import record
    from train_speed import clean, ours

    from kotha.model.presets import preset
    from kotha.training.config import recipe

    parser = argparse.ArgumentParser()
    parser.add_argument("--out", type=Path, default=record.RESULTS)
    parser.add_argument("--steps", type=int, default=120)
    options = parser.parse_args()
    plain = recipe("course", steps=options.steps, evaluate_every=10_000, warmup_steps=10, gradient_clip=1.0)
    cases = {"58m-b512": ("bangla-58m", 512), "gpt2-b32": ("gpt2", 32), "58m-b64": ("bangla-58m", 64)}
    rows = []
    for name, (which, batch_size) in cases.items():
        model = preset(which).replace(dropout=0.0, attention_dropout=0.0)
        for float8 in (False, True):
            use(float8)
            found = ours(model, plain.change(batch_size=batch_size))
            rows.append({"case": name, "float8": float8, **found})
            print(rows[-1], flush=True)
            clean()
    record.save("float8_head", rows, ["torch"], options.out)


if __name__ == "__main__":
    main()
