"""The transformer block of all models: attention and feed-forward, each with a residual connection.

With ``pre`` (pre-norm), the input to each part is normalized and the stack ends with a norm; with ``post``, each
residual sum is normalized, as in the 2017 paper. A decoder block has a third part, cross-attention to the encoder's
output.
"""

from collections.abc import Callable, Iterable, Sequence
from functools import partial

from torch import Tensor, nn

from kotha.model.attention import Attention, KeysValues, Memory, Store
from kotha.model.cache_interface import Cache
from kotha.model.config import BlockConfig, ModelConfig
from kotha.model.feedforward import make_feedforward
from kotha.model.masks import Mask
from kotha.model.norm import make_norm
from kotha.model.position import Rotation

Part = Callable[[Tensor], Tensor]


class Block(nn.Module):
    """One layer: (B, T, C) -> (B, T, C)."""

    def __init__(self, config: BlockConfig, cross: Attention | None = None) -> None:
        super().__init__()
        self.norm_order = config.norm_order
        self.attention = Attention(config)
        self.attention_norm = make_norm(config)
        self.cross = cross
        self.cross_norm = make_norm(config) if cross is not None else None
        self.feedforward = make_feedforward(config)
        self.feedforward_norm = make_norm(config)
        self.dropout = nn.Dropout(config.dropout)

    def forward(
        self,
        x: Tensor,
        mask: Mask = None,
        rotation: Rotation | None = None,
        store: Store | None = None,
        memory: Memory | None = None,
        memory_mask: Mask = None,
    ) -> Tensor:
        """Self-attention, then cross-attention if there is a memory, then feed-forward."""
        x = self._residual(x, self.attention_norm, lambda y: self.attention(y, mask, rotation, store))
        if self.cross is not None and self.cross_norm is not None:
            cross = self.cross
            x = self._residual(x, self.cross_norm, lambda y: cross(y, memory_mask, memory=memory))
        return self._residual(x, self.feedforward_norm, self.feedforward)

    def _residual(self, x: Tensor, norm: Part, part: Part) -> Tensor:
        drop: Part = self.dropout
        if self.norm_order == "pre":
            return x + drop(part(norm(x)))
        return norm(x + drop(part(x)))


class Stack(nn.Module):
    """A sequence of blocks and the final norm: (B, T, C) -> (B, T, C)."""

    def __init__(self, config: ModelConfig, blocks: Iterable[Block]) -> None:
        super().__init__()
        self.blocks = nn.ModuleList(blocks)
        self.norm = make_norm(config) if config.final_norm else nn.Identity()

    def forward(
        self,
        x: Tensor,
        mask: Mask = None,
        rotation: Rotation | None = None,
        cache: Cache | None = None,
        memories: Tensor | Sequence[KeysValues] | None = None,
        memory_mask: Mask = None,
    ) -> Tensor:
        """Apply all layers; ``memories`` is the encoder's output, (B, S, C), or its keys and values for each layer."""
        for layer, block in enumerate(self.blocks):
            store = None if cache is None else partial(cache.append, layer)
            memory = memories if memories is None or isinstance(memories, Tensor) else memories[layer]
            x = block(x, mask, rotation, store, memory, memory_mask)
        y: Tensor = self.norm(x)
        return y
