"""Leakage between splits: held-out documents that stand, whole or nearly, inside a training document.

The measure is containment (Broder 1997): the share of a held-out document's shingles that the training document has.
Unlike Jaccard similarity it does not fade when the copy is quoted inside a longer text, and a pair whose Jaccard
similarity reaches the threshold always reaches it by containment too. Held-out sets are small, so it is computed
exactly, with a sorted table of their shingles, rather than estimated.
"""

from collections.abc import Iterator, Sequence
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from kotha.text.clean.duplicates import DEFAULT_THRESHOLD, Match, check_threshold
from kotha.text.clean.shingles import SHINGLE_WORDS, Hashes, shingle_hashes

_BATCH_CHARACTERS = 1 << 18
_NOTHING: Hashes = np.zeros(0, dtype=np.uint64)


class LeakIndex:
    """The shingles of held-out documents, to ask each training document whether it gives one away.

    Takes about 20 bytes a held-out word and a coarse sieve of at most 16 MB. It can be pickled, so that one index
    serves many worker processes. A held-out document shorter than a shingle is matched only by its equal.

    >>> leaks = LeakIndex(["নদীর ধারে একটি ছোট গ্রাম ছিল সেখানে রহিম থাকত"])
    >>> leaks.match("গল্প: নদীর ধারে একটি ছোট গ্রাম ছিল, সেখানে রহিম থাকত। তার পরে অনেক দিন গেল।")
    Match(index=0, similarity=1.0)
    """

    def __init__(
        self, texts: Sequence[str], threshold: float = DEFAULT_THRESHOLD, *, words: int = SHINGLE_WORDS
    ) -> None:
        self.threshold = check_threshold(threshold)
        self.words = words
        self.documents = len(texts)
        parts = [shingle_hashes(batch, words) for batch in _batches(texts)]
        counts = np.concatenate([np.diff(offsets) for _, offsets in parts] or [np.zeros(0, dtype=np.int64)])
        owners = np.repeat(np.arange(len(texts), dtype=np.uint32), counts)
        shingles, owners = _distinct(np.concatenate([hashes for hashes, _ in parts] or [_NOTHING]), owners)
        self._sizes = np.bincount(owners, minlength=len(texts))  # distinct shingles of each document
        self._owners = owners
        self._shingles, counts = np.unique(shingles, return_counts=True)
        self._starts = np.concatenate([[0], np.cumsum(counts)])  # owners of shingle i: starts[i] to starts[i + 1]
        bits = max(10, min(24, len(self._shingles).bit_length() + 3))
        self._shift = np.uint64(64 - bits)
        self._sieve = np.zeros(1 << bits, dtype=np.bool_)
        self._sieve[self._shingles >> self._shift] = True

    def match(self, text: str) -> Match | None:
        """The held-out document that this text gives away most of, if that reaches the threshold."""
        return self.match_many([text])[0]

    def match_many(self, texts: Sequence[str]) -> list[Match | None]:
        """As match, for many texts at once: several times as fast where texts are short."""
        return [match for batch in _batches(texts) for match in self._match_batch(batch)]

    def _match_batch(self, texts: list[str]) -> list[Match | None]:
        matches: list[Match | None] = [None] * len(texts)
        shingles, offsets = shingle_hashes(texts, self.words)
        hits = np.flatnonzero(self._sieve[shingles >> self._shift])
        if not len(hits) or not len(self._shingles):
            return matches
        asked = np.searchsorted(offsets, hits, side="right") - 1  # the text that each hit is from
        places = np.minimum(np.searchsorted(self._shingles, shingles[hits]), len(self._shingles) - 1)
        known = self._shingles[places] == shingles[hits]
        asked, places = asked[known], places[known]
        edges = [*np.flatnonzero(np.diff(asked, prepend=-1)), len(asked)]  # runs of hits from one text
        for start, end in pairwise(edges):
            matches[asked[start]] = self._best(np.unique(places[start:end]))
        return matches

    def _best(self, places: NDArray[np.intp]) -> Match | None:
        """The held-out document with the largest share of its shingles at these places of the table."""
        owners = np.concatenate([self._owners[self._starts[p] : self._starts[p + 1]] for p in places])
        documents, shared = np.unique(owners, return_counts=True)
        containment = shared / self._sizes[documents]
        best = int(np.argmax(containment))
        if containment[best] < self.threshold:
            return None
        return Match(int(documents[best]), float(containment[best]))


def _batches(texts: Sequence[str]) -> Iterator[list[str]]:
    """The texts in order, as many at a time as numpy likes."""
    batch: list[str] = []
    size = 0
    for text in texts:
        batch.append(text)
        size += len(text)
        if size >= _BATCH_CHARACTERS:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch


def _distinct(shingles: Hashes, owners: NDArray[np.uint32]) -> tuple[Hashes, NDArray[np.uint32]]:
    """Each pair of shingle and owner once, sorted by shingle."""
    order = np.lexsort((owners, shingles))
    shingles, owners = shingles[order], owners[order]
    if not len(shingles):
        return shingles, owners
    new = np.concatenate([[True], (np.diff(shingles) != 0) | (np.diff(owners.astype(np.int64)) != 0)])
    return shingles[new], owners[new]
