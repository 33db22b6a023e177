"""What an index is kept in: the interface that every store has, and what it must be able to tell.

Ranking, fusing and answering know this interface alone (``lexical.py``, ``hybrid.py``, ``answer.py``), so a store of
another kind ranks the same. One file of SQLite's (``sqlite_store.py``) is the usual one; ``qdrant_store.py`` is a
server's.
"""

from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from kotha.retrieval.passages import Excerpt

Vectors = NDArray[np.float32]


def unit(vectors: Vectors) -> Vectors:
    """Vectors at length 1; what has none stays zero.

    >>> unit(np.array([[3, 4], [0, 0]], np.float32)).tolist()
    [[0.6000000238418579, 0.800000011920929], [0.0, 0.0]]
    """
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    scaled: Vectors = (vectors / np.where(lengths > 0, lengths, 1)).astype(np.float32)
    return scaled


@dataclass(frozen=True)
class Stored:
    """A passage in a store, by its number there."""

    number: int
    passage: Excerpt


@dataclass(frozen=True)
class Known:
    """A document in a store: its number there, and its place in its source."""

    number: int
    place: str


@dataclass(frozen=True)
class Measures:
    """How large a store is: passages, their documents and files, and the words of a passage on average."""

    passages: int
    documents: int
    sources: int
    mean_words: float


@dataclass(frozen=True)
class EmbedderNote:
    """Whose vectors a store holds: the model's fingerprint, what it was called, and how wide the vectors are."""

    fingerprint: str
    name: str
    width: int


class Store(Protocol):
    """Passages with their words and vectors; a document is known by its source and the digest of its text."""

    name: str

    def measures(self) -> Measures:
        """How much there is."""

    def embedder(self) -> EmbedderNote | None:
        """Whose vectors are kept; None where passages are found by words alone."""

    def sources(self) -> list[str]:
        """Files that documents are from."""

    def digests(self, source: str) -> dict[bytes, Known]:
        """Documents of a source by their digests."""

    def writing(self) -> AbstractContextManager[None]:
        """What is written in this block appears whole or not at all."""

    def note_embedder(self, note: EmbedderNote) -> None:
        """Remember whose vectors will be kept."""

    def add(self, source: str, place: str, digest: bytes, passages: Sequence[str], vectors: Vectors | None) -> None:
        """Keep a document; one that is there already stays as it is."""

    def move(self, document: int, place: str) -> None:
        """The same document, elsewhere in its source."""

    def remove(self, documents: Iterable[int]) -> None:
        """Forget documents, with their passages."""

    def some_texts(self) -> list[str]:
        """A few passages, whichever: enough to see in what letters the documents are written."""

    def frequencies(self, stems: Sequence[str]) -> dict[str, int]:
        """In how many passages each stem occurs."""

    def find(self, counts: Mapping[str, int], limit: int) -> list[Stored]:
        """The likeliest passages by their stems, given how many have each: candidates for ``lexical.py`` to weigh."""

    def near(self, vector: Vectors, limit: int) -> list[tuple[Stored, float]]:
        """The passages whose vectors are nearest, with the cosine, best first."""

    def close(self) -> None:
        """Let go of it."""
