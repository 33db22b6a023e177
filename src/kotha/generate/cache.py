"""The KV cache: keys and values in tensors laid out in advance, a row a request, each with its own length.

A step writes in place and always sees one shape; what a row has not written yet is hidden by the mask. A row that is
done is given to the next request: nothing is cleared, because a row's length alone says what counts. The rows in use
are always the first ones, so that a half-empty batch costs half: a row that ends in the middle is replaced by the last.

A layer's tensor is (rows, positions, heads, D), so that a new token's keys are one stretch of memory. Each layer has
its own, and all of it is written to at once: a compiler then sees that nothing needs to be copied.
"""

import torch
from torch import Tensor

from kotha.model.attention import KeysValues
from kotha.model.config import TextConfig
from kotha.model.masks import Mask


class RowCache:
    """A ``model.cache.Cache`` for the first ``n_rows`` rows; ``lengths`` says how much each has read."""

    def __init__(
        self,
        config: TextConfig,
        max_rows: int,
        dtype: torch.dtype = torch.float32,
        device: str | torch.device = "cpu",
        size: int | None = None,
    ) -> None:
        self.size = config.context_length if size is None else size
        stack, (n_layers, _) = list(config.stacks().items())[-1]  # the one that writes
        n_heads = [len(config.key_heads_of(f"{stack}.{layer}.attention")) for layer in range(n_layers)]
        shapes = [(max_rows, self.size, n, config.d_head) for n in n_heads]
        self.keys = [torch.zeros(shape, dtype=dtype, device=device) for shape in shapes]
        self.values = [torch.zeros(shape, dtype=dtype, device=device) for shape in shapes]
        self.lengths = torch.zeros(max_rows, dtype=torch.long, device=device)
        self.n_rows = max_rows
        self.span = self.size
        self.even: int | None = None  # the length of all rows, where the host knows that it is one: no mask is needed
        self._rows = torch.arange(max_rows, device=device)
        self._places = torch.arange(self.size, device=device)
        self._now = self.lengths[:, None]  # where the tokens of this pass stand; every layer writes there

    def positions(self, n_new: int) -> Tensor:
        """Where the next tokens stand: (B, T), or (T,) for even rows; a full row stays at its last place."""
        steps = self._places[:n_new]
        if self.even is not None:
            return steps + self.even
        self._now = (self.lengths[: self.n_rows, None] + steps).clamp(max=self.size - 1)
        return self._now

    def mask(self, n_new: int) -> Mask:
        """Each new token looks at what its row has read and at itself: (B, 1, T, S)."""
        if self.even is not None and n_new == 1:
            return None
        positions = self.positions(n_new)
        return (self._places[: self.span] <= positions[..., None]).view(-1, 1, n_new, self.span)

    def append(self, layer: int, keys: Tensor, values: Tensor) -> KeysValues:
        """Write new keys and values, (B, n_kv_heads, T, D), and give back the rows, (B, n_kv_heads, span, D)."""
        n, kept = self.n_rows, (self.keys[layer], self.values[layer])
        for tensor, new in zip(kept, (keys, values), strict=True):
            if self.even is not None:
                tensor[:n, self.even : self.even + new.shape[2]] = new.transpose(1, 2)
            else:
                tensor[self._rows[:n, None], self._now] = new.transpose(1, 2)
        span = self.span if self.even is None else self.even + keys.shape[2]
        return kept[0][:n, :span].transpose(1, 2), kept[1][:n, :span].transpose(1, 2)

    def advance(self, count: int = 1) -> None:
        """Count the new tokens as read."""
        self.lengths[: self.n_rows].add_(count)

    def move(self, source: int, target: int) -> None:
        """Copy a row over another."""
        for tensor in (*self.keys, *self.values, self.lengths):
            tensor[target] = tensor[source]

    def reorder(self, sources: Tensor, used: int) -> None:
        """Row i becomes what row ``sources[i]`` was, as far as it is used: (B,)."""
        for tensor in (*self.keys, *self.values):
            tensor[: len(sources), :used] = tensor[sources, :used]

    def filling(self, rows: Tensor) -> "Filling":
        """A cache that reads whole prompts into some rows: (R,)."""
        return Filling(self, rows)


class Filling:
    """Reads prompts from their first token into rows of a cache; shorter ones are filled up at their end.

    What stands behind a prompt's end is never seen: nobody looks ahead here, and in later steps the row's length hides
    it until it is overwritten.
    """

    def __init__(self, cache: RowCache, rows: Tensor) -> None:
        self._cache, self._rows = cache, rows

    def positions(self, n_new: int) -> Tensor:
        """From the first on: (T,)."""
        return self._cache._places[:n_new]

    def mask(self, n_new: int) -> Mask:
        """Nobody looks ahead."""
        return "causal"

    def append(self, layer: int, keys: Tensor, values: Tensor) -> KeysValues:
        """Keep them in their rows; only they are looked at."""
        for kept, new in ((self._cache.keys[layer], keys), (self._cache.values[layer], values)):
            kept[self._rows, : new.shape[2]] = new.transpose(1, 2)
        return keys, values
