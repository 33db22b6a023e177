"""The trace records the actual values, changes nothing, and saves arrays atomically."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from tests.inside.small_models import BODIES, small
from tests.inside.test_attention import input_of
from torch import nn

from kotha.errors import UsageError
from kotha.inside.hook_points import attentions, layers
from kotha.inside.trace import record, trace, write_arrays
from kotha.model.attention import set_implementation
from kotha.model.classifier import TextClassifier
from kotha.model.config import classifying

Member = tuple[nn.Module, list[torch.Tensor]]


def first(answer: Any) -> torch.Tensor:
    return answer if isinstance(answer, torch.Tensor) else answer[0]


@pytest.mark.parametrize("implementation", ["fused", "explicit"])
@pytest.mark.parametrize("training", [False, True])
def test_tracing_changes_nothing(family_member: Member, implementation: Any, training: bool) -> None:
    model, inputs = family_member
    set_implementation(model, implementation)
    model.train(training)
    weights = {key: value.clone() for key, value in model.state_dict().items()}
    hooks = [len(module._forward_hooks) + len(module._forward_pre_hooks) for module in model.modules()]
    torch.manual_seed(1)
    alone = first(model(*inputs))
    torch.manual_seed(1)
    with trace(model) as seen:
        traced = first(model(*inputs))
    assert torch.equal(alone, traced)
    assert traced.requires_grad and not any(value.requires_grad for value in map(seen.__getitem__, seen))
    assert all(torch.equal(value, weights[key]) for key, value in model.state_dict().items())
    assert [len(module._forward_hooks) + len(module._forward_pre_hooks) for module in model.modules()] == hooks


def test_fused_and_explicit_attention_record_the_same(family_member: Member) -> None:
    model, inputs = family_member
    sights = []
    for implementation in ("explicit", "fused"):
        set_implementation(model, implementation)
        with trace(model) as seen:
            model(*inputs)
        sights.append(seen)
    explicit, fused = sights
    assert set(explicit) == set(fused)
    for place in explicit:
        assert len(explicit.passes(place)) == len(fused.passes(place)), place
        torch.testing.assert_close(fused[place], explicit[place], rtol=1e-4, atol=1e-5)


def test_every_hook_point_is_recorded_and_consistent(family_member: Member) -> None:
    model, inputs = family_member
    with trace(model) as seen:
        model(*inputs)
    for attention in attentions(model):
        weights, values = seen[f"{attention}.weights"], seen[f"{attention}.values"]
        torch.testing.assert_close(weights.sum(-1), torch.ones(weights.shape[:-1]))
        mixed = weights @ values.repeat_interleave(weights.shape[1] // values.shape[1], dim=1)
        torch.testing.assert_close(mixed, seen[f"{attention}.head_outputs"])
    for layer, block in layers(model).items():
        pre = block.norm_order == "pre"
        added = seen[f"{layer}.residual_in"] + seen[f"{layer}.attention"]
        torch.testing.assert_close(added if pre else block.attention_norm(added), seen[f"{layer}.residual_mid"])
        if block.cross is None:
            added = seen[f"{layer}.residual_mid"] + seen[f"{layer}.feedforward"]
            torch.testing.assert_close(added if pre else block.feedforward_norm(added), seen[f"{layer}.residual_out"])
    torch.testing.assert_close(seen["logits"], first(model(*inputs)))


def test_only_requested_hook_points_are_kept(gpt: Member) -> None:
    model, inputs = gpt
    with trace(model, layers=["blocks.1"], hook_points=["*.attention.weights", "logits"]) as seen:
        model(*inputs)
        model(*inputs)
    assert list(seen) == ["blocks.1.attention.weights", "logits"]
    assert len(seen.passes("logits")) == 2
    with pytest.raises(UsageError, match="was not recorded"):
        seen["blocks.0.attention.weights"]


def test_a_wrong_name_suggests_the_nearest(gpt: Member) -> None:
    model, _ = gpt
    with pytest.raises(UsageError, match=r"did you mean 'blocks\.1'"), trace(model, layers=["blocks1"]):
        pass
    with pytest.raises(UsageError, match="did you mean 'logits'"), trace(model, hook_points=["logit"]):
        pass
    with trace(model) as seen, pytest.raises(UsageError, match="nothing has been recorded at logits yet"):
        seen["logits"]


def test_hooks_are_removed_when_the_model_fails(gpt: Member) -> None:
    model, _ = gpt
    with pytest.raises(Exception, match="token"), trace(model):
        model(torch.tensor([[model.config.vocab_size]]))
    assert not any(module._forward_hooks or module._forward_pre_hooks for module in model.modules())


def test_a_classifier_is_traced_too(bert: Member) -> None:
    body, inputs = bert
    model = TextClassifier(classifying(body.config, "abc")).eval()
    with trace(model) as seen:
        answer = model(*inputs, torch.ones(2, 7, dtype=torch.bool))
    assert torch.equal(seen["logits"], answer) and "tokens" in seen and "blocks.1.attention.weights" in seen


@pytest.mark.parametrize("body", BODIES)
def test_saved_arrays_equal_the_trace(tmp_path: Path, body: str) -> None:
    model, given = small(body).model, input_of(body)
    with trace(model) as seen, torch.no_grad():
        model(*given.inputs)
    write_arrays(tmp_path / "a.npz", record(model, given))
    with np.load(tmp_path / "a.npz") as arrays:
        for place in seen:
            for number, values in enumerate(seen.passes(place)):
                twice = len(seen.passes(place)) > 1
                name = f"{place}.{('source', 'target')[number]}" if twice else place
                whole = values if place == "positions" and body == "vit" else values[0]
                assert np.array_equal(arrays[name], whole.numpy())
    assert [path.name for path in tmp_path.iterdir()] == ["a.npz"]


def test_figures_exclude_masked_scores() -> None:
    (found,) = record(small("gpt").model, input_of("gpt"), ["blocks.0"], ["*.masked_scores"])
    values = found.values.double().numpy()
    row = found.to_dict()
    finite = values[np.isfinite(values)]
    assert row["hidden"] == values.size - finite.size > 0
    assert row["mean"] == pytest.approx(finite.mean()) and row["std"] == pytest.approx(finite.std())
    assert (row["min"], row["max"]) == (finite.min(), finite.max())
