"""Passages: what is read at one time from a document, to be cut in two or paired with another document.

A document that fits is one passage; a longer one is cut into as few as will do, all of about one length. Over an epoch
every word is read once. A document too short to be cut in two is put in front of the next one that is long enough (the
last ones, behind it): nothing is lost, and such a passage runs over from one text into another.
"""

import numpy as np
from numpy.typing import NDArray

from kotha.errors import DataError
from kotha.text.shards import Split

# Tokens that can be cut in two.
_SHORTEST = 2

Ids = NDArray[np.int64]


class Passages:
    """The passages of a split, by number. A *text* is a document, or several where short ones were joined."""

    def __init__(self, split: Split, longest: int) -> None:
        assert longest > _SHORTEST, "cutting a document would leave single tokens"
        self._split = split
        self._lengths = np.diff(split.offsets).astype(np.int64) - 1  # without the mark that ends each
        enough = np.flatnonzero(self._lengths >= _SHORTEST)
        if len(enough) < 2:
            raise DataError(
                f"the {split.name} split has {len(enough)} documents of {_SHORTEST} tokens or more, and pairs are made "
                "of two; prepare more text, or a larger validation share"
            )
        self._firsts = np.concatenate(([0], enough[:-1] + 1))  # the first document of each text
        self._sizes = np.add.reduceat(self._lengths, self._firsts)  # tokens of each text
        self._counts: NDArray[np.int64] = -(-self._sizes // longest)  # passages of each text
        self._ends = np.cumsum(self._counts)  # the passage after the last of each text

    def __len__(self) -> int:
        return int(self._ends[-1])

    def read(self, passage: int) -> Ids:
        """The tokens of a passage."""
        text = self.text_of(passage)
        number = passage - int(self._ends[text] - self._counts[text])
        start, end = (place * int(self._sizes[text]) // int(self._counts[text]) for place in (number, number + 1))
        return self._stretch(text, start, end)

    def elsewhere(self, passage: int, length: int, chance: np.random.Generator) -> tuple[int, Ids]:
        """Another text than the passage's, and a stretch of it, as long as asked for where it has as much."""
        own = self.text_of(passage)
        other = int(chance.integers(len(self._firsts) - 1))
        other += other >= own
        start = int(chance.integers(max(1, int(self._sizes[other]) - length + 1)))
        return other, self._stretch(other, start, start + length)

    def text_of(self, passage: int) -> int:
        """The text that a passage belongs to."""
        return int(np.searchsorted(self._ends, passage, side="right"))

    def documents(self, text: int) -> range:
        """The documents of a text."""
        last = text + 1 == len(self._firsts)
        return range(int(self._firsts[text]), len(self._lengths) if last else int(self._firsts[text + 1]))

    def _stretch(self, text: int, start: int, end: int) -> Ids:
        documents = [self._split[document][:-1] for document in self.documents(text)]
        tokens = documents[0] if len(documents) == 1 else np.concatenate(documents)
        return tokens[start:end].astype(np.int64)
