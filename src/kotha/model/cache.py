"""The KV cache: what generation must offer so that a model need not read its past again.

The model asks a cache three things in a forward pass: where the new tokens stand, who may look at whom, and, in
each layer, all keys and values once the new ones are added. It never says how they are kept. A cache that grows
gives back tensors of the length read so far; a cache laid out in advance gives back its whole tensors, always of
one shape, with a mask that hides the part not yet written: then every step is the same graph, and a compiler can
record it once.

A forward pass does not move the cache on. Whoever owns it says when the new tokens count as read, outside of the
graph, and may as well not say so: to try several continuations, or to take a guess back.
"""

from typing import Protocol

from torch import Tensor

from kotha.model.attention import KeysValues
from kotha.model.masks import Mask


class Cache(Protocol):
    """The keys and values of positions already read."""

    def positions(self, n_new: int) -> Tensor:
        """Where the next tokens stand: (T,), or (B, T) where rows differ."""
        ...

    def mask(self, n_new: int) -> Mask:
        """Who may look at whom: "causal" while nothing was read, else booleans for (B, H, T, S), or None."""
        ...

    def append(self, layer: int, keys: Tensor, values: Tensor) -> KeysValues:
        """Add a layer's new keys and values, (B, n_kv_heads, T, D), and give back all, (B, n_kv_heads, S, D)."""
        ...
