"""Detect data leakage between splits: held-out documents fully or mostly contained in a training document.

The measure is containment (Broder 1997): the share of a held-out document's shingles that occur in the training
document. Unlike Jaccard similarity, containment does not decrease if the copy is part of a longer text, and it is never
smaller. Held-out sets are small, so containment is computed exactly rather than estimated.

Most texts are rejected without counting their shingles. The rarest 55 % of each held-out document's shingles serve as
probes. A text with 70 % of the document's shingles lacks at most 30 % of them, so at least 25 % of the shingles are
probes in the text. Only a text with enough of a document's probes is compared with that document (prefix filtering;
Chaudhuri, Ganti and Kaushik 2006).
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TypeVar

import numpy as np

from kotha.errors import ConfigError
from kotha.i18n.message import Option
from kotha.text.clean.shingles import SHINGLE_WORDS, shingle_hashes

DEFAULT_THRESHOLD = 0.7
# A text is compared with a document if it contains probes that make up at least 1/4 of the document's shingles.
_PROBES_NEEDED = 4
_BATCH_CHARACTERS = 1 << 18

Item = TypeVar("Item")


class LeakIndex:
    """Detects training documents that contain a held-out document, with an index of held-out shingles.

    The index takes about 20 bytes per held-out word, plus a coarse filter of at most 16 MB. It can be pickled and sent
    to many worker processes. A held-out document shorter than a shingle is detected only by its exact words.

    >>> leaks = LeakIndex(["নদীর ধারে একটি ছোট গ্রাম ছিল সেখানে রহিম থাকত"])
    >>> leaks.leaked(["গল্প: নদীর ধারে একটি ছোট গ্রাম ছিল, সেখানে রহিম থাকত। তার পরে অনেক দিন গেল।", "গল্প"])
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
        pairs = np.unique(which * len(texts) + owners)  # each shingle counts once per document
        which, owners = pairs // max(1, len(texts)), (pairs % max(1, len(texts))).astype(np.uint32)
        shingles, spread = values[which], np.bincount(which)
        order = np.lexsort((shingles, spread[which], owners))  # by document, rarest shingles first
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

    def leaked(self, texts: Sequence[str]) -> list[bool]:
        """Return, for each text, whether it contains enough of a held-out document to count as leaked."""
        return [found for batch in batches(texts, len) for found in self._leaked(batch)]

    def _leaked(self, texts: list[str]) -> list[bool]:
        leaks = [False] * len(texts)
        shingles, offsets = shingle_hashes(texts, self.words)
        hits = np.flatnonzero(self._sieve[shingles >> self._shift])
        first = np.searchsorted(self._probes, shingles[hits], side="left")
        count = np.searchsorted(self._probes, shingles[hits], side="right") - first  # documents with this probe
        sources = np.repeat(np.searchsorted(offsets, hits, side="right") - 1, count)  # the text of each hit
        within = np.arange(len(sources)) - np.repeat(np.cumsum(count) - count, count)
        owners = self._probe_owners[np.repeat(first, count) + within]
        pairs, shared = np.unique(sources * np.int64(self.documents) + owners, return_counts=True)
        for pair in pairs[shared >= self._needed[pairs % max(1, self.documents)]]:
            text, document = divmod(int(pair), self.documents)
            own = self._shingles[self._starts[document] : self._starts[document + 1]]
            containment = np.isin(own, shingles[offsets[text] : offsets[text + 1]]).mean()
            leaks[text] = leaks[text] or bool(containment >= self.threshold)
        return leaks


def batches(items: Iterable[Item], size_of: Callable[[Item], int]) -> Iterator[list[Item]]:
    """Group items, in order, into batches of a size that suits numpy and worker processes."""
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
