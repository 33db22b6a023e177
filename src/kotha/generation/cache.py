"""The KV cache of a torch model: the rows of ``cache_memory.py`` as tensors, with positions and masks for attention.

The tensors have the same shape in every step, and the mask hides unwritten positions.
"""

from collections.abc import Sequence

import torch
from torch import Tensor

from kotha.generation.cache_memory import CacheMemory
from kotha.model.attention import KeysValues
from kotha.model.config import TextConfig
from kotha.model.masks import Mask


class RowCache(CacheMemory):
    """A KV cache for ``n_rows`` rows starting at ``first``; ``lengths`` is the number of cached tokens per row.

    If ``even`` is set, all rows have that number of tokens and need no mask per row, as when prompts are processed. The
    padding of shorter prompts is never attended to: the causal mask hides it first, then the row's length, until it is
    overwritten.
    """

    lengths: Tensor
    keys: list[Tensor]
    values: list[Tensor]

    def __init__(
        self,
        config: TextConfig,
        max_rows: int,
        dtype: torch.dtype = torch.float32,
        device: str | torch.device = "cpu",
        longest: int | None = None,
    ) -> None:
        self.dtype, self.device = dtype, torch.device(device)
        self.first, self.n_rows = 0, max_rows
        self.span = 0
        self.even: int | None = None
        self._rows = torch.arange(max_rows, device=device)
        super().__init__(config, max_rows, longest)
        self._now = self.lengths[:, None]  # positions of this pass's tokens; every layer writes there

    def make_room(self, positions: int) -> None:
        """Allocate at least this number of positions; pointers to reallocated tensors become invalid."""
        size = self.size
        super().make_room(positions)
        if self.size > size:
            self.span = self.size
            self._indices = torch.arange(self.size, device=self.device)

    def positions(self, n_new: int) -> Tensor:
        """Return the next tokens' positions: (B, T), or (T,) for even rows; a full row stays at its last position."""
        steps = self._indices[:n_new]
        if self.even is not None:
            return steps + self.even
        self._now = (self.lengths[: self.n_rows, None] + steps).clamp(max=self.size - 1)
        return self._now

    def mask(self, n_new: int) -> Mask:
        """Return the mask that limits each token to its row up to itself: (B, 1, T, S), or (T, S) for even rows."""
        if self.even is None:
            return (self._indices[: self.span] <= self.positions(n_new)[..., None]).view(-1, 1, n_new, self.span)
        if n_new == 1 or not self.even:
            return "causal" if n_new > 1 else None
        return self._indices[: self.even + n_new] <= self.positions(n_new)[:, None]

    def append(self, layer: int, keys: Tensor, values: Tensor) -> KeysValues:
        """Write keys and values (B, n_kv_heads, T, D), and return those of the full rows (B, n_kv_heads, span, D)."""
        rows, kept = slice(self.first, self.first + self.n_rows), (self.keys[layer], self.values[layer])
        end = self.span if self.even is None else self.even + keys.shape[2]
        for tensor, new in zip(kept, (keys, values), strict=True):
            if self.even is None:
                tensor[self._rows[rows, None], self._now] = new.transpose(1, 2)
            else:
                tensor[rows, self.even : end] = new.transpose(1, 2)
        if self.even == 0:
            return keys, values  # nothing else is attended to
        return kept[0][rows, :end].transpose(1, 2), kept[1][rows, :end].transpose(1, 2)

    def advance(self, count: int = 1) -> None:
        """Advance the length of each row by ``count`` tokens."""
        self.lengths[: self.n_rows].add_(count)

    def reorder(self, sources: Tensor, used: int) -> None:
        """Replace the ``used`` positions of row i by those of row ``sources[i]``; ``sources`` is (B,)."""
        for tensor in (*self.keys, *self.values):
            tensor[: len(sources), :used] = tensor[sources, :used]

    def _zeros(self, shape: Sequence[int], counts: bool = False) -> Tensor:
        return torch.zeros(shape, dtype=torch.long if counts else self.dtype, device=self.device)

    def _free_memory(self) -> float:
        if self.device.type == "cuda":
            return float(torch.cuda.mem_get_info(self.device)[0])
        return super()._free_memory() if self.device.type == "cpu" else float("inf")
