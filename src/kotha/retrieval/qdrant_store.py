"""An index on a Qdrant server, for when one file is outgrown: the interface of ``store.py`` over its client.

A passage is a point: its stems as a sparse vector, the model's embedding as a dense one, the rest as payload. The
server finds candidates and near vectors; what is found is weighed here, as it is for a file, so both rank the same. It
has no transactions: what is written together is sent at the end in one request, what is new before what is removed, so
that nothing is ever missing in between.
"""

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import astuple
from typing import Any

from kotha.errors import KothaError, UsageError, library
from kotha.retrieval.lexical import idf
from kotha.retrieval.passages import Excerpt
from kotha.retrieval.store import EmbedderNote, Measures, NewDocument, Vectors

_NEEDED = "an index on a server needs qdrant-client: pip install 'kotha[qdrant]'"
_STEMS, _MEANING = "stems", "meaning"
_PAGE = 1000  # points that one request brings


class QdrantStore:
    """A collection of a Qdrant server, or of its client's embedded mode, as an index."""

    def __init__(self, client: Any, collection: str, *, write: bool = False) -> None:
        self.name = f"qdrant:{collection}"
        self._client, self._collection = client, collection
        self._models = library("qdrant_client", _NEEDED).models
        self._note: EmbedderNote | None = None
        self._measures: Measures | None = None
        if not write and not self._exists():
            raise KothaError(
                "there is no index {name}; make one first, from the documents that you want to ask", name=self.name
            )

    @classmethod
    def named(cls, name: str, *, write: bool = False) -> "QdrantStore":
        """The collection that ``URL/COLLECTION`` names; a server that does not answer is said to be silent."""
        url, _, collection = name.rpartition("/")
        if not url or not collection:
            raise UsageError("qdrant:{name} names no collection; write qdrant:http://localhost:6333/NAME", name=name)
        try:
            return cls(
                library("qdrant_client", _NEEDED).QdrantClient(url=url, check_compatibility=False),
                collection,
                write=write,
            )
        except (KothaError, KeyboardInterrupt):
            raise
        except Exception as error:  # of the network, in all the ways that its client has
            raise KothaError(
                "the Qdrant server {url} does not answer ({error}); is it running?", url=url, error=error
            ) from error

    # -- reading ------------------------------------------------------------------------------------------------------

    def measures(self) -> Measures:
        """How much there is, counted once and again after writing."""
        if self._measures is None:
            rows = [point.payload for point in self._scrolled(["words", "source", "document"])]
            mean = sum(row["words"] for row in rows) / max(1, len(rows))
            documents, sources = ({row[key] for row in rows} for key in ("document", "source"))
            self._measures = Measures(len(rows), len(documents), len(sources), mean)
        return self._measures

    def embedder(self) -> EmbedderNote | None:
        """Whose vectors are kept, as every point says."""
        if self._note is None and self._exists():
            points, _ = self._client.scroll(self._collection, limit=1, with_payload=["embedder"])
            if points and points[0].payload.get("embedder"):
                self._note = EmbedderNote(*points[0].payload["embedder"])
        return self._note

    def sources(self) -> list[str]:
        """Files that documents are from."""
        return sorted({point.payload["source"] for point in self._scrolled(["source"])})

    def digests(self, source: str) -> dict[bytes, tuple[int, str]]:
        """Documents of a source by their digests."""
        points = self._scrolled(["digest", "document", "place"], self._where("source", source))
        rows = [point.payload for point in points]
        return {bytes.fromhex(row["digest"]): (row["document"], row["place"]) for row in rows}

    def some_texts(self) -> list[str]:
        """A few passages, whichever."""
        points, _ = self._client.scroll(self._collection, limit=20, with_payload=["text"])
        return [point.payload["text"] for point in points]

    def frequencies(self, stems: Sequence[str]) -> dict[str, int]:
        """In how many passages each stem occurs."""
        counted = (self._client.count(self._collection, count_filter=self._where("stems", stem)) for stem in stems)
        return {stem: found.count for stem, found in zip(stems, counted, strict=True)}

    def find(self, counts: Mapping[str, int], limit: int) -> list[Excerpt]:
        """The likeliest passages, by the sum of what their stems are worth."""
        worth = {stem: idf(count, self.measures().passages) for stem, count in counts.items() if count}
        return [passage for passage, _ in self._best(self._sparse(worth), _STEMS, limit)] if worth else []

    def near(self, vector: Vectors, limit: int) -> list[tuple[Excerpt, float]]:
        """The passages whose vectors are nearest, with the cosine, best first."""
        return self._best(vector.tolist(), _MEANING, limit)

    def _best(self, query: Any, using: str, limit: int) -> list[tuple[Excerpt, float]]:
        shown = ["text", "source", "place"]
        found = self._client.query_points(self._collection, query=query, using=using, limit=limit, with_payload=shown)
        return [(Excerpt(*(point.payload[key] for key in shown)), float(point.score)) for point in found.points]

    # -- writing ------------------------------------------------------------------------------------------------------

    def note_embedder(self, note: EmbedderNote) -> None:
        """Remember whose vectors will be kept; a collection that was made without cannot take any."""
        if self._exists() and self._client.count(self._collection).count:
            raise UsageError("{name} was made without vectors; name a new index", name=self.name)
        self._note = note

    def write(
        self,
        source: str,
        added: Sequence[NewDocument],
        moved: Sequence[tuple[int, str]] = (),
        removed: Sequence[int] = (),
    ) -> None:
        """Send what is new in one request, before what is removed; a document that is there is written as it was."""
        made = self._models
        if not self._exists():
            dense = {}
            if self._note is not None:
                dense = {_MEANING: made.VectorParams(size=self._note.width, distance=made.Distance.COSINE)}
            sparse = {_STEMS: made.SparseVectorParams()}
            self._client.create_collection(self._collection, vectors_config=dense, sparse_vectors_config=sparse)
        points = [point for document in added for point in self._points(source, document)]
        if points:
            self._client.upsert(self._collection, points, wait=True)
        for number, place in moved:
            where = self._where("document", number)
            self._client.set_payload(self._collection, {"place": place}, points=where, wait=True)
        for number in removed:
            chosen = made.FilterSelector(filter=self._where("document", number))
            self._client.delete(self._collection, points_selector=chosen, wait=True)
        self._measures = None

    def _points(self, source: str, document: NewDocument) -> Iterator[Any]:
        digest = document.digest.hex()
        about = {"source": source, "place": document.place, "digest": digest, "document": _number(source, digest)}
        about["embedder"] = None if self._note is None else list(astuple(self._note))
        for index, (text, stems, vector) in enumerate(document.rows()):
            own: dict[str, Any] = {_STEMS: self._sparse(dict.fromkeys(stems, 1.0))}
            if vector is not None:
                own[_MEANING] = vector.tolist()
            payload = {**about, "text": text, "words": len(stems), "stems": sorted(set(stems))}
            yield self._models.PointStruct(id=_number(source, digest, str(index)), vector=own, payload=payload)

    def close(self) -> None:
        """Let go of the server."""
        self._client.close()

    # -- the server's words -------------------------------------------------------------------------------------------

    def _exists(self) -> bool:
        return bool(self._client.collection_exists(self._collection))

    def _where(self, key: str, value: str | int) -> Any:
        match = self._models.MatchValue(value=value)
        return self._models.Filter(must=[self._models.FieldCondition(key=key, match=match)])

    def _sparse(self, weights: Mapping[str, float]) -> Any:
        """Stems as numbered dimensions; two that fall on one number, which is rare, are one."""
        numbered = {int.from_bytes(hashlib.sha256(stem.encode()).digest()[:4]): weights[stem] for stem in weights}
        return self._models.SparseVector(indices=list(numbered), values=list(numbered.values()))

    def _scrolled(self, payload: list[str], where: Any = None) -> Iterator[Any]:
        offset = None
        while self._exists():
            points, offset = self._client.scroll(
                self._collection, scroll_filter=where, limit=_PAGE, offset=offset, with_payload=payload
            )
            yield from points
            if offset is None:
                return


def _number(*parts: str) -> int:
    """A number that stands for texts: 56 bits of their digest."""
    return int.from_bytes(hashlib.sha256("\0".join(parts).encode()).digest()[:7])
