"""The KV cache: preallocated keys and values, one row per request, each row with its own length.

A step writes in place, and tensors always have the same shape; the mask hides unwritten positions. A finished row is
reused without clearing it, because only its length determines which positions are visible. The rows in use are always
the first ones, so a half-empty batch takes half the time. When a row in the middle ends, the last one moves to its
position.

A layer's tensor is (rows, positions, heads, D), so the keys of a new token are contiguous. Each layer has its own
tensors, written with one operation, so that a compiler does not have to copy them.

The context length comes from an untrusted file, so memory is not allocated for all of it. The cache doubles in size
when it is full, and never grows beyond the free memory.
"""

import math
import re
from contextlib import suppress
from pathlib import Path

import torch
from torch import Tensor

from kotha.errors import KothaError
from kotha.model.attention import KeysValues
from kotha.model.config import TextConfig
from kotha.model.masks import Mask

# Positions allocated at first.
_FIRST = 1024
_MEMORY = Path("/proc/meminfo")


class RowCache:
    """A KV cache for ``n_rows`` rows starting at ``first``; ``lengths`` holds the tokens read by each.

    If ``even`` is set, all rows hold that number of tokens, and no mask per row is needed. Prompts are processed this
    way. The padding of shorter prompts is never attended to: it is hidden first by the causal mask and then by the
    row's length, until it is overwritten.
    """

    def __init__(
        self,
        config: TextConfig,
        max_rows: int,
        dtype: torch.dtype = torch.float32,
        device: str | torch.device = "cpu",
        longest: int | None = None,
    ) -> None:
        self.config, self.longest = config, config.context_length if longest is None else longest
        stack, (n_layers, _) = list(config.stacks().items())[-1]  # the decoder, if there are two
        n_heads = [len(config.key_heads_of(f"{stack}.{layer}.attention")) for layer in range(n_layers)]
        self.keys, self.values = (
            [torch.zeros(max_rows, 0, n, config.d_head, dtype=dtype, device=device) for n in n_heads] for _ in range(2)
        )
        self.lengths = torch.zeros(max_rows, dtype=torch.long, device=device)
        self.first, self.n_rows = 0, max_rows
        self.size = self.span = 0
        self.even: int | None = None
        self._rows = torch.arange(max_rows, device=device)
        self._now = self.lengths[:, None]  # positions of this pass's tokens, where every layer writes
        self.make_room(min(self.longest, _FIRST))

    def make_room(self, positions: int) -> None:
        """Make room for this number of positions; pointers to the tensors become invalid if they are reallocated."""
        if positions <= self.size:
            return
        size = min(max(positions, 2 * self.size), self.longest)
        self._check_memory(size)
        for tensors in (self.keys, self.values):
            for layer, kept in enumerate(tensors):
                tensors[layer] = kept.new_zeros(kept.shape[0], size, *kept.shape[2:])
                tensors[layer][:, : self.size] = kept
        self.size = self.span = size
        self._indices = torch.arange(size, device=self.lengths.device)

    def _check_memory(self, size: int) -> None:
        """Raise an error, before allocating, if the memory is too small."""
        one = sum(kept.shape[0] * kept.shape[2:].numel() * kept.element_size() for kept in self.keys)
        wanted, free = 2 * one * size, _free_memory(self.lengths.device)
        if wanted > free:
            raise KothaError(
                "the KV cache for {n:,} texts of {size:,} tokens needs {wanted:,.1f} GiB, but only "
                "{free:,.1f} GiB are free; generate fewer or shorter texts at once",
                n=len(self.lengths),
                size=size,
                wanted=wanted / 2**30,
                free=free / 2**30,
            )

    def positions(self, n_new: int) -> Tensor:
        """Positions of the next tokens: (B, T), or (T,) for even rows; a full row stays at its last position."""
        steps = self._indices[:n_new]
        if self.even is not None:
            return steps + self.even
        self._now = (self.lengths[: self.n_rows, None] + steps).clamp(max=self.size - 1)
        return self._now

    def mask(self, n_new: int) -> Mask:
        """Mask so that new tokens attend only to their row up to themselves: (B, 1, T, S), or (T, S) for even rows."""
        if self.even is None:
            return (self._indices[: self.span] <= self.positions(n_new)[..., None]).view(-1, 1, n_new, self.span)
        if n_new == 1 or not self.even:
            return "causal" if n_new > 1 else None
        return self._indices[: self.even + n_new] <= self.positions(n_new)[:, None]

    def append(self, layer: int, keys: Tensor, values: Tensor) -> KeysValues:
        """Write new keys and values, (B, n_kv_heads, T, D), and return the rows, (B, n_kv_heads, span, D)."""
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

    def put(self, row: int, other: "RowCache", count: int) -> None:
        """Copy the first ``count`` tokens of another cache's first row to a row."""
        for mine, theirs in zip((*self.keys, *self.values), (*other.keys, *other.values), strict=True):
            mine[row, :count] = theirs[0, :count]

    def move(self, source: int, target: int) -> None:
        """Copy a row over another."""
        for tensor in (*self.keys, *self.values, self.lengths):
            tensor[target] = tensor[source]

    def reorder(self, sources: Tensor, used: int) -> None:
        """Replace row i by row ``sources[i]``, (B,), for the ``used`` positions."""
        for tensor in (*self.keys, *self.values):
            tensor[: len(sources), :used] = tensor[sources, :used]


def _free_memory(device: torch.device) -> float:
    """Free memory in bytes, or infinity if unknown."""
    if device.type == "cuda":
        return float(torch.cuda.mem_get_info(device)[0])
    with suppress(OSError):
        found = re.search(r"MemAvailable:\s*(\d+) kB", _MEMORY.read_text(encoding="ascii"))
        return int(found[1]) * 1024.0 if found and device.type == "cpu" else math.inf
    return math.inf
