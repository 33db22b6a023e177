"""Copies within a corpus: exact ones by a hash of the text, near ones by MinHash and locality-sensitive hashing.

MinHash (Broder 1997): put the shingles of a text in a random order and keep the first; two texts keep the same one
with probability J, the Jaccard similarity of their shingle sets. A signature holds many such firsts, and the share of
equal places estimates J (standard error 0.04 at 0.7). LSH cuts signatures into bands and compares only texts with a
band in common.

To sign a text is most of the work, and is done by a worker pool. What was kept stays here, in files that are mapped
into memory (about 1.2 KB a text), so that the system may write them out and take their pages back.
"""

from array import array
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from hashlib import blake2b
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from kotha.errors import library
from kotha.text.clean.leakage import DEFAULT_THRESHOLD, batches
from kotha.text.clean.shingles import GOLDEN, mix, shingle_hashes
from kotha.text.parallel.local import WorkerPool

Duplicates = Literal["keep", "exact", "near"]
Signatures = NDArray[np.uint32]  # (texts, PERMUTATIONS)

PERMUTATIONS, SEED = 128, 0
# Bands of four: a pair at 0.7 shares one with probability 0.9998; what else shares one is weeded out by its estimate.
BANDS = 32
_EACH_BAND = np.arange(BANDS)
# Texts that the files have room for at first; they double.
_FIRST_ROOM = 1 << 10


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


class Signer:
    """The signatures of texts; a text without words has none, and its place in the flags is False."""

    def __init__(self) -> None:
        rensa = library("rensa", "near-duplicates need rensa: pip install 'kotha[clean]'")
        self._sketch: Any = rensa.RMinHash

    def __call__(self, texts: Sequence[str]) -> tuple[Signatures, NDArray[np.bool_]]:
        """Sign a batch: n texts -> (n, P), (n,)."""
        signatures = np.zeros((len(texts), PERMUTATIONS), dtype=np.uint32)
        shingles, offsets = shingle_hashes(texts)
        data = shingles.tobytes()
        for row, (start, end) in enumerate(zip(8 * offsets[:-1], 8 * offsets[1:], strict=True)):
            if start < end:
                sketch = self._sketch(PERMUTATIONS, SEED)
                sketch.update([data[at : at + 8] for at in range(start, end, 8)])
                signatures[row] = sketch.digest()
        return signatures, offsets[1:] > offsets[:-1]


class NearDuplicates:
    """Signatures that were kept, to ask whether a new one is nearly one of them, in files that the caller removes.

    A band has buckets, chosen by a few bits of its hash. A bucket has the number of its last text (from 1), and each
    text, for each band, that of the text before it in its bucket.
    """

    def __init__(self, folder: Path) -> None:
        self._folder, self._count = folder, 0
        self._grow(_FIRST_ROOM)

    def is_new(self, signature: Signatures) -> bool:
        """Say whether a text stays, and remember it if it does: (P,)."""
        buckets = self._buckets_of(signature[None])[0]
        texts, bands = self._last[_EACH_BAND, buckets], _EACH_BAND
        while texts.any():
            bands, texts = bands[texts > 0], texts[texts > 0] - 1
            same = (self._signatures[texts] == signature).reshape(len(texts), BANDS, -1)
            alike = same.mean(axis=(1, 2)) >= DEFAULT_THRESHOLD
            if (same.all(axis=2).any(axis=1) & alike).any():
                return False
            texts = self._before[texts, bands]
        if self._count == len(self._signatures):
            self._grow(2 * self._count)
            buckets = self._buckets_of(signature[None])[0]
        self._signatures[self._count] = signature
        self._link(self._count, buckets)
        self._count += 1
        return True

    def _buckets_of(self, signatures: Signatures) -> NDArray[np.uint64]:
        """The bucket of each band: (n, P) -> (n, BANDS)."""
        hashes = np.arange(1, BANDS + 1, dtype=np.uint64) * np.uint64(GOLDEN)
        rows = signatures.reshape(len(signatures), BANDS, -1)
        for row in range(rows.shape[2]):
            hashes = mix(hashes + rows[:, :, row])
        return hashes % np.uint64(self._last.shape[1])

    def _link(self, text: int, buckets: NDArray[np.uint64]) -> None:
        self._before[text] = self._last[_EACH_BAND, buckets]
        self._last[_EACH_BAND, buckets] = text + 1

    def _grow(self, room: int) -> None:
        self._signatures = self._file("signatures", (room, PERMUTATIONS))
        self._before = self._file("before", (room, BANDS))
        (self._folder / "last").unlink(missing_ok=True)  # begins anew, as zeros
        self._last = self._file("last", (BANDS, room))
        for start in range(0, self._count, _FIRST_ROOM):
            some = self._signatures[start : min(start + _FIRST_ROOM, self._count)]
            for text, buckets in enumerate(self._buckets_of(some), start):
                self._link(text, buckets)

    def _file(self, name: str, shape: tuple[int, int]) -> NDArray[np.uint32]:
        """A file as an array; what it holds stays when it grows, and what is new are zeros that take no room yet."""
        with (self._folder / name).open("ab") as file:
            file.truncate(4 * shape[0] * shape[1])
        return np.memmap(self._folder / name, np.uint32, mode="r+", shape=shape)


def told_apart(
    texts: Iterable[str], duplicates: Duplicates, pool: WorkerPool, folder: Path
) -> Iterator[tuple[str, bool]]:
    """Each text with whether it is new; what near copies are known by lies in ``folder`` for as long."""
    exact = ExactDuplicates()
    if duplicates == "keep":
        yield from ((text, True) for text in texts)
    elif duplicates == "exact":
        yield from ((text, exact.is_new(text)) for text in texts)
    else:
        yield from _near(((text, exact.is_new(text)) for text in texts), pool, folder)


def _near(told: Iterable[tuple[str, bool]], pool: WorkerPool, folder: Path) -> Iterator[tuple[str, bool]]:
    on_their_way: deque[list[tuple[str, bool]]] = deque()

    def sent() -> Iterator[list[str]]:
        for batch in batches(told, lambda pair: len(pair[0])):
            on_their_way.append(batch)
            yield [text for text, is_new in batch if is_new]

    with TemporaryDirectory(dir=folder) as place, closing(pool.map(Signer, sent())) as answers:
        near = NearDuplicates(Path(place))
        for signatures, has_words in answers:
            signed = zip(signatures, has_words, strict=True)
            for text, is_new in on_their_way.popleft():
                if is_new:
                    signature, words = next(signed)
                    is_new = not words or near.is_new(signature)  # a text without words is like no other
                yield text, is_new
