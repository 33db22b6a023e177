"""The KV cache: keys and values in tensors laid out in advance, a row a request, each with its own length.

A step writes in place and always sees one shape; what a row has not written yet is hidden by the mask. A row that is
done is given to the next request: nothing is cleared, because a row's length alone says what counts. The rows in use
are always the first ones, so that a half-empty batch costs half: a row that ends in the middle is replaced by the last.

A layer's tensor is (rows, positions, heads, D), so that a new token's keys are one stretch of memory. Each layer has
its own, and all of it is written to at once: a compiler then sees that nothing needs to be copied.

How long a model's context is stands in a file that anyone may have written, so room is not made for all of it but for
what is read, doubled when it is full, and never for more than there is memory.
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

# Positions that are laid out at first.
_FIRST = 1024
_MEMORY = Path("/proc/meminfo")


class RowCache:
    """A ``model.cache.Cache`` for ``n_rows`` rows from ``first`` on; ``lengths`` says how much each has read.

    With ``even`` all of them have read as much, and the host knows it: what they look at needs no mask of its own.
    Prompts are read so; what fills up the shorter ones is never seen: nobody looks ahead, and in later steps the row's
    length hides it until it is overwritten.
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
        stack, (n_layers, _) = list(config.stacks().items())[-1]  # the one that writes
        n_heads = [len(config.key_heads_of(f"{stack}.{layer}.attention")) for layer in range(n_layers)]
        self.keys, self.values = (
            [torch.zeros(max_rows, 0, n, config.d_head, dtype=dtype, device=device) for n in n_heads] for _ in range(2)
        )
        self.lengths = torch.zeros(max_rows, dtype=torch.long, device=device)
        self.first, self.n_rows = 0, max_rows
        self.size = self.span = 0
        self.even: int | None = None
        self._rows = torch.arange(max_rows, device=device)
        self._now = self.lengths[:, None]  # where the tokens of this pass stand; every layer writes there
        self.make_room(min(self.longest, _FIRST))

    def make_room(self, positions: int) -> None:
        """Hold so many positions; where tensors move for it, what points to them must be made anew."""
        if positions <= self.size:
            return
        size = min(max(positions, 2 * self.size), self.longest)
        self._check_memory(size)
        for tensors in (self.keys, self.values):
            for layer, kept in enumerate(tensors):
                tensors[layer] = kept.new_zeros(kept.shape[0], size, *kept.shape[2:])
                tensors[layer][:, : self.size] = kept
        self.size = self.span = size
        self._places = torch.arange(size, device=self.lengths.device)

    def _check_memory(self, size: int) -> None:
        """Refuse what this machine cannot hold, before it is asked to."""
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
        """Where the next tokens stand: (B, T), or (T,) for even rows; a full row stays at its last place."""
        steps = self._places[:n_new]
        if self.even is not None:
            return steps + self.even
        self._now = (self.lengths[: self.n_rows, None] + steps).clamp(max=self.size - 1)
        return self._now

    def mask(self, n_new: int) -> Mask:
        """Each new token looks at what its row has read and at itself: (B, 1, T, S), or (T, S) for even rows."""
        if self.even is None:
            return (self._places[: self.span] <= self.positions(n_new)[..., None]).view(-1, 1, n_new, self.span)
        if n_new == 1 or not self.even:
            return "causal" if n_new > 1 else None
        return self._places[: self.even + n_new] <= self.positions(n_new)[:, None]

    def append(self, layer: int, keys: Tensor, values: Tensor) -> KeysValues:
        """Write new keys and values, (B, n_kv_heads, T, D), and give back the rows, (B, n_kv_heads, span, D)."""
        rows, kept = slice(self.first, self.first + self.n_rows), (self.keys[layer], self.values[layer])
        end = self.span if self.even is None else self.even + keys.shape[2]
        for tensor, new in zip(kept, (keys, values), strict=True):
            if self.even is None:
                tensor[self._rows[rows, None], self._now] = new.transpose(1, 2)
            else:
                tensor[rows, self.even : end] = new.transpose(1, 2)
        if self.even == 0:
            return keys, values  # only they are looked at
        return kept[0][rows, :end].transpose(1, 2), kept[1][rows, :end].transpose(1, 2)

    def advance(self, count: int = 1) -> None:
        """Count the new tokens as read."""
        self.lengths[: self.n_rows].add_(count)

    def put(self, row: int, other: "RowCache", count: int) -> None:
        """Let a row begin with as many tokens of the first row of another cache."""
        for mine, theirs in zip((*self.keys, *self.values), (*other.keys, *other.values), strict=True):
            mine[row, :count] = theirs[0, :count]

    def move(self, source: int, target: int) -> None:
        """Copy a row over another."""
        for tensor in (*self.keys, *self.values, self.lengths):
            tensor[target] = tensor[source]

    def reorder(self, sources: Tensor, used: int) -> None:
        """Row i becomes what row ``sources[i]`` was, as far as it is used: (B,)."""
        for tensor in (*self.keys, *self.values):
            tensor[: len(sources), :used] = tensor[sources, :used]


def _free_memory(device: torch.device) -> float:
    """Bytes that could still be had; infinite where nobody says."""
    if device.type == "cuda":
        return float(torch.cuda.mem_get_info(device)[0])
    with suppress(OSError):
        found = re.search(r"MemAvailable:\s*(\d+) kB", _MEMORY.read_text(encoding="ascii"))
        return int(found[1]) * 1024.0 if found and device.type == "cpu" else math.inf
    return math.inf
