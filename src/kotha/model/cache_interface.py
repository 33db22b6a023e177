"""The KV cache interface; ``generation/cache.py`` implements it.

In a forward pass, the cache provides the positions of the new tokens, the attention mask, and, for each layer, all keys
and values including the new ones. A growing cache returns tensors that are as long as the text so far. A preallocated
cache returns tensors of a fixed shape and masks the unwritten part, so every step has the same graph, which needs to be
recorded only once.

A forward pass does not advance the cache. The caller advances the cache outside the graph, or leaves it unchanged to
try several continuations or to discard tokens.
"""

from typing import Protocol

from torch import Tensor

from kotha.model.attention import KeysValues
from kotha.model.masks import Mask


class Cache(Protocol):
    """The keys and values of all earlier positions."""

    def positions(self, n_new: int) -> Tensor:
        """Positions of the next tokens: (T,), or (B, T) if they differ between rows."""
        ...

    def mask(self, n_new: int) -> Mask:
        """The attention mask: "causal" if the cache is empty, otherwise a boolean tensor for (B, H, T, S), or None."""
        ...

    def append(self, layer: int, keys: Tensor, values: Tensor) -> KeysValues:
        """Add a layer's new keys and values, (B, n_kv_heads, T, D), and return all of them, (B, n_kv_heads, S, D)."""
        ...
