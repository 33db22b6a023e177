"""Find duplicates within a corpus: exact copies by hash, near-duplicates by MinHash and locality-sensitive hashing.

MinHash (Broder 1997) puts all shingles in a random order and keeps the first one of each document. Two documents have
the same first shingle with probability J, the Jaccard similarity of their shingle sets. A signature contains the first
shingles for many random orders; the share of equal positions estimates J (standard error 0.04 at 0.7).
Locality-sensitive hashing (LSH) splits signatures into bands and compares only documents that share a band.

Most of the time is spent on signatures, which a worker pool computes. The index of kept documents (`rensa`) is in this
process and uses about 4 KB per document.
"""

from array import array
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from hashlib import blake2b
from itertools import count, pairwise
from typing import Any, Literal

from kotha.errors import InstallCommand, library
from kotha.i18n.message import Message
from kotha.text.clean.leakage import DEFAULT_THRESHOLD, batches
from kotha.text.clean.shingles import shingle_hashes
from kotha.text.parallel.local import WorkerPool

Duplicates = Literal["keep", "exact", "near"]

PERMUTATIONS, SEED = 128, 42
# With bands of four, two texts with J = 0.7 share a band with probability 0.9998; the estimate of J then rejects false
# candidates.
BANDS = 32


class ExactDuplicates:
    """The set of documents seen so far, compared without white space; it takes 12 to 24 bytes per document.

    A document is identified by 64 bits of BLAKE2b: among ten million documents, the probability of a collision is 3 in
    a million. A hash table of integers (open addressing, at most two thirds full) uses a quarter of the memory of a
    Python set.

    >>> seen = ExactDuplicates()
    >>> [seen.is_new(text) for text in ("এক দুই", "এক  দুই ", "তিন")]
    [True, False, True]
    """

    def __init__(self) -> None:
        self._slots = array("Q", bytes(8 << 10))
        self._count = 0

    def is_new(self, text: str) -> bool:
        """Add a text; return whether it is new."""
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
        """Put a key into the first free (zero) slot, starting at its own; return False if it is already present."""
        last = len(slots) - 1  # the length is a power of two, so this also serves as a mask
        at = key & last
        while (found := slots[at]) != key:
            if not found:
                slots[at] = key
                return True
            at = (at + 1) & last
        return False


def _rensa() -> Any:
    return library(
        "rensa",
        Message("near-duplicate detection needs rensa; install it with: {command}", command=InstallCommand("clean")),
    )


class Signer:
    """Computes MinHash signatures; a text without words has none."""

    def __init__(self) -> None:
        self._sketch = _rensa().RMinHash

    def __call__(self, texts: Sequence[str]) -> list[Any]:
        """Return a signature for each text in a batch, or None for a text without words."""
        shingles, offsets = shingle_hashes(texts)
        data = shingles.tobytes()
        signatures: list[Any] = []
        for start, end in pairwise((8 * offsets).tolist()):
            signature = self._sketch(PERMUTATIONS, SEED) if start < end else None
            if signature is not None:
                signature.update([data[at : at + 8] for at in range(start, end, 8)])
            signatures.append(signature)
        return signatures


def mark_duplicates(texts: Iterable[str], duplicates: Duplicates, pool: WorkerPool) -> Iterator[tuple[str, bool]]:
    """Yield each text with a flag: True if it is new."""
    exact = ExactDuplicates()
    marked = ((text, duplicates == "keep" or exact.is_new(text)) for text in texts)
    return _near(marked, pool) if duplicates == "near" else marked


def _near(marked: Iterable[tuple[str, bool]], pool: WorkerPool) -> Iterator[tuple[str, bool]]:
    in_flight: deque[list[tuple[str, bool]]] = deque()

    def to_sign() -> Iterator[list[str]]:
        for batch in batches(marked, lambda pair: len(pair[0])):
            in_flight.append(batch)
            yield [text for text, is_new in batch if is_new]

    kept = _rensa().RMinHashDeduplicator(DEFAULT_THRESHOLD, PERMUTATIONS, use_lsh=True, num_bands=BANDS)
    numbers = count()
    with closing(pool.map(Signer, to_sign())) as signed_batches:
        for signed in signed_batches:
            signatures = iter(signed)
            for text, is_new in in_flight.popleft():
                if is_new:
                    signature = next(signatures)
                    is_new = signature is None or kept.add(str(next(numbers)), signature)
                yield text, is_new
