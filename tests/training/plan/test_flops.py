"""Work by part, against torch's own counter and by hand."""

import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode

from kotha.model.attention import set_reading
from kotha.model.config import BERTConfig, GPTConfig, ModelConfig, Seq2SeqConfig, ViTConfig
from kotha.model.family import build
from kotha.model.presets import preset
from kotha.training.plan.activations import example_inputs, positions
from kotha.training.plan.flops import count_work

TEXT = {"vocab_size": 50, "context_length": 24, "n_layers": 2, "d_model": 32, "n_heads": 4}
FAMILY: dict[str, ModelConfig] = {
    "gpt": GPTConfig(**TEXT),
    "bert": BERTConfig(**TEXT),
    "seq2seq": Seq2SeqConfig(**TEXT),
    "vit": ViTConfig(image_size=28, patch_size=7, n_channels=1, n_classes=10, n_layers=2, d_model=32, n_heads=4),
}


def counted(name: str, batch_size: int, backward: bool) -> tuple[int, FlopCounterMode]:
    """What torch counts in a real pass. The explicit reading: a fused kernel is counted by rules of its own."""
    model = build(FAMILY[name])
    set_reading(model, "explicit")
    with FlopCounterMode(display=False) as counter:
        hidden = model.hidden(*example_inputs(FAMILY[name], batch_size, 24))
        if name == "bert":  # as it is trained: 15 % of the places are guessed
            answers = [model.head(model.guess(hidden[:, : int(0.15 * 24)])), model.pair_head(model.pool(hidden))]
        else:
            answers = [model.head(hidden[:, 0] if name == "vit" else hidden)]
        if backward:
            torch.stack([each.square().mean() for each in answers]).sum().backward()
    return counter.get_total_flops(), counter


def n_read(name: str, batch_size: int) -> int:
    return batch_size * positions(FAMILY[name], 24) * (2 if name == "seq2seq" else 1)


@pytest.mark.parametrize("name", FAMILY)
def test_forward_and_training_are_what_torch_counts(name: str) -> None:
    work = count_work(FAMILY[name], 24)
    assert work.forward_per_token * n_read(name, 3) == pytest.approx(counted(name, 3, False)[0], rel=1e-9)
    assert work.training_per_token * n_read(name, 3) == pytest.approx(counted(name, 3, True)[0], rel=1e-9)


def test_the_parts_of_a_gpt_are_what_torch_counts_in_its_modules() -> None:
    work, (_, counter) = count_work(FAMILY["gpt"], 24), counted("gpt", 1, False)
    found = {name: sum(ops.values()) for name, ops in counter.get_flop_counts().items()}
    attention = sum(value for name, value in found.items() if name.endswith(".attention"))
    ours = work.forward["attention_matrices"] + work.forward["attention_scores"]
    assert ours * 24 == attention
    assert work.forward["feedforward"] * 24 == sum(v for name, v in found.items() if name.endswith(".feedforward"))
    assert work.forward["head"] * 24 == found["Linear"]  # the head alone stands outside the stack


def test_what_torch_does_not_count_in_a_fused_pass_is_the_scores() -> None:
    # Its counter has no rule for the processor's fused kernel: exactly that part is missing from its sum.
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
    assert work.rule_of_thumb == 6 * 58_139_648


def test_scores_grow_with_the_context_and_the_rest_does_not() -> None:
    short, long = (count_work(preset("bangla-modern"), length) for length in (128, 512))
    assert long.training["attention_scores"] == 4 * short.training["attention_scores"]
    assert long.training["feedforward"] == short.training["feedforward"]


def test_a_step_is_its_tokens() -> None:
    found = count_work(FAMILY["gpt"], 24).to_dict(1000)
    assert found["per_step"] == 1000 * sum(found["training_per_token"].values())
