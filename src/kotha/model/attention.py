"""Scaled dot-product attention, used by all models.

``softmax(Q K^T / sqrt(D)) V`` (Vaswani et al. 2017, https://arxiv.org/abs/1706.03762), where several query heads may
share a key-value head (grouped-query attention, GQA). Two implementations use the same weights: ``explicit`` follows
the textbook line by line, and a forward hook can observe each quantity as the output of a named module; ``fused`` is
one kernel that never materializes the scores. Tests check that both give the same results. The implementation can be
switched in any layer of a loaded model: ``attention.implementation = "explicit"``.

Keys and values come from x (self-attention), from ``memory`` (cross-attention), or from a cache, whose ``store`` takes
the new keys and values and returns all of them.
"""

import math
from collections.abc import Callable
from typing import Literal

import torch
from torch import Tensor, nn
from torch.nn.functional import dropout, scaled_dot_product_attention

from kotha.model.config import BlockConfig
from kotha.model.masks import Mask, as_tensor
from kotha.model.norm import RMSNorm
from kotha.model.position import Rotation, rotate

Implementation = Literal["explicit", "fused"]
KeysValues = tuple[Tensor, Tensor]
# What cross-attention attends to: encoder vectors (B, S, C), or the keys and values projected from them.
Memory = Tensor | KeysValues
Store = Callable[[Tensor, Tensor], KeysValues]


class Attention(nn.Module):
    """Mix information across positions.

    A hook can observe ``queries`` (B, H, T, D), ``keys`` and ``values`` (B, n_kv_heads, S, D), ``head_outputs``
    (B, H, T, D); in the explicit implementation also ``scores``, ``masked_scores`` and ``weights``, each (B, H, T, S).
    """

    def __init__(self, config: BlockConfig) -> None:
        super().__init__()
        self.d_head = config.d_head
        self.heads = tuple(range(config.n_heads))  # original head numbers, which pruning does not change
        self.queries_per_kv_head = (config.n_heads // config.n_kv_heads,) * config.n_kv_heads
        self.dropout = config.attention_dropout
        d_kv, bias = config.n_kv_heads * config.d_head, config.attention_bias
        self.query = nn.Linear(config.d_model, config.n_heads * config.d_head, bias=bias)
        self.key = nn.Linear(config.d_model, d_kv, bias=bias)
        self.value = nn.Linear(config.d_model, d_kv, bias=bias)
        self.output = nn.Linear(config.n_heads * config.d_head, config.d_model, bias=bias)
        self.query_norm = RMSNorm(config.d_head, config.norm_eps) if config.qk_norm else nn.Identity()
        self.key_norm = RMSNorm(config.d_head, config.norm_eps) if config.qk_norm else nn.Identity()
        self.queries, self.keys, self.values = nn.Identity(), nn.Identity(), nn.Identity()
        self.scores, self.masked_scores, self.weights = nn.Identity(), nn.Identity(), nn.Identity()
        self.head_outputs = nn.Identity()
        self.implementation: Implementation = "fused"

    def forward(
        self,
        x: Tensor,
        mask: Mask = None,
        rotation: Rotation | None = None,
        store: Store | None = None,
        memory: Memory | None = None,
    ) -> Tensor:
        """Attend to x itself, or to a memory: (B, T, C) -> (B, T, C)."""
        q, k, v = self._project(x, memory)
        if rotation is not None:
            q, k = rotate(q, rotation), rotate(k, rotation)
        if store is not None:
            k, v = store(k, v)  # S grows by the cached positions
        q, k, v = self.queries(q), self.keys(k), self.values(v)
        mix = self._mix_explicit if self.implementation == "explicit" else self._mix_fused
        heads = self.head_outputs(mix(q, k, v, mask))  # (B, H, T, D)
        y: Tensor = self.output(heads.transpose(1, 2).flatten(2))  # (B, T, C)
        return y

    def _project(self, x: Tensor, memory: Memory | None) -> tuple[Tensor, Tensor, Tensor]:
        memory = x if memory is None else memory
        k, v = self.project_kv(memory) if isinstance(memory, Tensor) else memory
        return self.query_norm(self._split(self.query(x))), k, v  # (B, H, T, D), each (B, n_kv_heads, S, D)

    def project_kv(self, x: Tensor) -> KeysValues:
        """Project vectors to keys and values: (B, S, C) -> two tensors (B, n_kv_heads, S, D)."""
        return self.key_norm(self._split(self.key(x))), self._split(self.value(x))

    def _split(self, x: Tensor) -> Tensor:
        return x.view(*x.shape[:-1], -1, self.d_head).transpose(1, 2)  # (B, T, H D) -> (B, H, T, D)

    def weigh(self, q: Tensor, k: Tensor, mask: Mask) -> Tensor:
        """Attention weights: (B, H, T, D), (B, n_kv_heads, S, D) -> (B, H, T, S)."""
        scores = self.scores(q @ self._repeat_kv(k).mT / math.sqrt(self.d_head))  # (B, H, T, S)
        allowed = as_tensor(mask, scores)
        if allowed is None:
            weights = self.masked_scores(scores).softmax(dim=-1)
        else:
            weights = self.masked_scores(scores.masked_fill(~allowed, -math.inf)).softmax(dim=-1)
            weights = weights.masked_fill(~allowed, 0)  # the softmax of a fully masked row is NaN
        observed: Tensor = self.weights(weights)
        return observed

    def _mix_explicit(self, q: Tensor, k: Tensor, v: Tensor, mask: Mask) -> Tensor:
        weights = dropout(self.weigh(q, k, mask), self.dropout, self.training)  # (B, H, T, S)
        mixed: Tensor = weights @ self._repeat_kv(v)  # (B, H, T, D)
        return mixed

    @property
    def even_groups(self) -> bool:
        """Whether all key heads have the same number of query heads."""
        return len(set(self.queries_per_kv_head)) == 1

    def _repeat_kv(self, x: Tensor) -> Tensor:
        """Repeat each key-value head for its query heads: (B, n_kv_heads, S, D) -> (B, H, S, D)."""
        if self.even_groups:
            return x.repeat_interleave(self.queries_per_kv_head[0], dim=1)
        each = zip(x.unbind(dim=1), self.queries_per_kv_head, strict=True)
        return torch.cat([one[:, None].expand(-1, n, -1, -1) for one, n in each], dim=1)

    def _mix_fused(self, q: Tensor, k: Tensor, v: Tensor, mask: Mask) -> Tensor:
        if not self.even_groups:  # the kernel requires groups of equal size
            k, v = self._repeat_kv(k), self._repeat_kv(v)
        tensor = None if isinstance(mask, str) else mask  # the kernel has a flag for causal masks
        rate, shared = self.dropout if self.training else 0.0, k.shape[1] < q.shape[1]
        return scaled_dot_product_attention(q, k, v, tensor, rate, isinstance(mask, str), enable_gqa=shared)


def set_implementation(model: nn.Module, implementation: Implementation) -> None:
    """Switch every attention layer of a model to an implementation."""
    for module in model.modules():
        if isinstance(module, Attention):
            module.implementation = implementation
