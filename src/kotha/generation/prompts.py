"""Prompts, read a piece at a time (chunked prefill), and remembered for those that begin alike (prefix caching).

A long prompt would keep everybody waiting who is being written to. So it is read in pieces, one a step, into keys and
values of its own, and gets its row when it is done. Pieces are cut from the first token on and each is read alone: what
comes out does not depend on who else is there, and a prompt that begins as an earlier one did can take over that one's
whole pieces, bit for bit what it would have computed itself.
"""

from collections import OrderedDict
from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from kotha.generation.cache import RowCache
from kotha.model.attention import KeysValues
from kotha.model.masks import Mask

# Tokens that are read at once: so many that products are worth their while, so few that nobody notices.
_PIECE = {"cuda": 512, "cpu": 64}


class Prompt:
    """A ``model.cache.Cache`` for one prompt, laid out in its whole length."""

    def __init__(self, ids: Sequence[int], cache: RowCache) -> None:
        self.ids, self.read = list(ids), 0
        self.keys, self.values = (
            [kept.new_empty(1, len(ids), *kept.shape[2:]) for kept in tensors] for tensors in (cache.keys, cache.values)
        )

    @property
    def done(self) -> bool:
        """Whether all of it was read."""
        return self.read == len(self.ids)

    @property
    def n_bytes(self) -> int:
        """What its keys and values take."""
        return sum(tensor.nbytes for tensor in (*self.keys, *self.values))

    def positions(self, n_new: int) -> Tensor:
        """Behind what was read: (T,)."""
        return torch.arange(self.read, self.read + n_new, device=self.keys[0].device)

    def mask(self, n_new: int) -> Mask:
        """Each new token looks at what was read, and at itself."""
        if not self.read:
            return "causal"
        return torch.arange(self.read + n_new, device=self.keys[0].device) <= self.positions(n_new)[:, None]

    def append(self, layer: int, keys: Tensor, values: Tensor) -> KeysValues:
        """Keep them behind what was read; all of it is looked at."""
        end = self.read + keys.shape[2]
        kept = self.keys[layer], self.values[layer]
        for tensor, new in zip(kept, (keys, values), strict=True):
            tensor[:, self.read : end] = new.transpose(1, 2)
        return kept[0][:, :end].transpose(1, 2), kept[1][:, :end].transpose(1, 2)

    def take_over(self, other: "Prompt", count: int) -> None:
        """Begin with what another has read."""
        for mine, theirs in zip((*self.keys, *self.values), (*other.keys, *other.values), strict=True):
            mine[:, :count] = theirs[:, :count]
        self.read = count


class PromptReader:
    """Reads prompts for an engine, and keeps the last ones as far as they fit into so many bytes."""

    def __init__(self, read_on: Callable[[Prompt, Sequence[int]], None], cache: RowCache, kept_bytes: int) -> None:
        self._read_on, self._cache, self._kept_bytes = read_on, cache, kept_bytes
        self.piece = _PIECE.get(cache.lengths.device.type, _PIECE["cpu"])
        self._kept: OrderedDict[tuple[int, ...], Prompt] = OrderedDict()
        self.tokens_read, self.tokens_reused = 0, 0

    def begin(self, ids: Sequence[int]) -> Prompt | None:
        """A prompt to be read here; None for a short one, which can be read beside others."""
        if len(ids) <= self.piece:
            return None
        prompt = Prompt(ids, self._cache)
        common, known = max(((self._common(ids, each), each) for each in self._kept), default=(0, ()))
        if common:
            prompt.take_over(self._kept[known], common)
            self._kept.move_to_end(known)
            self.tokens_reused += common
        return prompt

    def go_on(self, prompt: Prompt) -> None:
        """Read its next piece."""
        some = prompt.ids[prompt.read : prompt.read + self.piece]
        self._read_on(prompt, some)
        prompt.read += len(some)
        self.tokens_read += len(some)
        if prompt.done:
            self._keep(prompt)

    def _common(self, ids: Sequence[int], other: Sequence[int]) -> int:
        """How many tokens two prompts begin with alike, in whole pieces."""
        count = 0
        for start in range(0, min(len(ids), len(other)) - self.piece + 1, self.piece):
            if tuple(ids[start : start + self.piece]) != tuple(other[start : start + self.piece]):
                break
            count = start + self.piece
        return count

    def _keep(self, prompt: Prompt) -> None:
        if prompt.n_bytes > self._kept_bytes:
            return
        self._kept[tuple(prompt.ids)] = prompt
        self._kept.move_to_end(tuple(prompt.ids))
        while sum(each.n_bytes for each in self._kept.values()) > self._kept_bytes:
            self._kept.popitem(last=False)
