"""Attention: its two implementations compared with torch's own, and its properties."""

import itertools
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn

from kotha.model.attention import Attention, set_implementation
from kotha.model.config import BlockConfig
from kotha.model.masks import Mask, causal_mask, decoder_mask, encoder_mask, padding_mask
from kotha.model.position import RotaryPositions

B, T, S, C = 2, 5, 7, 16


def masks(name: str, n_keys: int) -> Mask:
    real = torch.ones(B, n_keys, dtype=torch.bool)
    real[1, 3:] = False
    nowhere = torch.zeros(B, n_keys, dtype=torch.bool)
    nowhere[0] = True
    return {
        "none": encoder_mask(None),
        "causal": decoder_mask(None),
        "padding": encoder_mask(real),
        "causal and padding": decoder_mask(real),
        "a row that may look nowhere": encoder_mask(nowhere),
    }[name]


NAMES = ["none", "causal", "padding", "causal and padding", "a row that may look nowhere"]
LAYOUTS = [
    {},
    {"n_kv_heads": 2},
    {"n_kv_heads": 1, "qk_norm": True, "attention_bias": False},
    {"d_head": 6, "qk_norm": True},
]


def both_implementations(attention: Attention, x: Tensor, *arguments: Any, **named: Any) -> list[tuple[Tensor, Tensor]]:
    results = []
    for implementation in ("explicit", "fused"):
        attention.implementation = implementation
        own = x.detach().clone().requires_grad_()
        y = attention(own, *arguments, **named)
        (gradient,) = torch.autograd.grad((y * torch.linspace(-1, 1, y.numel()).view_as(y)).sum(), own)
        results.append((y, gradient))
    return results


@pytest.mark.parametrize("mask", NAMES)
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("rotary", [False, True])
def test_explicit_and_fused_attention_agree(mask: str, layout: dict[str, Any], rotary: bool) -> None:
    assert largest_difference(mask, layout, rotary, "cpu") <= 1e-5


def largest_difference(mask: str, layout: dict[str, Any], rotary: bool, device: str) -> float:
    """The largest difference between the two implementations, in outputs and gradients; NaN if one is not finite."""
    torch.manual_seed(0)
    with torch.device(device):
        attention = Attention(BlockConfig(d_model=C, n_heads=4, **layout))
        rotation = RotaryPositions(attention.d_head, 10_000).rotation(torch.arange(T)) if rotary else None
        explicit, fused = both_implementations(attention, torch.randn(B, T, C), masks(mask, T), rotation)
    differences = [(one - two).abs().max() for one, two in zip(explicit, fused, strict=True)]
    return torch.stack(differences).max().item()


@pytest.mark.parametrize("mask", ["none", "padding", "a row that may look nowhere"])
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("remembered", [False, True])
def test_explicit_and_fused_cross_attention_agree(mask: str, layout: dict[str, Any], remembered: bool) -> None:
    torch.manual_seed(0)
    attention = Attention(BlockConfig(d_model=C, n_heads=4, **layout))
    source = torch.randn(B, S, C)
    memory = attention.project_kv(source) if remembered else source
    explicit, fused = both_implementations(attention, torch.randn(B, T, C), masks(mask, S), memory=memory)
    for one, two in zip(explicit, fused, strict=True):
        assert one.isfinite().all()
        assert (one - two).abs().max() <= 1e-5


@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device on this machine")
def test_explicit_and_fused_attention_agree_on_a_gpu() -> None:
    for mask, layout, rotary in itertools.product(NAMES, LAYOUTS, [False, True]):
        assert largest_difference(mask, layout, rotary, "cuda") <= 1e-5


def test_causal_mask_counts_from_the_first_key_when_there_are_more_keys_than_queries() -> None:
    """Attention with a preallocated cache, in which the keys after the queries are not yet written."""
    torch.manual_seed(0)
    attention = Attention(BlockConfig(d_model=C, n_heads=4))
    x, source = torch.randn(B, T, C), torch.randn(B, S, C)
    explicit, fused = both_implementations(attention, x, "causal", memory=source)
    assert (explicit[0] - fused[0]).abs().max() <= 1e-5
    assert (attention(x, "causal", memory=source[:, :T]) - fused[0]).abs().max() <= 1e-5


def test_a_fully_masked_row_gives_zeros() -> None:
    torch.manual_seed(0)
    attention = Attention(BlockConfig(d_model=C, n_heads=4, attention_bias=False))
    for implementation in ("explicit", "fused"):
        attention.implementation = implementation
        y = attention(torch.randn(B, T, C), masks("a row that may look nowhere", T))
        assert (y[1] == 0).all()
        assert (y[0] != 0).any()


@settings(max_examples=10, deadline=None, derandomize=True)
@given(
    n_heads=st.sampled_from([1, 2, 4]),
    bias=st.booleans(),
    mask=st.sampled_from(["none", "causal", "padding", "cross"]),
    seed=st.integers(0, 1000),
)
def test_attention_equals_torchs_multihead_attention(n_heads: int, bias: bool, mask: str, seed: int) -> None:
    torch.manual_seed(seed)
    theirs = nn.MultiheadAttention(C, n_heads, bias=bias, batch_first=True)
    for parameter in theirs.parameters():
        nn.init.normal_(parameter, std=0.3)
    ours = Attention(BlockConfig(d_model=C, n_heads=n_heads, attention_bias=bias))
    ours.load_state_dict(from_multihead(theirs.state_dict()))
    x = torch.randn(B, T, C)
    source = torch.randn(B, S, C) if mask == "cross" else x
    may_look = masks("none" if mask == "cross" else mask, source.shape[1])
    hidden = {"causal": {"attn_mask": ~causal_mask(T, T)}, "padding": {"key_padding_mask": ~masked(may_look)}}
    expected, weights = theirs(x, source, source, average_attn_weights=False, **hidden.get(mask, {}))
    seen: dict[str, Tensor] = {}
    ours.weights.register_forward_hook(lambda module, inputs, output: seen.update(weights=output))
    ours.implementation = "explicit"
    y = ours(x, may_look, memory=source)
    assert (y - expected).abs().max() <= 1e-5
    assert (seen["weights"] - weights).abs().max() <= 1e-5
    direction = torch.randn_like(y)
    (y * direction).sum().backward()
    (expected * direction).sum().backward()
    gradients = from_multihead({name: p.grad for name, p in theirs.named_parameters() if p.grad is not None})
    for name, parameter in ours.named_parameters():
        assert parameter.grad is not None
        assert (parameter.grad - gradients[name]).abs().max() <= 1e-4


def masked(mask: Mask) -> Tensor:
    return mask[:, 0, 0] if isinstance(mask, Tensor) else torch.tensor(True)


def from_multihead(theirs: dict[str, Tensor]) -> dict[str, Tensor]:
    """``nn.MultiheadAttention``'s weights by Kotha's names; Q, K and V are stored as one matrix."""
    ours = {}
    for name, tensor in theirs.items():
        if name.startswith("in_proj_"):
            for own, third in zip(("query", "key", "value"), tensor.chunk(3), strict=True):
                ours[f"{own}.{name.removeprefix('in_proj_')}"] = third
        else:
            ours[name.replace("out_proj", "output")] = tensor
    return ours


@settings(max_examples=10, deadline=None, derandomize=True)
@given(mask=st.sampled_from(NAMES), seed=st.integers(0, 1000))
def test_hooks_see_every_quantity_and_weights_sum_to_one(mask: str, seed: int) -> None:
    torch.manual_seed(seed)
    attention = Attention(BlockConfig(d_model=C, n_heads=4, n_kv_heads=2))
    attention.implementation = "explicit"
    seen: dict[str, Tensor] = {}
    for name in ("queries", "keys", "values", "scores", "masked_scores", "weights", "head_outputs"):
        hook = lambda module, inputs, output, name=name: seen.update({name: output})
        attention.get_submodule(name).register_forward_hook(hook)
    attention(torch.randn(B, T, C), masks(mask, T))
    assert {name: tuple(tensor.shape) for name, tensor in seen.items()} == {
        "queries": (B, 4, T, 4),
        "keys": (B, 2, T, 4),
        "values": (B, 2, T, 4),
        "scores": (B, 4, T, T),
        "masked_scores": (B, 4, T, T),
        "weights": (B, 4, T, T),
        "head_outputs": (B, 4, T, 4),
    }
    rows = seen["weights"].sum(-1)
    if mask == "a row that may look nowhere":
        assert (rows[1] == 0).all()
        rows = rows[0]
    assert (rows - 1).abs().max() <= 1e-6
    assert (seen["weights"] >= 0).all()


def test_dropout_applies_to_weights_only_in_training() -> None:
    torch.manual_seed(0)
    attention = Attention(BlockConfig(d_model=C, n_heads=4, attention_dropout=0.5))
    x = torch.randn(B, T, C)
    for implementation in ("explicit", "fused"):
        attention.implementation = implementation
        assert not torch.equal(attention.train()(x), attention(x))
        assert torch.equal(attention.eval()(x), attention(x))


def test_an_implementation_can_be_switched_on_a_live_model() -> None:
    layers = nn.ModuleList(Attention(BlockConfig(d_model=C, n_heads=4)) for _ in range(2))
    set_implementation(layers, "explicit")
    assert [layer.implementation for layer in layers] == ["explicit", "explicit"]


def test_causal_and_padding_masks_combine() -> None:
    real = torch.tensor([[True, True, False]])
    both = decoder_mask(real)
    assert isinstance(both, Tensor)
    assert both[0, 0].tolist() == [[True, False, False], [True, True, False], [True, True, False]]
    assert padding_mask(real).shape == (1, 1, 1, 3)
