"""Where the time of a training step goes on a GPU: its kernels, by kind, and how long none was running.

    python benchmarks/step_profile.py DATA OUT [--only NAME]

DATA is a prepared folder with a vocabulary of 8,192. The step is that of ``kotha train``, recorded and all; teachers
are models that have learned nothing, which take as long as others.
"""

import argparse
import json
import re
import sys
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

import torch

sys.path.insert(0, str(Path(__file__).parent.parent / "src"))

from kotha.artifacts import model_folder as bundle
from kotha.artifacts.run_folder import RunFolder
from kotha.model.family import build
from kotha.model.presets import preset
from kotha.text.shards import Dataset
from kotha.training.config import recipe
from kotha.training.loop import Training
from kotha.training.plan.flops import count_work
from kotha.training.start import start_run

WIDE = {"n_layers": 12, "d_model": 768, "n_heads": 12, "d_ff": 2048}
CASES: dict[str, dict[str, Any]] = {
    "8x512": {},
    "12x768": {"model": WIDE, "set": {"dropout": 0.35}},
    "12x768-no-dropout": {"model": WIDE, "set": {"dropout": 0.0}},
    "12x768-adamw": {"model": WIDE, "set": {"dropout": 0.35, "optimizer": "adamw"}},
    "12x768-taught": {"model": WIDE, "set": {"dropout": 0.2}, "teachers": [WIDE, {}, {}]},
}
# The first that fits names the kind of a kernel.
KINDS = (
    ("attention", r"flash|fmha|attention|sdpa"),
    ("products", r"gemm|nvjet|cutlass|cublas|_mm_|splitK"),
    ("compiled", r"^triton"),
    ("optimizer", r"multi_tensor|foreach|adam"),
    ("copies", r"[Mm]emcpy|[Mm]emset|copy|cat"),
    ("", r""),
)
WARM, STEPS = 40, 10


def training_of(case: dict[str, Any], data: Dataset, work: Path) -> Training:
    shape = preset("bangla-modern")
    teachers = []
    for number, sizes in enumerate(case.get("teachers", [])):
        teachers.append(str(work / f"teacher-{number}"))
        bundle.save(Path(teachers[-1]), build(shape.replace(**sizes)), data.tokenizer)
    config = recipe("modern", steps=10_000, evaluate_every=10_000, teachers=teachers, **case.get("set", {}))
    model = shape.replace(**case.get("model", {}))
    if config.dropout is not None:
        model = model.replace(dropout=config.dropout)
    training = start_run(model, config, data, RunFolder(work / "run"))
    training.learner.train()
    training.fitting.settle(training.gradients)
    return training


def measure(case: dict[str, Any], data: Dataset, work: Path) -> dict[str, Any]:
    training = training_of(case, data, work)
    for step in range(WARM):
        training.update(step)
    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    torch.cuda.synchronize()
    begin.record()
    for step in range(WARM, WARM + STEPS):
        training.update(step)
    end.record()
    torch.cuda.synchronize()
    whole = begin.elapsed_time(end) / STEPS
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]) as profile:
        for step in range(WARM + STEPS, WARM + 2 * STEPS):
            training.update(step)
        torch.cuda.synchronize()
    took, times = Counter[str](), Counter[str]()
    for event in profile.events():
        if event.device_type == torch.autograd.DeviceType.CUDA:
            took[event.name] += event.device_time / 1000 / STEPS
            times[event.name] += 1
    kinds = Counter[str]()
    for name, milliseconds in took.items():
        kinds[next(kind for kind, pattern in KINDS if re.search(pattern, name)) or "other"] += milliseconds
    shape = training.model.config
    tokens = training.config.batch_size * shape.context_length
    return {
        "milliseconds": whole,
        "tokens_per_second": 1000 * tokens / whole,
        "tflops": count_work(shape, shape.context_length).training_per_token * tokens / whole / 1e9,
        "busy_milliseconds": sum(took.values()),
        "kinds": {kind: round(value, 3) for kind, value in kinds.most_common()},
        "kernels": [[name[:110], times[name] // STEPS, round(value, 3)] for name, value in took.most_common(40)],
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--only", nargs="*", default=list(CASES))
    options = parser.parse_args()
    found = {}
    for name in options.only:
        with tempfile.TemporaryDirectory() as folder:
            found[name] = measure(CASES[name], Dataset(options.data), Path(folder))
        figures = found[name]
        print(
            f"{name}: {figures['milliseconds']:.2f} ms a step, {figures['tokens_per_second']:,.0f} tokens/s, ", end=""
        )
        print(f"{figures['tflops']:.0f} TFLOP/s, kernels {figures['busy_milliseconds']:.2f} ms {figures['kinds']}")
        for kernel in figures["kernels"][:14]:
            print("   ", *kernel, flush=True)
        (options.out / "step_profile.json").write_text(json.dumps(found, indent=1))


if __name__ == "__main__":
    main()
