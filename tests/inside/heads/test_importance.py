"""Silencing and importance, compared with manual computations."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest
import torch
from tests.inside.conftest import with_inputs
from tests.inside.small_models import TEXT, make, small
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from kotha.api.model_input import continuation, read_input
from kotha.api.options import InputOptions
from kotha.errors import UsageError
from kotha.inside.heads.importance import (
    by_ablation,
    by_gradient,
    every_head,
    least_important,
    mean_loss,
    silence,
    without_heads,
)
from kotha.inside.hook_points import attentions
from kotha.model.attention import set_implementation
from kotha.model.pruning import remove_heads

EVERY = ["gpt", "gpt-grouped", "bert", "seq2seq", "vit"]


def shaken(name: str) -> tuple[Any, list[Tensor]]:
    """Return a model with weights large enough that heads matter."""
    model, inputs = with_inputs(name)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.2 * torch.randn_like(parameter))
    return model, inputs


def logits(model: nn.Module, inputs: list[Tensor]) -> Tensor:
    found = model(*inputs)
    return found if isinstance(found, Tensor) else found[0]


def loss(model: nn.Module, batch: list[Tensor]) -> Tensor:
    """Return a loss that is a mean over rows: predicting class 1 everywhere."""
    found = logits(model, batch)
    rows = found.flatten(0, -2)
    return cross_entropy(rows, torch.ones(len(rows), dtype=torch.long))


@contextmanager
def times(model: nn.Module, head: str, gate: float) -> Iterator[None]:
    """Scale a head's columns of the output matrix."""
    name, number = head.rsplit(".", 1)
    attention = attentions(model)[name]
    place = slice(int(number) * attention.d_head, (int(number) + 1) * attention.d_head)
    kept = attention.output.weight.detach().clone()
    with torch.no_grad():
        attention.output.weight[:, place] *= gate
        yield
        attention.output.weight.copy_(kept)


@pytest.mark.parametrize("implementation", ["fused", "explicit"])
@pytest.mark.parametrize("name", EVERY)
def test_a_silenced_head_adds_nothing_and_is_restored(name: str, implementation: Any) -> None:
    model, inputs = shaken(name)
    set_implementation(model, implementation)
    heads = [every_head(model)[1], every_head(model)[-1]]
    with torch.no_grad():
        whole = logits(model, inputs)
        with silence(model, heads):
            silent = logits(model, inputs)
        assert torch.equal(logits(model, inputs), whole)
        assert not any(module._forward_hooks for module in model.modules())
        with times(model, heads[0], 0), times(model, heads[1], 0):
            torch.testing.assert_close(silent, logits(model, inputs), rtol=1e-5, atol=1e-5)
    assert (silent - whole).abs().max() > 1e-3


def test_hooks_are_removed_when_the_model_fails() -> None:
    model, _ = shaken("gpt")
    with pytest.raises(Exception, match="token"), silence(model, ["blocks.0.attention.1"]):
        model(torch.tensor([[model.config.vocab_size]]))
    assert not any(module._forward_hooks for module in model.modules())


@pytest.mark.parametrize("name", EVERY)
def test_ablation_is_the_difference_of_two_losses(name: str) -> None:
    model, inputs = shaken(name)
    batches = [[each[:1] for each in inputs], [each[1:] for each in inputs]]
    found = by_ablation(model, batches, loss)
    assert list(found) == every_head(model)
    model.eval()
    for head in (every_head(model)[0], every_head(model)[-2]):
        before, after = (sum(gated_loss(model, batch, head, gate) for batch in batches) / 2 for gate in (1, 0))
        assert found[head] == pytest.approx(after - before, abs=1e-5)


def gated_loss(model: nn.Module, batch: list[Tensor], head: str, gate: float) -> float:
    with times(model, head, gate):
        return loss(model, batch).item()


@pytest.mark.parametrize("name", EVERY)
def test_the_gradient_is_the_slope_of_a_gate(name: str) -> None:
    model, inputs = shaken(name)
    model.double()
    inputs = [each.double() if each.is_floating_point() else each for each in inputs]
    rows = [[each[row : row + 1] for each in inputs] for row in range(2)]
    found, one_batch = by_gradient(model, rows, loss), by_gradient(model, [inputs], loss)
    step = 1e-5
    model.eval()
    for head in every_head(model):
        slopes = [(gated_loss(model, row, head, 1 + step) - gated_loss(model, row, head, 1 - step)) / (2 * step)
                  for row in rows]  # fmt: skip
        expected = sum(abs(slope) for slope in slopes) / 2
        assert found[head] == pytest.approx(expected, rel=1e-4, abs=1e-6)
        assert one_batch[head] == pytest.approx(expected, rel=1e-4, abs=1e-6), "each row counts separately"


def test_measuring_keeps_the_training_mode() -> None:
    model, inputs = shaken("gpt")
    model.train()
    by_ablation(model, [inputs], loss)
    by_gradient(model, [inputs], loss)
    assert model.training and all(parameter.grad is None for parameter in model.parameters())


def test_a_pruned_model_keeps_its_head_names() -> None:
    model, inputs = shaken("gpt-grouped")
    pruned = remove_heads(model, ["blocks.0.attention.0", "blocks.1.attention.2"])
    assert every_head(pruned) == [head for head in every_head(model) if head not in pruned.config.removed_heads]
    assert list(by_gradient(pruned, [inputs], loss)) == list(by_ablation(pruned, [inputs], loss)) == every_head(pruned)
    with silence(pruned, ["blocks.0.attention.1"]):
        silent = logits(pruned, inputs)
    without = remove_heads(pruned, ["blocks.0.attention.1"])
    torch.testing.assert_close(silent, logits(without, inputs), rtol=1e-5, atol=1e-5)
    gone = r"this model has no head 'blocks\.0\.attention\.0'; did you mean"
    with pytest.raises(UsageError, match=gone), silence(pruned, ["blocks.0.attention.0"]):
        pass


def test_the_least_important_heads_go_first_and_one_stays() -> None:
    worth = {"blocks.0.attention.0": 0.5, "blocks.0.attention.1": -0.1, "blocks.1.attention.0": 0.0,
             "blocks.1.attention.1": 0.2, "blocks.1.attention.2": 0.1}  # fmt: skip
    assert least_important(worth, 2) == ["blocks.0.attention.1", "blocks.1.attention.0"]
    assert least_important(worth, 3)[-1] == "blocks.1.attention.2"
    with pytest.raises(
        UsageError, match="4 heads cannot be removed: each attention module must keep at least one, so 1 to 3 of the 5"
    ):
        least_important(worth, 4)


def test_measuring_without_text_is_rejected() -> None:
    model, _ = shaken("gpt")
    with pytest.raises(UsageError, match="the heads cannot be measured without text"):
        mean_loss(model, [], loss)


def test_examples_have_equal_weight_in_any_batches() -> None:
    model, inputs = shaken("gpt")
    tokens = torch.cat((inputs[0], inputs[0].flip(1)))[:3]

    def losses(model: nn.Module, batch: Tensor) -> Tensor:
        rows = model(batch)
        ones = torch.ones(rows.shape[:2], dtype=torch.long)
        return cross_entropy(rows.flatten(0, 1), ones.flatten(), reduction="none").view_as(ones).mean(dim=1)

    alone, uneven = list(tokens[:, None]), [tokens[:2], tokens[2:]]
    assert mean_loss(model, alone, losses) == pytest.approx(mean_loss(model, uneven, losses), abs=1e-6)
    slopes, others = by_gradient(model, alone, losses), by_gradient(model, uneven, losses)
    assert slopes == pytest.approx(others, abs=1e-6)


def test_silencing_equals_removing() -> None:
    """Silencing gives the same result as removing the heads from the weights."""
    bundle, heads = make("gpt"), ["blocks.0.attention.1", "blocks.1.attention.0"]
    given = read_input(bundle, InputOptions(TEXT))
    whole, without = without_heads(bundle.model, given, heads)
    smaller = remove_heads(bundle.model, heads).eval()
    logits = given.pass_through(smaller)[0]
    ids = torch.tensor([piece.id for piece in given.lines["tokens"]])
    nats = cross_entropy(logits[:-1], ids[1:], reduction="none")
    torch.testing.assert_close(torch.tensor(without.nats), nats, atol=1e-4, rtol=1e-4)
    best = logits[-1].softmax(-1).topk(10)
    assert [each.id for each in without.answers[0].best] == best.indices.tolist()
    assert without.loss_nats == pytest.approx(float(nats.mean()), abs=1e-4)
    assert whole.nats != without.nats and whole.written is None


def test_both_models_generate_and_hooks_are_removed() -> None:
    bundle, asked = small("gpt"), InputOptions(TEXT, generate=4)
    given, heads = read_input(bundle, InputOptions(TEXT)), every_head(bundle.model)
    whole, without = without_heads(bundle.model, given, heads, lambda: continuation(bundle, asked))
    assert whole.written and without.written and whole.written != without.written
    assert not any(module._forward_hooks for module in bundle.model.modules())


@pytest.mark.parametrize("body", ["bert", "seq2seq", "vit"])
def test_every_architecture_answers(body: str) -> None:
    bundle = small(body)
    image = np.random.default_rng(0).uniform(-1, 1, (1, 8, 8)).astype(np.float32)
    given = read_input(bundle, InputOptions(image=image) if body == "vit" else InputOptions(TEXT))
    whole, without = without_heads(bundle.model, given, every_head(bundle.model)[:3])
    assert whole.answers != without.answers
    assert (whole.loss_nats is None) == (body != "seq2seq")
    assert str(given.title) == ("An image" if body == "vit" else TEXT)
