"""Data leakage between splits: held-out documents that stand, whole or nearly, inside a training document.

The measure is containment (Broder 1997): the share of a held-out document's shingles that the training document has.
Unlike Jaccard similarity it does not fade when the copy is quoted inside a longer text, and a pair whose Jaccard
similarity reaches the threshold always reaches it by containment too. Held-out sets are small, so it is computed
exactly rather than estimated.

Most texts are let go without counting. Whoever holds 70 % of a document misses at most 30 % of its shingles; so of the
rarest 55 % he holds 25 % of the document at least. Those are the probes, and only a text with enough probes of a
document is compared with that document (prefix filtering; Chaudhuri, Ganti and Kaushik 2006).
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TypeVar

import numpy as np

from kotha.errors import ConfigError
from kotha.i18n.message import Option
from kotha.text.clean.shingles import SHINGLE_WORDS, shingle_hashes

DEFAULT_THRESHOLD = 0.7
# A document is looked at when a text holds the size of the document over this in probes.
_PROBES_NEEDED = 4
_BATCH_CHARACTERS = 1 << 18

Item = TypeVar("Item")


class LeakIndex:
    """The shingles of held-out documents, to ask each training document whether it gives one away.

    Takes about 20 bytes a held-out word and a coarse sieve of at most 16 MB. It can be pickled, so that one index
    serves many worker processes. A held-out document shorter than a shingle is matched only by its equal.

    >>> leaks = LeakIndex(["নদীর ধারে একটি ছোট গ্রাম ছিল সেখানে রহিম থাকত"])
    >>> leaks.given_away(["গল্প: নদীর ধারে একটি ছোট গ্রাম ছিল, সেখানে রহিম থাকত। তার পরে অনেক দিন গেল।", "গল্প"])
    [True, False]
    """

    def __init__(
        self, texts: Sequence[str], threshold: float = DEFAULT_THRESHOLD, *, words: int = SHINGLE_WORDS
    ) -> None:
        if not 0 < threshold <= 1:
            raise ConfigError(
                "{threshold} must be above 0 and at most 1, such as 0.7",
                threshold=Option("threshold", threshold),
            )
        self.threshold = threshold
        self.words = words
        self.documents = len(texts)
        shingles, offsets = shingle_hashes(texts, words)
        owners = np.repeat(np.arange(len(texts)), np.diff(offsets))
        values, which = np.unique(shingles, return_inverse=True)
        pairs = np.unique(which * len(texts) + owners)  # each shingle of a document once
        which, owners = pairs // max(1, len(texts)), (pairs % max(1, len(texts))).astype(np.uint32)
        shingles, spread = values[which], np.bincount(which)
        order = np.lexsort((shingles, spread[which], owners))  # by document, its rarest shingles first
        self._shingles, owners = shingles[order], owners[order]
        self._sizes = np.bincount(owners, minlength=len(texts))  # distinct shingles of each document
        self._starts = np.concatenate([[0], np.cumsum(self._sizes)])
        rank = np.arange(len(owners)) - self._starts[owners]
        missable = self._sizes - np.ceil(self.threshold * self._sizes - 1e-9).astype(np.int64)
        self._needed = np.maximum(1, self._sizes // _PROBES_NEEDED)
        probes = np.flatnonzero(rank < (missable + self._needed)[owners])
        probes = probes[np.argsort(self._shingles[probes], kind="stable")]
        self._probes, self._probe_owners = self._shingles[probes], owners[probes]
        bits = max(10, min(24, len(self._probes).bit_length() + 3))
        self._shift = np.uint64(64 - bits)
        self._sieve = np.zeros(1 << bits, dtype=np.bool_)
        self._sieve[self._probes >> self._shift] = True

    def given_away(self, texts: Sequence[str]) -> list[bool]:
        """Whether each text holds enough of a held-out document."""
        return [found for batch in batches(texts, len) for found in self._given_away(batch)]

    def _given_away(self, texts: list[str]) -> list[bool]:
        leaks = [False] * len(texts)
        shingles, offsets = shingle_hashes(texts, self.words)
        hits = np.flatnonzero(self._sieve[shingles >> self._shift])
        first = np.searchsorted(self._probes, shingles[hits], side="left")
        count = np.searchsorted(self._probes, shingles[hits], side="right") - first  # documents with that probe
        asked = np.repeat(np.searchsorted(offsets, hits, side="right") - 1, count)  # the text that each hit is from
        within = np.arange(len(asked)) - np.repeat(np.cumsum(count) - count, count)
        owners = self._probe_owners[np.repeat(first, count) + within]
        pairs, shared = np.unique(asked * np.int64(self.documents) + owners, return_counts=True)
        for pair in pairs[shared >= self._needed[pairs % max(1, self.documents)]]:
            text, document = divmod(int(pair), self.documents)
            own = self._shingles[self._starts[document] : self._starts[document + 1]]
            containment = np.isin(own, shingles[offsets[text] : offsets[text + 1]]).mean()
            leaks[text] = leaks[text] or bool(containment >= self.threshold)
        return leaks


def batches(items: Iterable[Item], size_of: Callable[[Item], int]) -> Iterator[list[Item]]:
    """The items in order, as many at a time as numpy and a worker process like."""
    batch: list[Item] = []
    size = 0
    for item in items:
        batch.append(item)
        size += size_of(item)
        if size >= _BATCH_CHARACTERS:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch
