"""The table of GPUs, and its estimate beside what was measured."""

import json
from pathlib import Path

import pytest

from kotha.errors import UsageError
from kotha.model.presets import preset
from kotha.training.config import recipe
from kotha.training.plan.gpus import GPUS, estimate_seconds_per_step, gpu_named
from kotha.training.plan.planning import plan_training

RESULTS = Path(__file__).parents[3] / "benchmarks" / "results"


# Case of the results, preset, recipe, sequences in a batch, their length.
MEASURED = [
    ("58m-b64", "bangla-58m", "course", 64, 128),
    ("58m-b512", "bangla-58m", "course", 512, 128),
    ("gpt2-b32", "gpt2", "classic", 32, 1024),
    ("modern", "bangla-modern", "modern", 32, 512),
]


@pytest.mark.parametrize(("case", "name", "how", "size", "length"), MEASURED, ids=[each[0] for each in MEASURED])
def test_the_h200_estimate_is_near_what_was_measured(case: str, name: str, how: str, size: int, length: int) -> None:
    figures = json.loads((RESULTS / "train_speed.json").read_text(encoding="utf-8"))["figures"]
    (ours,) = [each for each in figures if (each["case"], each["who"]) == (case, "kotha")]
    seconds = estimate_seconds_per_step(
        GPUS["h200"], preset(name), recipe(how, batch_size=size), size, length, "bfloat16"
    )
    assert size * length / seconds == pytest.approx(ours["tokens_per_second"], rel=0.1)


@pytest.mark.parametrize("name", GPUS)
def test_every_gpu_is_plausible(name: str) -> None:
    gpu = GPUS[name]
    assert gpu.half > gpu.single > 1e12
    assert 1e11 < gpu.bandwidth < 1e13
    assert 8e9 < gpu.memory < 3e11
    assert gpu.precision == ("float16" if name in ("t4", "v100") else "bfloat16")


@pytest.mark.parametrize(("name", "wording"), [("h20", "did you mean 'h200'?"), ("rtx4090", "did you mean 'rtx-4090'")])
def test_an_unknown_name_is_answered_with_the_nearest(name: str, wording: str) -> None:
    with pytest.raises(UsageError, match=wording.replace("?", r"\?")):
        gpu_named(name)
    assert gpu_named("RTX 4090") is GPUS["rtx-4090"]


def test_a_plan_for_a_gpu_needs_none_here() -> None:
    found = plan_training(preset("pocket"), recipe("modern"), gpu=GPUS["t4"], train_tokens=1_000_000)
    assert (found.device, found.precision, found.gpu) == ("cuda", "float16", "NVIDIA T4")
    assert found.memory.total <= (found.memory_available_bytes or 0)
    assert found.seconds_per_step is not None
    assert found.seconds == found.seconds_per_step * found.steps
    assert found.epochs == found.tokens / 1_000_000
    work = found.work.training_per_token * found.tokens_per_step / found.seconds_per_step
    assert found.peak_share == pytest.approx(work / 65e12)
    assert {"memory_bytes", "flops_per_token", "flops", "seconds", "epochs"} <= found.to_dict().keys()
    with pytest.raises(UsageError, match="gpu NVIDIA T4 and device cpu"):
        plan_training(preset("pocket"), recipe("modern"), "cpu", gpu=GPUS["t4"])
