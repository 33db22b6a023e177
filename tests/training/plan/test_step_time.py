"""FLOPs compared with torch's counter and manual counts; the GPU table and its estimates compared with measurements."""

import json
from pathlib import Path

import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode

from kotha.errors import UsageError
from kotha.model.attention import set_implementation
from kotha.model.config import BERTConfig, GPTConfig, ModelConfig, Seq2SeqConfig, ViTConfig
from kotha.model.family import build
from kotha.model.presets import preset
from kotha.training.config import recipe
from kotha.training.plan.memory import positions
from kotha.training.plan.render import plan_training
from kotha.training.plan.step_time import (
    GPUS,
    arithmetic_of,
    count_work,
    example_inputs,
    gpu_named,
    predict_seconds_per_step,
)

TEXT = {"vocab_size": 50, "context_length": 24, "n_layers": 2, "d_model": 32, "n_heads": 4}
FAMILY: dict[str, ModelConfig] = {
    "gpt": GPTConfig(**TEXT),
    "bert": BERTConfig(**TEXT),
    "seq2seq": Seq2SeqConfig(**TEXT),
    "vit": ViTConfig(image_size=28, patch_size=7, n_channels=1, n_classes=10, n_layers=2, d_model=32, n_heads=4),
}


def counted(name: str, batch_size: int, backward: bool) -> tuple[int, FlopCounterMode]:
    """Operations that torch counts in a real pass, without fused kernels, because torch counts them differently."""
    model = build(FAMILY[name])
    set_implementation(model, "explicit")
    with FlopCounterMode(display=False) as counter:
        hidden = model.hidden(*example_inputs(FAMILY[name], batch_size, 24))
        if name == "bert":  # as in training: 15 % of the positions are predicted
            answers = [model.head(model.guess(hidden[:, : int(0.15 * 24)])), model.pair_head(model.pool(hidden))]
        else:
            answers = [model.head(hidden[:, 0] if name == "vit" else hidden)]
        if backward:
            torch.stack([each.square().mean() for each in answers]).sum().backward()
    return counter.get_total_flops(), counter


def n_read(name: str, batch_size: int) -> int:
    return batch_size * positions(FAMILY[name], 24) * (2 if name == "seq2seq" else 1)


@pytest.mark.parametrize("name", FAMILY)
def test_forward_and_training_match_torchs_count(name: str) -> None:
    work = count_work(FAMILY[name], 24)
    assert sum(work.forward.values()) * n_read(name, 3) == pytest.approx(counted(name, 3, False)[0], rel=1e-9)
    assert work.training_per_token * n_read(name, 3) == pytest.approx(counted(name, 3, True)[0], rel=1e-9)


def test_the_parts_of_a_gpt_match_torchs_count_per_module() -> None:
    work, (_, counter) = count_work(FAMILY["gpt"], 24), counted("gpt", 1, False)
    found = {name: sum(ops.values()) for name, ops in counter.get_flop_counts().items()}
    attention = sum(value for name, value in found.items() if name.endswith(".attention"))
    ours = work.forward["attention_matrices"] + work.forward["attention_scores"]
    assert ours * 24 == attention
    assert work.forward["feedforward"] * 24 == sum(v for name, v in found.items() if name.endswith(".feedforward"))
    assert work.forward["head"] * 24 == found["Linear"]  # only the head is outside the stack


def test_a_fused_pass_is_counted_without_the_scores() -> None:
    # torch's counter has no rule for the fused CPU kernel, so exactly this part is missing.
    model = build(FAMILY["gpt"])
    with FlopCounterMode(display=False) as counter:
        model(*example_inputs(FAMILY["gpt"], 1, 24)).square().mean().backward()
    work = count_work(FAMILY["gpt"], 24)
    assert counter.get_total_flops() == 24 * (work.training_per_token - work.training["attention_scores"])


def test_the_course_model_by_hand() -> None:
    work = count_work(preset("bangla-58m"), 128)
    assert work.forward["attention_matrices"] == 2 * 8 * 4 * 512 * 512
    assert work.forward["attention_scores"] == 2 * 8 * 2 * 512 * 128
    assert work.forward["feedforward"] == 2 * 8 * 2 * 512 * 2048
    assert work.forward["head"] == 2 * 512 * 32_100
    assert work.parameters == 58_139_648


def test_scores_grow_with_the_context_and_the_rest_does_not() -> None:
    short, long = (count_work(preset("bangla-modern"), length) for length in (128, 512))
    assert long.training["attention_scores"] == 4 * short.training["attention_scores"]
    assert long.training["feedforward"] == short.training["feedforward"]


RESULTS = Path(__file__).parents[3] / "benchmarks" / "results"


# Name in the results, preset, recipe, sequences per batch, and sequence length.
MEASURED = [
    ("58m-b64", "bangla-58m", "course", 64, 128),
    ("58m-b512", "bangla-58m", "course", 512, 128),
    ("gpt2-b32", "gpt2", "classic", 32, 1024),
    ("modern", "bangla-modern", "modern", 32, 512),
]


@pytest.mark.parametrize(("case", "name", "how", "size", "length"), MEASURED, ids=[each[0] for each in MEASURED])
def test_the_h200_estimate_is_close_to_the_measurement(case: str, name: str, how: str, size: int, length: int) -> None:
    figures = json.loads((RESULTS / "train_speed.json").read_text(encoding="utf-8"))["figures"]
    (ours,) = [each for each in figures if (each["case"], each["who"]) == (case, "kotha")]
    there, settings = arithmetic_of("auto", GPUS["h200"]), recipe(how, batch_size=size)
    seconds = predict_seconds_per_step(preset(name), settings, size, length, there, GPUS["h200"])
    assert size * length / seconds == pytest.approx(ours["tokens_per_second"], rel=0.1)


@pytest.mark.parametrize("name", GPUS)
def test_every_gpu_is_plausible(name: str) -> None:
    gpu = GPUS[name]
    assert gpu.half > gpu.single > 1e12
    assert 1e11 < gpu.bandwidth < 1e13
    assert 8e9 < gpu.memory < 3e11
    assert gpu.precision == ("float16" if name in ("t4", "v100") else "bfloat16")


@pytest.mark.parametrize(("name", "wording"), [("h20", "did you mean 'h200'?"), ("rtx4090", "did you mean 'rtx-4090'")])
def test_an_unknown_name_suggests_the_nearest(name: str, wording: str) -> None:
    with pytest.raises(UsageError, match=wording.replace("?", r"\?")):
        gpu_named(name)
    assert gpu_named("RTX 4090") is GPUS["rtx-4090"]


def test_a_plan_for_a_gpu_does_not_need_one() -> None:
    found = plan_training(preset("pocket"), recipe("modern"), gpu=GPUS["t4"], train_tokens=1_000_000)
    assert (found["device"], found["precision"], found["gpu"]) == ("cuda", "float16", "NVIDIA T4")
    assert found["memory_bytes"]["total"] <= found["memory_available_bytes"]
    assert found["seconds"] == found["seconds_per_step"] * found["steps"]
    assert found["epochs"] == found["tokens"] / 1_000_000
    assert found["flops"]["per_step"] == found["tokens_per_step"] * sum(found["flops"]["training_per_token"].values())
    assert found["peak_share"] == pytest.approx(found["flops"]["per_step"] / found["seconds_per_step"] / 65e12)
    with pytest.raises(UsageError, match="gpu NVIDIA T4 and device cpu"):
        plan_training(preset("pocket"), recipe("modern"), "cpu", gpu=GPUS["t4"])
