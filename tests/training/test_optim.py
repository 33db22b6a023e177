"""The learning rate compared with manual values, the weights that decay, and Muon compared with torch's version."""

import math
import subprocess
import sys

import pytest
import torch

from kotha.model.config import GPTConfig
from kotha.model.gpt import GPT
from kotha.training.config import TrainConfig, recipe
from kotha.training.optim import (
    Average,
    Muon,
    Optimizers,
    learning_rate_share,
    orthogonalize,
    split_parameters,
    swapped_weights,
)


def test_the_workshops_question_7c() -> None:
    course = recipe("course")
    assert course.learning_rate * learning_rate_share(500, course) == pytest.approx(1.5e-4)
    passed = (10_000 - 1000) / (course.steps - 1000)
    wanted = 0.1 * 3e-4 + 0.9 * 3e-4 * 0.5 * (1 + math.cos(math.pi * passed))
    assert course.learning_rate * learning_rate_share(10_000, course) == pytest.approx(wanted)
    assert learning_rate_share(1000, course) == 1
    assert learning_rate_share(course.steps, course) == pytest.approx(0.1)


def test_stable_holds_and_then_falls() -> None:
    config = TrainConfig(steps=100, schedule="stable", warmup_steps=10, decay_steps=20, floor=0.0)
    shares = [learning_rate_share(step, config) for step in range(101)]
    assert shares[5] == 0.5
    assert shares[10:81] == [1.0] * 71
    assert shares[90] == pytest.approx(0.5)
    assert shares[100] == 0


def test_constant_stays() -> None:
    config = TrainConfig(schedule="constant", warmup_steps=0)
    assert {learning_rate_share(step, config) for step in range(50)} == {1.0}


def test_inverse_sqrt_is_the_schedule_of_2017() -> None:
    d_model, warmup = 512, 4000
    peak = d_model**-0.5 * warmup**-0.5
    config = TrainConfig(steps=100_000, schedule="inverse-sqrt", warmup_steps=warmup)
    for step in (1, 2000, 4000, 4001, 16_000, 99_999):
        published = d_model**-0.5 * min(step**-0.5, step * warmup**-1.5)
        assert peak * learning_rate_share(step, config) == pytest.approx(published)
    assert learning_rate_share(0, TrainConfig(schedule="inverse-sqrt", warmup_steps=0)) == 1


def model() -> GPT:
    return GPT(GPTConfig(vocab_size=20, context_length=8, n_layers=2, d_model=8, n_heads=2))


def test_matrices_decay_and_norms_and_biases_do_not() -> None:
    hidden, decayed, plain = split_parameters(model(), use_muon=False)
    assert hidden == []
    assert all(each.dim() >= 2 for _, each in decayed)
    assert all(each.dim() < 2 for _, each in plain)


def test_muon_gets_the_matrices_of_the_blocks() -> None:
    hidden, decayed, _ = split_parameters(model(), use_muon=True)
    assert all(name.startswith("stack.") for name, _ in hidden)
    assert len(hidden) == 2 * 6, "four of attention and two of the feed-forward, in two blocks"
    assert "tokens.weight" in dict(decayed)
    assert all("stack" not in name for name, _ in decayed)


@pytest.mark.parametrize("optimizer", ["adamw", "muon"])
def test_optimizer_state_is_restored(optimizer: str) -> None:
    config = TrainConfig(optimizer=optimizer)
    one, other = model(), model()
    other.load_state_dict(one.state_dict())
    first, second = Optimizers(one, config), Optimizers(other, config)
    scaler = torch.amp.GradScaler(enabled=False)

    def step(net: GPT, optimizers: Optimizers, seed: int) -> None:
        generator = torch.Generator().manual_seed(seed)
        for each in net.parameters():
            each.grad = torch.randn(each.shape, generator=generator)
        optimizers.step(scaler)

    step(one, first, 0)
    step(other, second, 0)
    third = Optimizers(other, config)
    third.load_state({name: value.clone() for name, value in second.state().items()})
    step(one, first, 1)
    step(other, third, 1)
    for name, each in one.named_parameters():
        assert torch.equal(each, dict(other.named_parameters())[name]), name


def test_the_average_lies_between_and_can_be_swapped_in() -> None:
    net = model()
    average = Average(net, decay=0.5)
    before = net.tokens.weight.detach().clone()
    with torch.no_grad():
        net.tokens.weight.add_(1)
    average.update(net)
    with swapped_weights(net, average.tensors):
        assert bool(((net.tokens.weight > before) & (net.tokens.weight < before + 1)).all())
    assert torch.allclose(net.tokens.weight, before + 1)


def test_singular_values_approach_one() -> None:
    torch.manual_seed(0)
    for shape in ((16, 16), (8, 32), (32, 8)):
        values = torch.linalg.svdvals(orthogonalize(torch.randn(shape)))
        assert values.min() > 0.5
        assert values.max() < 1.3


def test_updates_match_torchs() -> None:
    torch.manual_seed(0)
    start = torch.randn(24, 40)
    ours, theirs = (torch.nn.Parameter(start.clone()) for _ in range(2))
    one = Muon([ours], lr=0.01, weight_decay=0.1)
    other = torch.optim.Muon([theirs], lr=0.01, weight_decay=0.1, adjust_lr_fn="match_rms_adamw")
    before = torch._C._get_mkldnn_enabled()
    torch._C._set_mkldnn_enabled(False)  # torch warns if oneDNN cannot multiply in bfloat16
    for _ in range(5):
        ours.grad = theirs.grad = torch.randn(24, 40)
        one.step()
        other.step()
    torch._C._set_mkldnn_enabled(before)
    moved = (theirs - start).norm()
    assert (ours - theirs).norm() / moved < 0.02, "torch's rounds to bfloat16, so they agree only approximately"


def test_adamw_on_a_cpu_equals_torchs() -> None:
    torch.manual_seed(0)
    config = recipe("course")
    ours, theirs = (torch.nn.Linear(7, 5) for _ in range(2))
    theirs.load_state_dict(ours.state_dict())
    one = Optimizers(ours, config)
    groups = [{"params": [theirs.weight], "weight_decay": config.weight_decay}, {"params": [theirs.bias]}]
    betas = (config.beta1, config.beta2)
    two = torch.optim.AdamW(groups, lr=config.learning_rate, betas=betas, weight_decay=0.0)
    for _ in range(5):
        x = torch.randn(3, 7)
        for model in (ours, theirs):
            model.zero_grad()
            model(x).square().sum().backward()
        one.step(torch.amp.GradScaler(enabled=False))
        two.step()
    assert torch.equal(ours.weight, theirs.weight) and torch.equal(ours.bias, theirs.bias)


def test_a_step_on_a_cpu_does_not_import_torchs_compiler() -> None:
    """The import takes seconds, which a run of a few minutes would lose."""
    code = """
import sys, torch
from kotha.model.loss import next_token_loss
from kotha.training.config import recipe
from kotha.training.optim import Optimizers
head = torch.nn.Linear(8, 30, bias=False)
optimizers = Optimizers(head, recipe("modern"))
next_token_loss(torch.randn(4, 8), head.weight, torch.arange(4)).backward()
optimizers.step(torch.amp.GradScaler(enabled=False))
optimizers.zero_grad()
print("torch._dynamo" in sys.modules)
"""
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout == "False\n"
