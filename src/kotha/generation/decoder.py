"""What the engine asks of a decoder: rows with a KV cache, prompts read into them, and steps that sample tokens.

The engine decides which request has which row; a decoder computes. There are two: ``native_decoder.py`` with NumPy and
C, ``torch_decoder.py`` with torch.
"""

from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, Protocol

from kotha.generation.request import Answer, Seen

# Waits for started steps; each answer with its tokens and their probabilities, empty if not requested.
Drawn = Callable[[], Iterable[tuple[Answer, list[int], list[Seen]]]]


@dataclass(frozen=True)
class BatchShape:
    """The sizes of a batch."""

    max_rows: int
    vocab_size: int  # tokens that can be sampled
    ends: frozenset[int] = frozenset()  # end tokens, exempt from the repetition penalty


class Decoder(Protocol):
    """Computes for the engine; rows in use are always the first ones."""

    cache: Any  # a ``CacheMemory``
    block: int  # steps between checks for ended rows
    overlaps: bool  # whether that check overlaps with the next steps
    piece: int  # tokens per piece of a long prompt

    def at_work(self) -> AbstractContextManager[None]:
        """The context in which all other methods are called."""

    def new_cache(self, n_tokens: int) -> Any:
        """A cache for one prompt of this length, to ``read`` into and ``put`` into a row of ``cache``."""

    def make_room(self, positions: int) -> None:
        """Make room in the cache for this number of positions."""

    def put(self, first: int, answers: Sequence[Answer]) -> None:
        """Assign rows to answers, starting at ``first``."""

    def move(self, source: int, target: int) -> None:
        """Copy a row over another."""

    def read(self, cache: Any, first: int, texts: Sequence[Sequence[int]], start: int = 0) -> None:
        """Read texts into rows of a cache, starting at row ``first``, after the ``start`` tokens already there."""

    def start(self, answers: Sequence[Answer], count: int) -> Drawn:
        """Start ``count`` steps for the answers, whose rows are the first ones."""
