"""Copies within a corpus: exact ones by a hash of the text, near ones by MinHash and locality-sensitive hashing.

MinHash (Broder 1997): put the shingles of a text in a random order and keep the first; two texts keep the same one
with probability J, the Jaccard similarity of their shingle sets. A signature holds many such firsts, and the share of
equal places estimates J (standard error 0.04 at 0.7). LSH cuts signatures into bands and compares only texts with a
band in common.

To sign a text is most of the work, and is done by a worker pool. What was kept is remembered here, by `rensa`: about
4 KB a text.
"""

from array import array
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from hashlib import blake2b
from itertools import count, pairwise
from typing import Any, Literal

from kotha.errors import library
from kotha.text.clean.leakage import DEFAULT_THRESHOLD, batches
from kotha.text.clean.shingles import shingle_hashes
from kotha.text.parallel.local import WorkerPool

Duplicates = Literal["keep", "exact", "near"]

PERMUTATIONS, SEED = 128, 42
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


def _rensa() -> Any:
    return library("rensa", "near-duplicate detection needs rensa: pip install 'kotha[clean]'")


class Signer:
    """Signs texts; one without words has no signature."""

    def __init__(self) -> None:
        self._sketch = _rensa().RMinHash

    def __call__(self, texts: Sequence[str]) -> list[Any]:
        """The signature of each text of a batch, or None."""
        shingles, offsets = shingle_hashes(texts)
        data = shingles.tobytes()
        signatures: list[Any] = []
        for start, end in pairwise((8 * offsets).tolist()):
            signature = self._sketch(PERMUTATIONS, SEED) if start < end else None
            if signature is not None:
                signature.update([data[at : at + 8] for at in range(start, end, 8)])
            signatures.append(signature)
        return signatures


def told_apart(texts: Iterable[str], duplicates: Duplicates, pool: WorkerPool) -> Iterator[tuple[str, bool]]:
    """Each text with whether it is new."""
    exact = ExactDuplicates()
    told = ((text, duplicates == "keep" or exact.is_new(text)) for text in texts)
    return _near(told, pool) if duplicates == "near" else told


def _near(told: Iterable[tuple[str, bool]], pool: WorkerPool) -> Iterator[tuple[str, bool]]:
    on_their_way: deque[list[tuple[str, bool]]] = deque()

    def sent() -> Iterator[list[str]]:
        for batch in batches(told, lambda pair: len(pair[0])):
            on_their_way.append(batch)
            yield [text for text, is_new in batch if is_new]

    kept = _rensa().RMinHashDeduplicator(DEFAULT_THRESHOLD, PERMUTATIONS, use_lsh=True, num_bands=BANDS)
    numbers = count()
    with closing(pool.map(Signer, sent())) as answers:
        for answer in answers:
            signatures = iter(answer)
            for text, is_new in on_their_way.popleft():
                if is_new:
                    signature = next(signatures)
                    is_new = signature is None or kept.add(str(next(numbers)), signature)
                yield text, is_new
