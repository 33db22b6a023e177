"""The engine's own weights: as they are, narrower, or in eight bits.

At one token a step all weights but the embeddings are read once, so a step takes at least their bytes over the memory's
bandwidth. Narrower weights are fewer bytes, where the machine has fast products for them; that is measured, not
assumed. Queries, keys and values are made by one product instead of three. The model that was given stays as it was.
"""

import copy
import math
import time
from collections.abc import Callable
from typing import Literal, get_args

import torch
from torch import Tensor, nn

from kotha.errors import UsageError, nearest
from kotha.generate.int8 import Int8Linear
from kotha.model.attention import Attention, Memory, Store
from kotha.model.gpt import GPT
from kotha.model.masks import Mask
from kotha.model.position import Rotation, rotate

Weights = Literal["auto", "float32", "bfloat16", "int8"]
DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16, "int8": torch.float32}
# Faster by this much, or it is not worth the lost digits.
_WORTHWHILE = 1.3
# Below this many weights, calls take longer than reading.
_SMALL = 8_000_000
_PROBE_SHAPE = (8192, 512)
_PROBE_ROUNDS = 8


def prepare(model: GPT, weights: Weights | None) -> GPT:
    """A copy of the model for the engine; the model itself where nothing is to change."""
    if weights is None:
        return model
    if weights not in get_args(Weights):
        raise UsageError(f"weights={weights!r} is not known{nearest(str(weights), get_args(Weights))}")
    kind = choose_weights(model) if weights == "auto" else weights
    ours = copy.deepcopy(model).to(DTYPES[kind])
    for block in ours.stack.blocks:
        block.attention = JoinedAttention(block.attention)  # type: ignore[arg-type]
    if kind == "int8":
        _replace_linears(ours)
    return ours.eval()


def choose_weights(model: GPT) -> Weights:
    """What reads fastest here: timed on a CPU, known of a GPU; a small model has nothing to gain."""
    device = model.tokens.weight.device
    if device.type == "cuda":
        return "bfloat16" if torch.cuda.get_device_capability(device)[0] >= 8 else "float32"
    if sum(weight.numel() for weight in model.parameters()) < _SMALL:
        return "float32"
    outs, width = _PROBE_SHAPE
    x, linear = torch.ones(1, width), nn.Linear(width, outs, bias=False)
    narrow, small = nn.Linear(width, outs, bias=False, dtype=torch.bfloat16), Int8Linear(linear)
    wide = _seconds(lambda: linear(x))
    seconds: dict[Weights, float] = {
        "int8": _seconds(lambda: small(x)),
        "bfloat16": _seconds(lambda: narrow(x.bfloat16())),
    }
    best = min(seconds, key=lambda kind: seconds[kind])
    return best if wide / seconds[best] >= _WORTHWHILE else "float32"


class JoinedAttention(Attention):
    """Self-attention whose queries, keys and values come from one product; the rest is THE attention's."""

    def __init__(self, attention: Attention) -> None:
        nn.Module.__init__(self)
        self.d_head, self.heads, self.shares = attention.d_head, attention.heads, attention.shares
        self.dropout = attention.dropout
        self._reading = attention.reading
        for name, module in attention.named_children():
            if name not in ("query", "key", "value"):
                self.add_module(name, module)
        parts = [attention.query, attention.key, attention.value]
        self.widths = [part.out_features for part in parts]
        bias = attention.query.bias is not None
        self.joined = nn.Linear(attention.query.in_features, sum(self.widths), bias=bias, device="meta")
        self.joined.weight = nn.Parameter(torch.cat([part.weight.detach() for part in parts]), requires_grad=False)
        if bias:
            self.joined.bias = nn.Parameter(torch.cat([part.bias.detach() for part in parts]), requires_grad=False)

    def forward(
        self,
        x: Tensor,
        mask: Mask = None,
        rotation: Rotation | None = None,
        store: Store | None = None,
        memory: Memory | None = None,
    ) -> Tensor:
        """Look at x itself: (B, T, C) -> (B, T, C)."""
        assert memory is None, "only self-attention is joined"
        q, k, v = (self._split(part) for part in self.joined(x).split(self.widths, dim=-1))  # each (B, heads, T, D)
        q, k = self.query_norm(q), self.key_norm(k)
        if rotation is not None:
            q, k = rotate(q, rotation), rotate(k, rotation)
        if store is not None:
            k, v = store(k, v)
        mix = self._mix_explicit if self._reading == "explicit" else self._mix_fused
        if q.is_cuda and q.shape[2] == 1 and self.shares_evenly and torch.compiler.is_compiling():
            mix = mix_one
        y: Tensor = self.output(mix(q, k, v, mask).transpose(1, 2).flatten(2))  # (B, T, C)
        return y


def mix_one(q: Tensor, k: Tensor, v: Tensor, mask: Mask) -> Tensor:
    """Attention of one query a row: (B, H, 1, D), twice (B, n_kv_heads, S, D) -> (B, H, 1, D).

    Kernels for many queries compute 64 where one is asked for. Written as sums, a compiler makes two passes of it, one
    over the keys and one over the values, which is all that has to be read. Not compiled it would build every product.
    """
    grouped = q.view(q.shape[0], k.shape[1], -1, 1, q.shape[-1]).float()  # (B, n_kv_heads, shares, 1, D)
    scores = (grouped * k[:, :, None].float()).sum(dim=-1) / math.sqrt(q.shape[-1])  # (B, n_kv_heads, shares, S)
    if isinstance(mask, Tensor):
        scores = scores.masked_fill(~mask, -math.inf)
    weights = scores.softmax(dim=-1)[..., None]  # (B, n_kv_heads, shares, S, 1)
    return (weights * v[:, :, None].float()).sum(dim=-2).view(q.shape).to(q.dtype)


def _replace_linears(module: nn.Module) -> None:
    for name, child in module.named_children():
        if isinstance(child, nn.Linear):
            setattr(module, name, Int8Linear(child))
        else:
            _replace_linears(child)


def _seconds(product: Callable[[], Tensor]) -> float:
    """The quickest of a few products."""
    times = []
    for _ in range(_PROBE_ROUNDS):
        start = time.perf_counter()
        product()
        times.append(time.perf_counter() - start)
    return min(times)
