"""The memory of a KV cache: preallocated keys and values, with one row per request and a length per row.

Each step writes its keys and values in place. A finished row is reused without clearing, because only its length
determines which positions are valid. The rows in use are always the first ones: when a row in the middle ends, the last
row is moved into its place. A half-empty batch therefore takes half the work.

A layer's array is (rows, positions, heads, D), so the keys of a new token are contiguous. Each layer has its own arrays
and writes to them with one operation, so a compiler does not have to copy them.

The context length comes from an untrusted file, so memory is not allocated for the full length. The cache doubles when
it is full, and never grows beyond the free memory. ``cache.py`` is the same cache in torch tensors, with attention
masks.
"""

import math
import re
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

from kotha.errors import KothaError
from kotha.model.config import TextConfig

# Positions allocated at first.
_FIRST = 1024
_MEMORY = Path("/proc/meminfo")


class CacheMemory:
    """Keys and values of ``max_rows`` requests as NumPy arrays; ``lengths`` is the number of cached tokens per row."""

    lengths: Any
    keys: list[Any]
    values: list[Any]

    def __init__(self, config: TextConfig, max_rows: int, longest: int | None = None) -> None:
        self.config, self.longest = config, config.context_length if longest is None else longest
        stack, (n_layers, _) = list(config.stacks().items())[-1]  # that of the decoder, if there is an encoder too
        n_heads = [len(config.key_heads_of(f"{stack}.{layer}.attention")) for layer in range(n_layers)]
        self.keys, self.values = ([self._zeros((max_rows, 0, n, config.d_head)) for n in n_heads] for _ in range(2))
        self.lengths, self.size = self._zeros((max_rows,), counts=True), 0
        self.make_room(min(self.longest, _FIRST))

    @property
    def n_bytes(self) -> int:
        """The size of the keys and values in bytes."""
        return sum(array.nbytes for array in (*self.keys, *self.values))

    def make_room(self, positions: int) -> None:
        """Allocate at least this number of positions; pointers to reallocated arrays become invalid."""
        if positions <= self.size:
            return
        size = min(max(positions, 2 * self.size), self.longest)
        self._check_memory(size)
        for arrays in (self.keys, self.values):
            for layer, kept in enumerate(arrays):
                arrays[layer] = self._zeros((kept.shape[0], size, *kept.shape[2:]))
                arrays[layer][:, : self.size] = kept
        self.size = size

    def set_lengths(self, first: int, lengths: Sequence[int]) -> None:
        """Set the number of cached tokens per row, starting at row ``first``."""
        for row, length in enumerate(lengths, first):
            self.lengths[row] = length

    def put(self, row: int, other: "CacheMemory", count: int) -> None:
        """Copy the first ``count`` tokens of another cache's first row to a row."""
        for mine, theirs in zip((*self.keys, *self.values), (*other.keys, *other.values), strict=True):
            mine[row, :count] = theirs[0, :count]

    def move(self, source: int, target: int) -> None:
        """Copy one row over another."""
        for array in (*self.keys, *self.values, self.lengths):
            array[target] = array[source]

    def _zeros(self, shape: Sequence[int], counts: bool = False) -> Any:
        return np.zeros(shape, np.int64 if counts else np.float32)

    def _free_memory(self) -> float:
        """Return the free memory in bytes, or infinity if unknown."""
        with suppress(OSError):
            found = re.search(r"MemAvailable:\s*(\d+) kB", _MEMORY.read_text(encoding="ascii"))
            return int(found[1]) * 1024.0 if found else math.inf
        return math.inf

    def _check_memory(self, size: int) -> None:
        """Raise an error, before allocating, if the memory is too small."""
        one = sum(kept.shape[0] * math.prod(kept.shape[2:]) * kept.itemsize for kept in self.keys)
        wanted, free = 2 * one * size, self._free_memory()
        if wanted > free:
            raise KothaError(
                "the KV cache for {n:,} sequences of {size:,} tokens needs {wanted:,.1f} GiB, but only {free:,.1f} "
                "GiB is free; generate fewer or shorter texts at once",
                n=len(self.lengths),
                size=size,
                wanted=wanted / 2**30,
                free=free / 2**30,
            )
