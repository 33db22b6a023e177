"""The KV cache interface; ``generation/cache.py`` implements it.

In a forward pass the model asks a cache for the positions of the new tokens, the attention mask, and, in each layer,
all keys and values including the new ones. How they are stored is up to the cache: a growing cache returns tensors of
the length read so far; a preallocated cache returns tensors of one fixed shape with a mask over the unwritten part, so
that every step is the same graph and can be recorded once.

A forward pass does not advance the cache. Its owner advances it outside the graph, or leaves it unchanged in order to
try several continuations or to discard tokens.
"""

from typing import Protocol

from torch import Tensor

from kotha.model.attention import KeysValues
from kotha.model.masks import Mask


class Cache(Protocol):
    """Keys and values of the positions read so far."""

    def positions(self, n_new: int) -> Tensor:
        """Positions of the next tokens: (T,), or (B, T) if rows differ."""
        ...

    def mask(self, n_new: int) -> Mask:
        """The attention mask: "causal" if the cache is empty, otherwise booleans for (B, H, T, S), or None."""
        ...

    def append(self, layer: int, keys: Tensor, values: Tensor) -> KeysValues:
        """Add a layer's new keys and values, (B, n_kv_heads, T, D), and return all of them, (B, n_kv_heads, S, D)."""
        ...
