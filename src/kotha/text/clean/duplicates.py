"""Copies within a corpus: exact ones by a hash of the text, near ones by MinHash and locality-sensitive hashing.

MinHash (Broder 1997): put the shingles of a text in a random order and keep the first; two texts keep the same one
with probability J, the Jaccard similarity of their shingle sets. A signature holds many such firsts, and the share of
equal places estimates J. LSH cuts signatures into bands and compares only texts with a band in common.
"""

from array import array
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any

from kotha.errors import ConfigError, library
from kotha.i18n.message import Option
from kotha.text.clean.shingles import shingle_hashes

DEFAULT_THRESHOLD = 0.7

PERMUTATIONS, SEED = 128, 0
# Bands of four: a pair at 0.7 shares one with probability 0.9998; what else shares one is weeded out by its estimate.
BANDS = 32


class ExactDuplicates:
    """Which texts have been seen before, white space aside, at 12 to 24 bytes a text.

    Texts are known by 64 bits of BLAKE2b: among ten million, the chance of one false alarm is 3 in a million. A hash
    table of plain numbers (open addressing, at most two thirds full) takes a quarter of the memory of a Python set.

    >>> seen = ExactDuplicates()
    >>> [seen.is_new(text) for text in ("এক দুই", "এক  দুই ", "তিন")]
    [True, False, True]
    """

    def __init__(self) -> None:
        self._slots = array("Q", bytes(8 << 10))
        self._count = 0

    def is_new(self, text: str) -> bool:
        """Say whether this text is new, and remember it."""
        folded = " ".join(text.split())
        key = int.from_bytes(blake2b(folded.encode("utf-8", "surrogatepass"), digest_size=8).digest(), "little") or 1
        if not self._put(self._slots, key):
            return False
        self._count += 1
        if 3 * self._count > 2 * len(self._slots):
            larger = array("Q", bytes(16 * len(self._slots)))
            for old in self._slots:
                if old:
                    self._put(larger, old)
            self._slots = larger
        return True

    @staticmethod
    def _put(slots: "array[int]", key: int) -> bool:
        """Put a key into the first free slot, a zero, from its own on; False when it is there already."""
        last = len(slots) - 1  # the length is a power of two, so this is also a mask
        at = key & last
        while (found := slots[at]) != key:
            if not found:
                slots[at] = key
                return True
            at = (at + 1) & last
        return False


@dataclass(frozen=True, slots=True)
class Match:
    """An earlier text that is alike: its index, and how alike, from 0 to 1."""

    index: int
    similarity: float


def check_threshold(threshold: float) -> float:
    """Refuse a threshold that would match everything or nothing."""
    if not 0 < threshold <= 1:
        raise ConfigError(
            "{threshold} is not a similarity; give a number above 0 and up to 1, such as 0.7",
            threshold=Option("threshold", threshold),
        )
    return threshold


class NearDuplicates:
    """Texts so far, to ask whether a new one is nearly one of them. About 2 KB a text that is remembered.

    The similarity is the estimated Jaccard similarity of 5-word shingles; its standard error is 0.04 at 0.7. The same
    texts in the same order give the same answers. ``copies.py`` gives them for a whole corpus.

    >>> near = NearDuplicates(threshold=0.5)
    >>> near.find_or_add("আজ সকালে ঢাকায় অনেক বৃষ্টি হয়েছে এবং রাস্তা ডুবে গেছে")
    >>> near.find_or_add("আজ সকালে ঢাকায় অনেক বৃষ্টি হয়েছে এবং রাস্তা ডুবে গেছে!").index
    0
    """

    def __init__(self, threshold: float = DEFAULT_THRESHOLD) -> None:
        rensa = library("rensa", "near-duplicates need rensa: pip install 'kotha[clean]'")
        self.threshold = check_threshold(threshold)
        self._sketch: Any = rensa.RMinHash
        self._buckets = rensa.RMinHashLSH(threshold, PERMUTATIONS, BANDS)
        self._signatures: list[Any] = []  # None for a text without words

    def find_or_add(self, text: str) -> Match | None:
        """The most similar text so far, if it reaches the threshold; where there is none, this one is remembered."""
        signature, index = self._signature(text), len(self._signatures)
        if signature is not None:
            candidates: Sequence[int] = self._buckets.query(signature)
            alike = ((signature.jaccard(self._signatures[each]), -each) for each in candidates)
            similarity, place = max(alike, default=(0.0, 0))
            if similarity >= self.threshold:
                return Match(-place, similarity)
            self._buckets.insert(index, signature)
        self._signatures.append(signature)
        return None

    def _signature(self, text: str) -> Any:
        shingles, _ = shingle_hashes([text])
        if not len(shingles):
            return None
        data = shingles.tobytes()
        signature = self._sketch(PERMUTATIONS, SEED)
        signature.update([data[at : at + 8] for at in range(0, len(data), 8)])
        return signature
