"""Chunked prefill and prefix caching of prompts.

A long prompt would delay all other requests, so it is processed in chunks, one per step, into its own keys and values,
and gets a row when it is complete. Chunks start at the first token and are processed separately, so the result does not
depend on other requests. A prompt can therefore reuse the complete chunks that it has in common with an earlier one;
they are bit for bit identical to those that it would compute itself.
"""

from collections import OrderedDict
from collections.abc import Sequence
from itertools import takewhile

from kotha.generation.cache import RowCache
from kotha.generation.decode_step import Steps

# Tokens per chunk: enough for efficient matrix products, and few enough to avoid a noticeable delay.
_PIECE = {"cuda": 512, "cpu": 64}


class Prompt:
    """A prompt and its keys and values, allocated for its whole length."""

    def __init__(self, ids: Sequence[int], like: RowCache) -> None:
        kept = like.keys[0]
        self.ids, self.cache = list(ids), RowCache(like.config, 1, kept.dtype, kept.device, longest=len(ids))
        self.cache.make_room(len(ids))
        self.read = 0

    @property
    def done(self) -> bool:
        """Whether the whole prompt has been read."""
        return self.read == len(self.ids)

    @property
    def n_bytes(self) -> int:
        """The size of its keys and values in bytes."""
        return sum(tensor.nbytes for tensor in (*self.cache.keys, *self.cache.values))


class PromptReader:
    """Processes prompts for an engine and caches the most recent ones in up to ``kept_bytes`` bytes."""

    def __init__(self, steps: Steps, kept_bytes: int) -> None:
        self._steps, self._kept_bytes = steps, kept_bytes
        self.piece = _PIECE.get(steps.rows.device.type, _PIECE["cpu"])
        self._kept: OrderedDict[tuple[int, ...], Prompt] = OrderedDict()
        self.tokens_reused = 0

    def begin(self, ids: Sequence[int]) -> Prompt | None:
        """Start a prompt, with the chunks that are cached; None for a short one, which is processed in a batch."""
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

    def read_next(self, prompt: Prompt) -> None:
        """Process the next chunk of a prompt."""
        some = prompt.ids[prompt.read : prompt.read + self.piece]
        self._steps.read(prompt.cache, 0, [some], prompt.read)
        prompt.read += len(some)
        if prompt.done and prompt.n_bytes <= self._kept_bytes:
            self._kept[tuple(prompt.ids)] = prompt
            self._kept.move_to_end(tuple(prompt.ids))
            while sum(each.n_bytes for each in self._kept.values()) > self._kept_bytes:
                self._kept.popitem(last=False)

    def _common(self, ids: Sequence[int], other: Sequence[int]) -> int:
        """The length of the common prefix of two prompts, in complete chunks."""
        common = len(list(takewhile(lambda pair: pair[0] == pair[1], zip(ids, other, strict=False))))
        return common // self.piece * self.piece
