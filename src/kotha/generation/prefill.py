"""Prompts, read a piece at a time (chunked prefill), and remembered for those that begin alike (prefix caching).

A long prompt would keep everybody waiting who is being written to. So it is read in pieces, one a step, into keys and
values of its own, and gets its row when it is done. Pieces are cut from the first token on and each is read alone: what
comes out does not depend on who else is there, and a prompt that begins as an earlier one did can take over that one's
whole pieces, bit for bit what it would have computed itself.
"""

from collections import OrderedDict
from collections.abc import Sequence
from itertools import takewhile

from kotha.generation.cache import RowCache
from kotha.generation.decode_step import Steps

# Tokens that are read at once: so many that products are worth their while, so few that nobody notices.
_PIECE = {"cuda": 512, "cpu": 64}


class Prompt:
    """A prompt and its own keys and values, laid out in its whole length."""

    def __init__(self, ids: Sequence[int], like: RowCache) -> None:
        kept = like.keys[0]
        self.ids, self.cache = list(ids), RowCache(like.config, 1, kept.dtype, kept.device, longest=len(ids))
        self.cache.make_room(len(ids))
        self.read = 0

    @property
    def done(self) -> bool:
        """Whether all of it was read."""
        return self.read == len(self.ids)

    @property
    def n_bytes(self) -> int:
        """What its keys and values take."""
        return sum(tensor.nbytes for tensor in (*self.cache.keys, *self.cache.values))


class PromptReader:
    """Reads prompts for an engine, and keeps the last ones as far as they fit into so many bytes."""

    def __init__(self, steps: Steps, kept_bytes: int) -> None:
        self._steps, self._kept_bytes = steps, kept_bytes
        self.piece = _PIECE.get(steps.rows.device.type, _PIECE["cpu"])
        self._kept: OrderedDict[tuple[int, ...], Prompt] = OrderedDict()
        self.tokens_reused = 0

    def begin(self, ids: Sequence[int]) -> Prompt | None:
        """A prompt to be read here; None for a short one, which can be read beside others."""
        if len(ids) <= self.piece:
            return None
        prompt = Prompt(ids, self._steps.cache)
        common, known = max(((self._common(ids, each), each) for each in self._kept), default=(0, ()))
        if common:
            prompt.cache.put(0, self._kept[known].cache, common)
            prompt.read = common
            self._kept.move_to_end(known)
            self.tokens_reused += common
        return prompt

    def go_on(self, prompt: Prompt) -> None:
        """Read its next piece."""
        some = prompt.ids[prompt.read : prompt.read + self.piece]
        self._steps.read(prompt.cache, 0, [some], prompt.read)
        prompt.read += len(some)
        if prompt.done and prompt.n_bytes <= self._kept_bytes:
            self._kept[tuple(prompt.ids)] = prompt
            self._kept.move_to_end(tuple(prompt.ids))
            while sum(each.n_bytes for each in self._kept.values()) > self._kept_bytes:
                self._kept.popitem(last=False)

    def _common(self, ids: Sequence[int], other: Sequence[int]) -> int:
        """How many tokens two prompts begin with alike, in whole pieces."""
        alike = len(list(takewhile(lambda pair: pair[0] == pair[1], zip(ids, other, strict=False))))
        return alike // self.piece * self.piece
