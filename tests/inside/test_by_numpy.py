"""Every traced number of a layer, recomputed in NumPy from the weights in double precision."""

import math
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from torch import nn

from kotha.inside.hook_points import layers
from kotha.inside.trace import Trace, trace
from kotha.model.block import Block

Array = NDArray[np.float64]
Weights = dict[str, Array]


def softmax(x: Array) -> Array:
    exponentials = np.exp(x - x.max(axis=-1, keepdims=True))
    return np.asarray(exponentials / exponentials.sum(axis=-1, keepdims=True))


def normalised(x: Array, weights: Weights, name: str, eps: float) -> Array:
    """LayerNorm if there is a bias, otherwise RMSNorm."""
    if f"{name}.bias" in weights:
        x = x - x.mean(axis=-1, keepdims=True)
    root = np.sqrt((x**2).mean(axis=-1, keepdims=True) + eps)
    return np.asarray(x / root * weights[f"{name}.weight"] + weights.get(f"{name}.bias", 0.0))


def linear(x: Array, weights: Weights, name: str) -> Array:
    return np.asarray(x @ weights[f"{name}.weight"].T + weights.get(f"{name}.bias", 0.0))


def turned(x: Array, base: float) -> Array:
    """Rotary positions as complex numbers: each pair (i, i + D/2) is rotated by its position."""
    half = x.shape[-1] // 2
    angles = np.arange(x.shape[2])[:, None] / base ** (np.arange(half) / half)
    pairs = (x[..., :half] + 1j * x[..., half:]) * np.exp(1j * angles)
    return np.concatenate((pairs.real, pairs.imag), axis=-1)


def attention(x: Array, memory: Array, weights: Weights, part: str, about: dict[str, Any]) -> Weights:
    """Compute every hook point of an attention module, head by head."""
    found: dict[str, list[Array]] = {}
    n_kv = about["n_kv_heads"]
    q, k, v = (
        np.stack(np.split(linear(source, weights, f"{part}.{name}"), heads, axis=-1), axis=1)
        for name, source, heads in (("query", x, about["n_heads"]), ("key", memory, n_kv), ("value", memory, n_kv))
    )
    if about["qk_norm"]:
        q = normalised(q, weights, f"{part}.query_norm", about["norm_eps"])
        k = normalised(k, weights, f"{part}.key_norm", about["norm_eps"])
    if about["rotary"]:
        q, k = turned(q, about["rotary_base"]), turned(k, about["rotary_base"])
    for head in range(about["n_heads"]):
        shared = head // (about["n_heads"] // n_kv)
        scores = q[:, head] @ k[:, shared].swapaxes(1, 2) / math.sqrt(about["d_head"])
        masked = scores.copy()
        if about["causal"] and part == "attention":
            masked[:, np.triu(np.ones(scores.shape[1:], dtype=bool), 1)] = -np.inf
        chances = softmax(masked)
        values = {"scores": scores, "masked_scores": masked, "weights": chances, "head_outputs": chances @ v[:, shared]}
        for name, value in values.items():
            found.setdefault(name, []).append(value)
    places = {"queries": q, "keys": k, "values": v, **{name: np.stack(each, 1) for name, each in found.items()}}
    joined = np.concatenate(found["head_outputs"], axis=-1)
    named = {f"{part}.{name}": value for name, value in places.items()}
    return {**named, part: linear(joined, weights, f"{part}.output")}


def feedforward(x: Array, weights: Weights, activation: str) -> Array:
    inner = linear(x, weights, "feedforward.up")
    if activation == "swiglu":
        gate = linear(x, weights, "feedforward.gate")
        inner = gate / (1 + np.exp(-gate)) * inner
    elif activation == "relu":
        inner = np.maximum(inner, 0)
    else:
        inner = inner * (1 + np.vectorize(math.erf)(inner / math.sqrt(2))) / 2
    return linear(inner, weights, "feedforward.down")


def layer(x: Array, memory: Array | None, weights: Weights, about: dict[str, Any]) -> Weights:
    """Compute every hook point of a layer from its input."""
    seen: Weights = {"residual_in": x}

    def around(x: Array, part: str) -> Array:
        before = normalised(x, weights, f"{part}_norm", about["norm_eps"]) if about["pre"] else x
        if part == "feedforward":
            seen[part] = feedforward(before, weights, about["activation"])
        else:
            own = {**about, "rotary": about["rotary"] and part == "attention"}
            looked_at = before if part == "attention" else memory
            assert looked_at is not None, "a decoder has encoder outputs"
            seen.update(attention(before, looked_at, weights, part, own))
        after = x + seen[part]
        normal = before if about["pre"] else normalised(after, weights, f"{part}_norm", about["norm_eps"])
        seen[f"{part}_norm"] = normal
        return after if about["pre"] else normal

    x = seen["residual_mid"] = around(x, "attention")
    if memory is not None:
        x = seen["residual_cross"] = around(x, "cross")
    seen["residual_out"] = around(x, "feedforward")
    return seen


def double(tensor: torch.Tensor) -> Array:
    return np.asarray(tensor.detach().double().numpy())


def compare(model: nn.Module, seen: Trace, name: str, block: Block, memory: Array | None = None) -> None:
    config: Any = model.config
    about = {
        **{key: getattr(config, key) for key in ("n_heads", "n_kv_heads", "d_head", "norm_eps", "qk_norm")},
        "activation": config.activation,
        "pre": config.norm_order == "pre",
        "rotary": getattr(config, "positions", "") == "rotary",
        "rotary_base": getattr(config, "rotary_base", None),
        "causal": config.family == "gpt" or name.startswith("decoder"),
    }
    weights = {key: double(value) for key, value in block.state_dict().items()}
    expected = layer(double(seen[f"{name}.residual_in"]), memory, weights, about)
    traced = {place.removeprefix(f"{name}."): double(seen[place]) for place in seen if place.startswith(f"{name}.")}
    assert set(traced) == set(expected)
    for place, value in expected.items():
        np.testing.assert_allclose(traced[place], value, rtol=1e-4, atol=2e-5, err_msg=f"{name}.{place}")


def test_every_number_of_a_layer_matches_numpy(family_member: tuple[nn.Module, list[torch.Tensor]]) -> None:
    model, inputs = family_member
    with trace(model) as seen:
        model(*inputs)
    for name, block in layers(model).items():
        compare(model, seen, name, block, double(seen["encoder.norm"]) if name.startswith("decoder") else None)


def test_a_wrong_number_is_detected(family_member: tuple[nn.Module, list[torch.Tensor]]) -> None:
    """The check above is not vacuous: it detects a value matrix that is changed after the pass."""
    model, inputs = family_member
    with trace(model) as seen:
        model(*inputs)
    name, block = next(iter(layers(model).items()))
    with torch.no_grad():
        block.attention.value.weight[0, 0] += 0.1
    with pytest.raises(AssertionError, match="attention"):
        compare(model, seen, name, block)
