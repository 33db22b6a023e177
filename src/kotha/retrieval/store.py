"""What an index is kept in: the interface that every store has, and what it must be able to tell.

Ranking, fusing and answering know this interface alone (``lexical.py``, ``hybrid.py``, ``answer.py``), so a store of
another kind ranks the same. One file of SQLite's (``sqlite_store.py``) is the usual one; ``qdrant_store.py`` is a
server's.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from kotha.retrieval.passages import Excerpt
from kotha.retrieval.stemming import fold

Vectors = NDArray[np.float32]


def unit(vectors: Vectors) -> Vectors:
    """Vectors at length 1; what has none stays zero.

    >>> unit(np.array([[3, 4], [0, 0]], np.float32)).tolist()
    [[0.6000000238418579, 0.800000011920929], [0.0, 0.0]]
    """
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    scaled: Vectors = (vectors / np.where(lengths > 0, lengths, 1)).astype(np.float32)
    return scaled


@dataclass
class NewDocument:
    """A document to be kept: its place in its source, a digest of its text, and its passages with their vectors."""

    place: str
    digest: bytes
    passages: list[str]
    vectors: Vectors | None = None

    def rows(self) -> Iterator[tuple[str, list[str], Vectors | None]]:
        """Each passage, its stems, and its vector."""
        for index, text in enumerate(self.passages):
            yield text, [word.stem for word in fold(text)], None if self.vectors is None else self.vectors[index]


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

    def digests(self, source: str) -> dict[bytes, tuple[int, str]]:
        """Documents of a source by their digests: their numbers here, and their places there."""

    def note_embedder(self, note: EmbedderNote) -> None:
        """Remember whose vectors will be kept."""

    def write(
        self,
        source: str,
        added: Sequence[NewDocument],
        moved: Sequence[tuple[int, str]] = (),
        removed: Sequence[int] = (),
    ) -> None:
        """Keep new documents, note other places of known ones, forget others: as one.

        One that is there already stays as it is.
        """

    def some_texts(self) -> list[str]:
        """A few passages, whichever: enough to see in what letters the documents are written."""

    def frequencies(self, stems: Sequence[str]) -> dict[str, int]:
        """In how many passages each stem occurs."""

    def find(self, counts: Mapping[str, int], limit: int) -> list[Excerpt]:
        """The likeliest passages by their stems, given how many have each: candidates for ``lexical.py`` to weigh."""

    def near(self, vector: Vectors, limit: int) -> list[tuple[Excerpt, float]]:
        """The passages whose vectors are nearest, with the cosine, best first."""

    def close(self) -> None:
        """Let go of it."""
