"""An index in one SQLite file, with passages, their stems in an FTS5 inverted index, and vectors as float16.

Writes go through a write-ahead log (WAL): readers see the last committed state while a writer works, and if a writer is
killed, its last transaction is rolled back. When writing ends, the log is merged and removed, so that the index is a
single file again, even while it is being read. A new index to which no documents were added is deleted.

A file is used only if its header and version are valid, and if it has exactly the tables created here and no triggers
or views. Corruption is reported as an error.
"""

import os
import sqlite3
import weakref
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import astuple, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from kotha.errors import KothaError
from kotha.retrieval.dense import VectorIndex, Vectors
from kotha.retrieval.passages import Excerpt
from kotha.retrieval.stemming import fold
from kotha.storage.status import exists, is_directory

_APPLICATION = 0x4B544849  # "KTHI", the application id in SQLite's header
_VERSION = 1
_TABLES = (
    "CREATE TABLE embedder (fingerprint TEXT NOT NULL, name TEXT NOT NULL, width INTEGER NOT NULL)",
    "CREATE TABLE documents (id INTEGER PRIMARY KEY, source TEXT NOT NULL, place TEXT NOT NULL, "
    "digest BLOB NOT NULL, UNIQUE (source, digest))",
    "CREATE TABLE passages (id INTEGER PRIMARY KEY, document INTEGER NOT NULL REFERENCES documents ON DELETE CASCADE, "
    "text TEXT NOT NULL, words INTEGER NOT NULL, vector BLOB)",
    "CREATE INDEX passages_of_document ON passages (document)",
    "CREATE INDEX passages_by_words ON passages (words)",  # to compute their mean without reading all texts
    # Stems are normalized and separated by spaces; marks (vowel signs) are part of them.
    "CREATE VIRTUAL TABLE stems USING fts5(line, tokenize=\"unicode61 remove_diacritics 0 categories 'L* M* N* C*'\")",
    "CREATE VIRTUAL TABLE stem_counts USING fts5vocab(stems, row)",
)
_SCHEMA = "SELECT sql FROM sqlite_master WHERE sql NOT NULL"
_BUSY_SECONDS = 20
# Errors that a changed file causes: invalid content, and statements that do not fit it.
_DAMAGE = {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_ERROR, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_MISMATCH}
# Maximum number of matching passages for a query; in a large index, only its rarest words are searched.
_MOST_MATCHES = 2000


@dataclass
class NewDocument:
    """A document to store: its position in its source, a digest of its text, and its passages with their vectors."""

    place: str
    digest: bytes
    passages: list[str]
    vectors: Vectors | None = None


@dataclass(frozen=True)
class Measures:
    """The size of a store: passages, documents, source files, and mean words per passage."""

    passages: int
    documents: int
    sources: int
    mean_words: float


@dataclass(frozen=True)
class EmbedderNote:
    """The model that computed a store's vectors: its fingerprint, its name, and the width of the vectors."""

    fingerprint: str
    name: str
    width: int


class SqliteStore:
    """An index file, opened for reading or, with ``write``, also for writing; writing creates a missing file.

    A document is identified by its source and the digest of its text.
    """

    def __init__(self, path: str | os.PathLike[str], *, write: bool = False) -> None:
        self.name = os.fspath(path)
        self._path = Path(path)
        self._writes, self._is_new, self._unused = write, write and not exists(self._path), False
        if self._is_new:
            self._path.parent.mkdir(parents=True, exist_ok=True)
        elif not exists(self._path):
            template = "no index at {path}; create one from your documents with `kotha index`"
            raise KothaError(template, path=self._path)
        if is_directory(self._path):
            raise KothaError("{path} is a folder; give an index file created with `kotha index`", path=self._path)
        self._seen_version: int | None = None
        self._vectors: tuple[list[int], VectorIndex | None] | None = None
        self._measures: Measures | None = None
        with self._translated_errors():
            self._database = _connect(self._path, write)
            _open.add(self)
            weakref.finalize(self, _close, self._database)  # avoids a ResourceWarning if not closed
            settings = ["trusted_schema = OFF", "cell_size_check = ON", "foreign_keys = ON"]
            for each in (*settings, *(["journal_mode = WAL", "synchronous = NORMAL"] if write else [])):
                self._database.execute(f"PRAGMA {each}")
            if write:
                self._make_tables()
            self._check_tables()

    def _query(self, sql: str, values: Sequence[object] = (), *types: type) -> list[tuple[Any, ...]]:
        """Return the rows of a query; raise an error if the values in a row do not have these types.

        A column may contain values of any type, whatever its declaration.
        """
        with self._translated_errors():
            rows = self._database.execute(sql, values).fetchall()
        if any(type(value) is not kind for row in rows for value, kind in zip(row, types, strict=False)):
            raise KothaError("{name} is damaged: it has values of the wrong type; rebuild the index", name=self.name)
        return rows

    # -- reading ------------------------------------------------------------------------------------------------------

    def measures(self) -> Measures:
        """Return the size of the store."""
        self._invalidate_caches()
        if self._measures is None:
            [(passages, words)] = self._query("SELECT count(*), avg(words) FROM passages")
            [(documents, sources)] = self._query("SELECT count(*), count(DISTINCT source) FROM documents")
            self._measures = Measures(passages, documents, sources, float(words or 0.0))
        return self._measures

    def embedder(self) -> EmbedderNote | None:
        """Return the model that computed the stored vectors; None if there are no vectors."""
        rows = self._query("SELECT fingerprint, name, width FROM embedder", (), str, str, int)
        return EmbedderNote(*rows[0]) if rows else None

    def sources(self) -> list[str]:
        """Return the source files of the documents."""
        return [row[0] for row in self._query("SELECT DISTINCT source FROM documents ORDER BY source", (), str)]

    def digests(self, source: str) -> dict[bytes, tuple[int, str]]:
        """Return the documents from a source by digest: ID in the store, and position in the source."""
        sql = "SELECT digest, id, place FROM documents WHERE source = ?"
        rows = self._query(sql, [source], bytes, int, str)
        return {digest: (number, position) for digest, number, position in rows}

    def frequencies(self, stems: Sequence[str]) -> dict[str, int]:
        """Return the number of passages that contain each stem."""
        marks = ", ".join("?" * len(stems))
        found = dict(self._query(f"SELECT term, doc FROM stem_counts WHERE term IN ({marks})", stems))
        return {stem: found.get(stem, 0) for stem in stems}

    def find(self, counts: Mapping[str, int], limit: int) -> list[Excerpt]:
        """Return the best passages by FTS5's BM25, searching for the rarest stems."""
        terms: list[str] = []
        matches = 0
        for stem in sorted(counts, key=lambda stem: counts[stem]):
            matches += counts[stem]
            if counts[stem] and (not terms or matches <= _MOST_MATCHES):
                terms.append('"' + stem.replace('"', '""') + '"')
        if not terms:
            return []
        # The inner query ranks by rowid alone, so that only the texts of the best passages are read.
        rows = self._query(
            "SELECT text, source, place FROM (SELECT rowid AS found, rank FROM stems "
            "WHERE stems MATCH ? ORDER BY rank LIMIT ?) JOIN passages ON passages.id = found "
            "JOIN documents ON documents.id = document ORDER BY rank",
            [" OR ".join(terms), limit],
            *(str, str, str),
        )
        return [Excerpt(*row) for row in rows]

    def near(self, vector: Vectors, limit: int) -> list[tuple[Excerpt, float]]:
        """Find the nearest passages by an exact search over all vectors, which are cached in memory."""
        self._invalidate_caches()
        if self._vectors is None:
            self._vectors = self._read_vectors()
        numbers, near = self._vectors
        best = {} if near is None else {numbers[row]: cosine for row, cosine in near(vector, limit)}
        marks = ", ".join("?" * len(best))
        rows = self._query(
            "SELECT passages.id, text, source, place FROM passages JOIN documents ON documents.id = document "
            f"WHERE passages.id IN ({marks})",
            list(best),
            *(int, str, str, str),
        )
        found = {number: Excerpt(*about) for number, *about in rows}
        return [(found[number], cosine) for number, cosine in best.items() if number in found]

    def _read_vectors(self) -> tuple[list[int], VectorIndex | None]:
        """Return all vectors, with the IDs of their passages."""
        note = self.embedder()
        width = 0 if note is None else note.width
        rows = self._query("SELECT id, vector FROM passages WHERE vector NOT NULL", (), int, bytes)
        if width < 1 or any(len(row[1]) != 2 * width for row in rows):
            raise KothaError(
                "{name} is damaged: a vector does not have width {width}; rebuild the index",
                name=self.name,
                width=width,
            )
        joined = np.frombuffer(b"".join(row[1] for row in rows), np.float16).astype(np.float32)
        if not np.isfinite(joined).all():
            raise KothaError("{name} is damaged: a vector contains NaN or infinity; rebuild the index", name=self.name)
        return [row[0] for row in rows], VectorIndex(joined.reshape(-1, width)) if rows else None

    def _invalidate_caches(self) -> None:
        """Drop cached values if another connection has written to the store."""
        [(version,)] = self._query("PRAGMA data_version")
        if version != self._seen_version:
            self._seen_version, self._vectors, self._measures = version, None, None

    # -- writing ------------------------------------------------------------------------------------------------------

    @contextmanager
    def _writing(self) -> Iterator[sqlite3.Connection]:
        """Open a write transaction."""
        with self._translated_errors():
            self._database.execute("BEGIN IMMEDIATE")
            try:
                yield self._database
            except BaseException:
                self._database.execute("ROLLBACK")
                raise
            self._database.execute("COMMIT")
        self._seen_version = None

    def note_embedder(self, note: EmbedderNote) -> None:
        """Record which model computes the vectors."""
        with self._writing() as database:
            database.execute("DELETE FROM embedder")
            database.execute("INSERT INTO embedder VALUES (?, ?, ?)", astuple(note))

    def write(
        self,
        source: str,
        added: Sequence[NewDocument],
        moved: Sequence[tuple[int, str]] = (),
        removed: Sequence[int] = (),
    ) -> None:
        """Add, move (to another position) and remove documents in one transaction.

        A document that is already stored stays unchanged.
        """
        with self._writing() as database:
            for document in added:
                self._add(source, document)
            database.executemany("UPDATE documents SET place = ?2 WHERE id = ?1", moved)
            gone = [(number,) for number in removed]
            database.executemany("DELETE FROM stems WHERE rowid IN (SELECT id FROM passages WHERE document = ?)", gone)
            database.executemany("DELETE FROM documents WHERE id = ?", gone)

    def _add(self, source: str, document: NewDocument) -> None:
        row = "INSERT OR IGNORE INTO documents (source, place, digest) VALUES (?, ?, ?)"
        added = self._database.execute(row, [source, document.place, document.digest])
        if not added.rowcount:
            return
        for index, text in enumerate(document.passages):
            stems = [word.stem for word in fold(text)]
            blob = None if document.vectors is None else document.vectors[index].astype(np.float16).tobytes()
            kept = self._database.execute(
                "INSERT INTO passages (document, text, words, vector) VALUES (?, ?, ?, ?)",
                [added.lastrowid, text, len(stems), blob],
            )
            self._database.execute("INSERT INTO stems (rowid, line) VALUES (?, ?)", [kept.lastrowid, " ".join(stems)])

    def close(self) -> bool:
        """Close the file, and return whether it remains; the last connection open for writing merges the log."""
        if self._writes:
            with suppress(
                sqlite3.Error
            ):  # another process has the file open and needs the log, or the file was corrupted in the meantime
                if self._database.in_transaction:  # interrupted
                    self._database.execute("ROLLBACK")
                made = self._database.execute("SELECT 1 FROM sqlite_master WHERE name = 'documents'").fetchone()
                self._unused = self._is_new and not (
                    made and self._database.execute("SELECT 1 FROM documents").fetchone()
                )
                self._database.execute("PRAGMA busy_timeout = 0")
                self._database.execute("PRAGMA journal_mode = DELETE")
        self._database.close()
        if self._unused:
            self._path.unlink(missing_ok=True)
        _open.discard(self)
        return not self._unused

    # -- validation --------------------------------------------------------------------------------------------------

    def _make_tables(self) -> None:
        with self._writing() as database:
            if not database.execute("SELECT 1 FROM sqlite_master").fetchone():
                for made in (f"PRAGMA application_id = {_APPLICATION}", f"PRAGMA user_version = {_VERSION}", *_TABLES):
                    database.execute(made)

    def _check_tables(self) -> None:
        [(application,)] = self._query("PRAGMA application_id")
        [(version,)] = self._query("PRAGMA user_version")
        if application != _APPLICATION:
            if not self._path.stat().st_size or not self._query("SELECT 1 FROM sqlite_master"):
                raise KothaError("{name} is empty; index some documents with `kotha index`", name=self.name)
            raise KothaError("{path} is not an index; choose another name", path=self.name)
        if version != _VERSION:
            raise KothaError(
                "{name} has index format {version}, but this version of Kotha reads {known}; rebuild the index",
                name=self.name,
                version=version,
                known=_VERSION,
            )
        expected = sqlite3.connect(":memory:")  # to compare with the schema as SQLite stores it
        try:
            for table in _TABLES:
                expected.execute(table)
            made = set(expected.execute(_SCHEMA))
        finally:
            expected.close()
        if set(self._query(_SCHEMA)) != made:
            raise KothaError(
                "{name} does not have the tables of an index; it was modified or is damaged; rebuild the index",
                name=self.name,
            )

    @contextmanager
    def _translated_errors(self) -> Iterator[None]:
        """Convert SQLite's errors to `KothaError`."""
        try:
            yield
        except sqlite3.OperationalError as error:
            if "locked" in str(error) or "busy" in str(error):
                raise KothaError(
                    "{name} is locked: another process is writing to it; wait until that process ends", name=self.name
                ) from error
            if getattr(error, "sqlite_errorcode", sqlite3.SQLITE_CORRUPT) & 0xFF not in _DAMAGE:
                raise KothaError("{name} cannot be used: {error}", name=self.name, error=error) from error
            raise self._damaged(error) from error
        except (sqlite3.Error, UnicodeDecodeError) as error:
            raise self._damaged(error) from error

    def _damaged(self, error: Exception) -> KothaError:
        return KothaError(
            "{name} is not an index, or is damaged ({error}); choose another name, or rebuild the index",
            name=self.name,
            error=error,
        )


_open: "weakref.WeakSet[SqliteStore]" = weakref.WeakSet()


def give_up() -> list[Path]:
    """Close the stores of this process (for signal handlers); return those that were being written and remain."""
    kept = []
    for store in list(_open):
        with suppress(sqlite3.Error):  # it belongs to another thread
            kept += [store._path] * (store.close() and store._writes)
    return kept


def _close(database: sqlite3.Connection) -> None:
    with suppress(sqlite3.ProgrammingError):  # the garbage collector ran in a thread other than the connection's
        database.close()


def _connect(path: Path, write: bool) -> sqlite3.Connection:
    """Open a connection in autocommit mode, read-only unless ``write``."""
    uri = path.resolve().as_uri() + ("" if write else "?mode=ro")
    return sqlite3.connect(uri, uri=True, timeout=_BUSY_SECONDS, isolation_level=None)
