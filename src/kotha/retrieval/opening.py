"""Where an index is, by its name: a file of SQLite's, or a collection on a Qdrant server."""

import os

from kotha.retrieval.sqlite_store import SqliteStore
from kotha.retrieval.store import Store

_QDRANT = "qdrant:"


def open_store(name: str | os.PathLike[str], *, write: bool = False) -> Store:
    """The store of a name: a path, or ``qdrant:URL/COLLECTION``, such as ``qdrant:http://localhost:6333/news``."""
    if os.fspath(name).startswith(_QDRANT):
        from kotha.retrieval.qdrant_store import QdrantStore

        return QdrantStore.named(os.fspath(name).removeprefix(_QDRANT), write=write)
    return SqliteStore(name, write=write)
