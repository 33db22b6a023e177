"""Compare planned with measured memory: real training steps on random tokens, each model in its own process.

    python benchmarks/memory_plan.py [--device cuda] [--eager] [--only gpt2]

A step is the same as in the training loop: forward pass, loss and backward pass of two micro-batches, clipping,
optimizers, average, and then a validation batch. The peak memory is read after each part, so that errors in a plan can
be located.
"""

import argparse
import json
import subprocess
import sys
from contextlib import nullcontext
from dataclasses import asdict
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent.parent / "src"))

from record import save

MIB = 1 << 20
# preset, recipe, micro-batch, context
CASES: dict[str, list[tuple[str, str, int, int]]] = {
    "cpu": [
        ("pocket", "modern", 16, 256),
        ("bangla-58m", "course", 16, 128),
        ("bangla-modern", "modern", 4, 512),
        ("bert-base", "classic", 4, 128),
        ("gpt2", "classic", 1, 1024),
    ],
    "cuda": [
        ("pocket", "modern", 32, 256),
        ("bangla-58m", "course", 64, 128),
        ("bangla-modern", "modern", 32, 512),
        ("gpt2", "classic", 8, 1024),
        ("gpt2", "classic", 32, 1024),
        ("bert-base", "classic", 32, 512),
        ("gpt2-medium", "classic", 16, 1024),
    ],
}


def measure(case: tuple[str, str, int, int], device: str, compiled: bool) -> dict[str, Any]:
    """Measure one model in this process: the planned memory, and the peak memory in each part of a step."""
    import torch

    from kotha.model.family import build
    from kotha.model.presets import preset
    from kotha.training.config import recipe
    from kotha.training.device import choose_arithmetic
    from kotha.training.optim import Average, Optimizers
    from kotha.training.plan.memory import MemoryConditions, largest_micro_batch, plan_memory
    from kotha.training.tasks.task import POSITIONS_AT_ONCE

    name, recipe_name, size, context = case
    arithmetic = choose_arithmetic("bfloat16" if device == "cuda" else "float32", device)
    config, training = preset(name), recipe(recipe_name, batch_size=2 * size)
    number: Any = arithmetic.precision
    where: Any = device
    how = MemoryConditions(context, number, where, compiled)
    plan = plan_memory(config, training, size, how)
    largest = largest_micro_batch(config, training, 1 << 50, how)
    assert largest == training.batch_size
    torch.manual_seed(0)
    torch.set_float32_matmul_precision("high")
    model = build(config).to(arithmetic.device).train()
    optimizers = Optimizers(model, training)
    average = Average(model, training.ema_decay) if training.ema_decay is not None else None
    if compiled:
        model.hidden = torch.compile(model.hidden)
    stages = Stages(device)
    stages.note("start")
    for _ in range(2):
        take_step(model, optimizers, average, arithmetic, training, (size, context), stages)
    size = max(1, POSITIONS_AT_ONCE[device] // context)
    look(model, average, arithmetic, (size, context), stages)
    measured = max(stages.peaks.values())
    planned = asdict(plan)
    return {"predicted": planned, "measured": measured, "ratio": planned["total"] / measured, "stages": stages.peaks}


def take_step(
    model: Any, optimizers: Any, average: Any, arithmetic: Any, training: Any, shape: tuple[int, int], stages: "Stages"
) -> None:
    import torch
    from torch import nn

    scaler = torch.amp.GradScaler(enabled=False)
    optimizers.zero_grad()
    for _ in range(2):
        with arithmetic.autocast():
            rows, targets = read(model, arithmetic, shape)
            stages.note("forward")
            loss = loss_of(model, rows, targets)
            del rows
            stages.note("loss")
        torch.autograd.backward(loss / 2)
        stages.note("backward")
    nn.utils.clip_grad_norm_(model.parameters(), training.gradient_clip or float("inf"))
    optimizers.step(scaler)
    stages.note("step")
    if average is not None:
        average.update(model)
        stages.note("average")


def look(model: Any, average: Any, arithmetic: Any, shape: tuple[int, int], stages: "Stages") -> None:
    import torch

    from kotha.model.loss import token_losses
    from kotha.training.optim import swapped_weights

    model.eval()
    averaged = swapped_weights(model, average.tensors) if average is not None else nullcontext()
    with averaged, torch.no_grad(), arithmetic.autocast():
        rows, targets = read(model, arithmetic, shape)
        stages.note("validation: body")
        token_losses(rows, model.head.weight, targets, model.head.bias)
        stages.note("validation: loss")


def read(model: Any, arithmetic: Any, shape: tuple[int, int]) -> tuple[Any, Any]:
    """Return the inputs to the head for random tokens, and the targets."""
    import torch

    from kotha.model.bert import BERT
    from kotha.training.tasks.masked_words import CHOSEN

    size, context = shape
    tokens = torch.randint(0, model.config.vocab_size, (size, context + 1)).to(arithmetic.device)
    rows, targets = model.hidden(tokens[:, :-1]), tokens[:, 1:]
    if isinstance(model, BERT):
        guessed = int(CHOSEN * context)
        rows, targets = model.guess(rows[:, :guessed]), targets[:, :guessed]
    return rows, targets


def loss_of(model: Any, rows: Any, targets: Any) -> Any:
    from kotha.model.loss import next_token_loss

    return next_token_loss(rows, model.head.weight, targets, model.head.bias)


class Stages:
    """The peak memory in each part of a step, over all steps."""

    def __init__(self, device: str) -> None:
        self.device, self.peaks = device, {}

    def note(self, name: str) -> None:
        import torch

        if self.device == "cuda":
            torch.cuda.synchronize()
            most = torch.cuda.max_memory_allocated()
            torch.cuda.reset_peak_memory_stats()
        else:
            lines = Path("/proc/self/status").read_text(encoding="utf-8").splitlines()
            most = next(int(line.split()[1]) * 1024 for line in lines if line.startswith("VmHWM"))
            Path("/proc/self/clear_refs").write_text("5", encoding="utf-8")  # reset the high-water mark
        self.peaks[name] = max(most, self.peaks.get(name, 0))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", choices=["cpu", "cuda"], default="cpu")
    parser.add_argument("--eager", action="store_true", help="do not compile on a GPU")
    parser.add_argument("--only", help="only this preset")
    parser.add_argument("--measure", type=json.loads, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    compiled = arguments.device == "cuda" and not arguments.eager
    if arguments.measure:
        print(json.dumps(measure(tuple(arguments.measure), arguments.device, compiled)))
        return
    rows = []
    flags = ["--device", arguments.device, *(["--eager"] if arguments.eager else [])]
    for case in CASES[arguments.device]:
        if arguments.only in (None, case[0]):
            rows.append(run(case, flags, compiled))
    if arguments.only is None:
        suffix = arguments.device + ("_eager" if arguments.eager and arguments.device == "cuda" else "")
        save(f"memory_plan_{suffix}", rows, ["torch"])


def run(case: tuple[str, str, int, int], flags: list[str], compiled: bool) -> dict[str, Any]:
    command = [sys.executable, __file__, *flags, "--measure", json.dumps(case)]
    found = json.loads(subprocess.check_output(command, text=True).splitlines()[-1])
    name, recipe_name, size, context = case
    parts = {key: value // MIB for key, value in found["predicted"].items() if isinstance(value, int)}
    stages = {key: value // MIB for key, value in found["stages"].items()}
    print(
        f"{name} {size}x{context}: planned {parts['total']:,} MiB, measured {found['measured'] // MIB:,} MiB, ", end=""
    )
    print(
        f"ratio {found['ratio']:.3f} ({found['predicted']['moment']})\n  planned  {parts}\n  measured {stages}",
        flush=True,
    )
    shape = {"preset": name, "recipe": recipe_name, "micro_batch_size": size, "context_length": context}
    precision = "bfloat16" if "cuda" in flags else "float32"
    return {**shape, "device": flags[1], "precision": precision, "compiled": compiled, **found}


if __name__ == "__main__":
    main()
