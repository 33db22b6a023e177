"""Near copies in a corpus of any size: signatures by a worker pool, and what was seen in files rather than in memory.

The answers are those of ``NearDuplicates``: a text is left out when an earlier one that was kept shares a band with it
and is alike enough by their signatures. To make a signature (MinHash) is most of the work, and needs nothing but the
text: that is for the workers. What was kept stays here, in three files that are mapped into memory (about 1.2 KB a
text), so that the system may write them out and take their pages back: signatures; the first entry of each bucket;
and for each entry, a text's band, the one before it in its bucket. Buckets are chosen by a few bits of a band's hash;
what merely fell into the same is told apart by the signatures themselves.
"""

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from kotha.errors import library
from kotha.text.clean.duplicates import BANDS, DEFAULT_THRESHOLD, PERMUTATIONS, SEED, ExactDuplicates, check_threshold
from kotha.text.clean.leakage import batches
from kotha.text.clean.shingles import GOLDEN, mix, shingle_hashes
from kotha.text.parallel.task import WorkerPool, WorkerTask

_ROWS = PERMUTATIONS // BANDS
# Texts that the files have room for at first; they double.
_FIRST_ROOM = 1 << 10
# Texts that are compared with each other: in a batch of thousands that are all alike, every pair would be looked at.
_AT_ONCE = 256

Signatures = NDArray[np.uint32]  # (texts, PERMUTATIONS)
Flags = NDArray[np.bool_]


class Signer:
    """The signatures of texts; a text without words has none, and its place in the flags is False."""

    def __init__(self) -> None:
        rensa = library("rensa", "near-duplicates need rensa: pip install 'kotha[clean]'")
        self._sketch: Any = rensa.RMinHash

    def __call__(self, texts: Sequence[str]) -> tuple[Signatures, Flags]:
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


class NearCopies:
    """Signatures so far, to ask of new ones which stay. Its files lie in ``folder``, which the caller removes."""

    def __init__(self, folder: Path, threshold: float = DEFAULT_THRESHOLD) -> None:
        self._folder, self._threshold = folder, check_threshold(threshold)
        self._count = 0
        self._room = _FIRST_ROOM
        self._signatures: Signatures = self._file("signatures", np.uint32, PERMUTATIONS)
        self._before: NDArray[np.uint64] = self._file("before", np.uint64, BANDS)  # entries from 1; 0 for none
        self._make_buckets()

    def stay(self, signatures: Signatures) -> Flags:
        """Say of each text, in order, whether it stays, and remember those that do: (n, P) -> (n,)."""
        kept = [self._stay(signatures[start : start + _AT_ONCE]) for start in range(0, len(signatures), _AT_ONCE)]
        return np.concatenate([np.zeros(0, dtype=np.bool_), *kept])

    def _stay(self, signatures: Signatures) -> Flags:
        buckets = self._buckets_of(signatures)
        asked, found = self._in_files(buckets)
        kept = np.ones(len(signatures), dtype=np.bool_)
        kept[asked[self._alike(signatures[asked], self._signatures[found])]] = False
        left = np.flatnonzero(kept)
        for earlier, later in self._among(signatures[left], buckets[left]):  # in the order of the later
            if kept[left[earlier]]:
                kept[left[later]] = False
        self._remember(signatures[kept], buckets[kept])
        return kept

    def _alike(self, first: Signatures, second: Signatures) -> Flags:
        """Which pairs share a band and reach the threshold: (n, P), (n, P) -> (n,)."""
        same = first == second
        shared = same.reshape(-1, BANDS, _ROWS).all(axis=2).any(axis=1)
        alike: Flags = shared & (same.sum(axis=1) / PERMUTATIONS >= self._threshold)
        return alike

    def _buckets_of(self, signatures: Signatures) -> NDArray[np.uint64]:
        """The bucket of each band: (n, P) -> (n, BANDS)."""
        hashes = np.arange(1, BANDS + 1, dtype=np.uint64) * np.uint64(GOLDEN)
        for row in range(_ROWS):
            hashes = mix(hashes + signatures.reshape(-1, BANDS, _ROWS)[:, :, row])
        return hashes >> self._shift

    def _in_files(self, buckets: NDArray[np.uint64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Every pair of a new text and a kept one that have a bucket in common, each once."""
        entries = self._first[buckets.ravel()]
        askers = np.repeat(np.arange(len(buckets)), BANDS)
        pairs = [np.zeros(0, dtype=np.int64)]
        while (there := np.flatnonzero(entries)).size:
            entries, askers = entries[there] - np.uint64(1), askers[there]
            pairs.append(np.unique(askers * self._room + (entries // np.uint64(BANDS)).astype(np.int64)))
            entries = self._before.reshape(-1)[entries]
        asked, found = np.divmod(np.unique(np.concatenate(pairs)), self._room)
        return asked, found

    def _among(self, signatures: Signatures, buckets: NDArray[np.uint64]) -> list[tuple[int, int]]:
        """The pairs of new texts that are alike, (earlier, later), in the order of the later."""
        order = np.argsort(buckets, axis=None, kind="stable")
        sorted_buckets, owners = buckets.ravel()[order], order // BANDS
        pairs = [np.zeros(0, dtype=np.int64)]
        for step in range(1, len(owners)):
            same = np.flatnonzero(sorted_buckets[step:] == sorted_buckets[:-step])
            if not same.size:
                break
            earlier, later = (
                np.minimum(owners[same], owners[same + step]),
                np.maximum(owners[same], owners[same + step]),
            )
            pairs.append(np.unique(later * len(signatures) + earlier))
        later, earlier = np.divmod(np.unique(np.concatenate(pairs)), max(1, len(signatures)))
        apart = later != earlier
        later, earlier = later[apart], earlier[apart]
        alike = self._alike(signatures[earlier], signatures[later])
        return list(zip(earlier[alike].tolist(), later[alike].tolist(), strict=True))

    def _remember(self, signatures: Signatures, buckets: NDArray[np.uint64]) -> None:
        end = self._count + len(signatures)
        if end > self._room:
            self._grow(end)
            buckets = self._buckets_of(signatures)
        self._signatures[self._count : end] = signatures
        self._link(self._count, buckets)
        self._count = end

    def _link(self, start: int, buckets: NDArray[np.uint64]) -> None:
        """Put the entries of some texts, numbered from ``start``, at the heads of their buckets."""
        order = np.argsort(buckets, axis=None, kind="stable")
        places = buckets.ravel()[order]
        entries = (order + start * BANDS + 1).astype(np.uint64)
        begins = np.ones(len(places), dtype=np.bool_)
        begins[1:] = places[1:] != places[:-1]
        before = np.empty_like(entries)
        before[begins] = self._first[places[begins]]
        before[1:][~begins[1:]] = entries[:-1][~begins[1:]]
        self._before.reshape(-1)[entries - np.uint64(1)] = before
        ends = np.append(begins[1:], True)[: len(places)]
        self._first[places[ends]] = entries[ends]

    def _grow(self, least: int) -> None:
        while self._room < least:
            self._room *= 2
        self._signatures = self._file("signatures", np.uint32, PERMUTATIONS)
        self._before = self._file("before", np.uint64, BANDS)
        self._make_buckets()
        for start in range(0, self._count, _FIRST_ROOM):
            end = min(start + _FIRST_ROOM, self._count)
            self._link(start, self._buckets_of(self._signatures[start:end]))

    def _make_buckets(self) -> None:
        bits = (self._room * BANDS - 1).bit_length()
        self._shift = np.uint64(64 - bits)
        (self._folder / "first").unlink(missing_ok=True)  # begins anew, and as zeros
        self._first: NDArray[np.uint64] = self._file("first", np.uint64, 1, 1 << bits).reshape(-1)

    def _file(self, name: str, dtype: Any, width: int, rows: int | None = None) -> NDArray[Any]:
        """A file as an array; what it holds stays when it grows, and what is new are zeros that take no room yet."""
        path, rows = self._folder / name, rows or self._room
        with path.open("ab") as file:
            file.truncate(rows * width * np.dtype(dtype).itemsize)
        return np.memmap(path, dtype, mode="r+", shape=(rows, width))


Duplicates = Literal["keep", "exact", "near"]


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

    with TemporaryDirectory(dir=folder) as place, closing(pool.map(WorkerTask(Signer), sent())) as answers:
        near = NearCopies(Path(place))
        for signatures, has_words in answers:
            stays = ~has_words  # a text without words is like no other
            stays[has_words] = near.stay(signatures[has_words])
            fresh = iter(stays.tolist())
            for text, is_new in on_their_way.popleft():
                yield text, is_new and next(fresh)
