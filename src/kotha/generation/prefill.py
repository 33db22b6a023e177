"""Chunked prefill and prefix caching of prompts.

A long prompt would delay all other requests. It is therefore processed in chunks, one per step, into a separate cache,
and is assigned a row in the batch when it is complete. Chunks always start at the first token and are not batched with
other requests, so the result does not depend on those. A prompt can reuse the complete chunks that it shares with an
earlier prompt, and the result is identical bit for bit.
"""

from collections import OrderedDict
from collections.abc import Sequence
from itertools import takewhile
from typing import TYPE_CHECKING, Any

from kotha.generation.native_decoder import NativeDecoder

if TYPE_CHECKING:
    from kotha.generation.torch_decoder import TorchDecoder


class Prompt:
    """A prompt and its keys and values, allocated for its whole length."""

    def __init__(self, ids: Sequence[int], cache: Any) -> None:
        self.ids, self.cache = list(ids), cache  # a ``CacheMemory``
        self.cache.make_room(len(ids))
        self.read = 0

    @property
    def done(self) -> bool:
        """Whether the whole prompt has been processed."""
        return self.read == len(self.ids)


class PromptReader:
    """Processes prompts for an engine and caches the most recent ones in up to ``kept_bytes`` bytes."""

    def __init__(self, decoder: "NativeDecoder | TorchDecoder", kept_bytes: int) -> None:
        self._decoder, self._kept_bytes = decoder, kept_bytes
        self.piece = decoder.piece
        self._kept: OrderedDict[tuple[int, ...], Prompt] = OrderedDict()
        self.tokens_reused = 0

    def begin(self, ids: Sequence[int]) -> Prompt | None:
        """Start a prompt from its cached chunks; return None for a short prompt, which is processed in a batch."""
        if len(ids) <= self.piece:
            return None
        prompt = Prompt(ids, self._decoder.new_cache(len(ids)))
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
        self._decoder.read(prompt.cache, 0, [some], prompt.read)
        prompt.read += len(some)
        if prompt.done and prompt.cache.n_bytes <= self._kept_bytes:
            self._kept[tuple(prompt.ids)] = prompt
            self._kept.move_to_end(tuple(prompt.ids))
            while sum(each.cache.n_bytes for each in self._kept.values()) > self._kept_bytes:
                self._kept.popitem(last=False)

    def _common(self, ids: Sequence[int], other: Sequence[int]) -> int:
        """Return the length of the common prefix of two prompts, rounded down to complete chunks."""
        common = len(list(takewhile(lambda pair: pair[0] == pair[1], zip(ids, other, strict=False))))
        return common // self.piece * self.piece
