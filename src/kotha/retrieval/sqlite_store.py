"""An index in one file, by SQLite: passages, their stems in FTS5's inverted index, vectors as float16.

Written through a write-ahead log (WAL): readers see the last whole state while a writer works, and a writer that is
killed at any moment leaves the state before its last transaction. At the end of writing the log is taken in and given
up, so that the index is one file again, and stays so when it is read. One that was made in vain is not left behind.

A file from elsewhere is checked before it is used: its header, its version, and that it holds exactly the tables that
are made here and nothing that would act on its own (triggers, views). What is then found damaged is said.
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
from kotha.retrieval.dense import Near, Vectors
from kotha.retrieval.passages import Excerpt
from kotha.retrieval.stemming import fold
from kotha.storage.status import exists

_APPLICATION = 0x4B544849  # "KTHI", where SQLite's header has a place for whose file it is
_VERSION = 1
_TABLES = (
    "CREATE TABLE embedder (fingerprint TEXT NOT NULL, name TEXT NOT NULL, width INTEGER NOT NULL)",
    "CREATE TABLE documents (id INTEGER PRIMARY KEY, source TEXT NOT NULL, place TEXT NOT NULL, "
    "digest BLOB NOT NULL, UNIQUE (source, digest))",
    "CREATE TABLE passages (id INTEGER PRIMARY KEY, document INTEGER NOT NULL REFERENCES documents ON DELETE CASCADE, "
    "text TEXT NOT NULL, words INTEGER NOT NULL, vector BLOB)",
    "CREATE INDEX passages_of_document ON passages (document)",
    "CREATE INDEX passages_by_words ON passages (words)",  # their mean, without reading all texts
    # Stems come normalized and parted by spaces; whatever they are made of belongs to them, marks first of all.
    "CREATE VIRTUAL TABLE stems USING fts5(line, tokenize=\"unicode61 remove_diacritics 0 categories 'L* M* N* C*'\")",
    "CREATE VIRTUAL TABLE stem_counts USING fts5vocab(stems, row)",
)
_SCHEMA = "SELECT sql FROM sqlite_master WHERE sql NOT NULL"
_BUSY_SECONDS = 20
# Passages that a query looks at, at most: of a large index, the rarest words that together have so many.
_MOST_MATCHES = 2000


@dataclass
class NewDocument:
    """A document to be kept: its place in its source, a digest of its text, and its passages with their vectors."""

    place: str
    digest: bytes
    passages: list[str]
    vectors: Vectors | None = None


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


class SqliteStore:
    """An index file, open for reading, or for writing too; made where it is to be written and is not there.

    A document is known by its source and the digest of its text.
    """

    def __init__(self, path: str | os.PathLike[str], *, write: bool = False) -> None:
        self.name = os.fspath(path)
        self._path = Path(path)
        self._writes, self._is_new = write, write and not exists(self._path)
        if self._is_new:
            self._path.parent.mkdir(parents=True, exist_ok=True)
        elif not exists(self._path):
            raise KothaError("no index at {path}; index your documents first", path=self._path)
        self._seen_version: int | None = None
        self._vectors: tuple[list[int], Near | None] | None = None
        self._measures: Measures | None = None
        with self._told():
            self._database = _connect(self._path, write)
            weakref.finalize(self, _let_go, self._database)  # who forgets to close it is not told so at some later time
            settings = ["trusted_schema = OFF", "cell_size_check = ON", "foreign_keys = ON"]
            for each in (*settings, *(["journal_mode = WAL", "synchronous = NORMAL"] if write else [])):
                self._database.execute(f"PRAGMA {each}")
            if write:
                self._make_tables()
            self._check_tables()

    def _query(self, asked: str, values: Sequence[object] = ()) -> list[tuple[Any, ...]]:
        with self._told():
            return self._database.execute(asked, values).fetchall()

    # -- reading ------------------------------------------------------------------------------------------------------

    def measures(self) -> Measures:
        """How much there is."""
        self._forget_what_changed()
        if self._measures is None:
            [(passages, words)] = self._query("SELECT count(*), avg(words) FROM passages")
            [(documents, sources)] = self._query("SELECT count(*), count(DISTINCT source) FROM documents")
            self._measures = Measures(passages, documents, sources, float(words or 0.0))
        return self._measures

    def embedder(self) -> EmbedderNote | None:
        """Whose vectors are kept."""
        rows = self._query("SELECT fingerprint, name, width FROM embedder")
        return EmbedderNote(*rows[0]) if rows else None

    def sources(self) -> list[str]:
        """Files that documents are from."""
        return [row[0] for row in self._query("SELECT DISTINCT source FROM documents ORDER BY source")]

    def digests(self, source: str) -> dict[bytes, tuple[int, str]]:
        """Documents of a source by their digests: their numbers here, and their places there."""
        rows = self._query("SELECT digest, id, place FROM documents WHERE source = ?", [source])
        return {digest: (number, place) for digest, number, place in rows}

    def frequencies(self, stems: Sequence[str]) -> dict[str, int]:
        """In how many passages each stem occurs."""
        marks = ", ".join("?" * len(stems))
        found = dict(self._query(f"SELECT term, doc FROM stem_counts WHERE term IN ({marks})", stems))
        return {stem: found.get(stem, 0) for stem in stems}

    def find(self, counts: Mapping[str, int], limit: int) -> list[Excerpt]:
        """The likeliest passages by FTS5's BM25, over the rarest stems first."""
        asked: list[str] = []
        matches = 0
        for stem in sorted(counts, key=lambda stem: counts[stem]):
            matches += counts[stem]
            if counts[stem] and (not asked or matches <= _MOST_MATCHES):
                asked.append('"' + stem.replace('"', '""') + '"')
        if not asked:
            return []
        # The ranking alone in the inner query: FTS5 sorts numbers, and only the best have their texts read.
        rows = self._query(
            "SELECT text, source, place FROM (SELECT rowid AS found, rank FROM stems "
            "WHERE stems MATCH ? ORDER BY rank LIMIT ?) JOIN passages ON passages.id = found "
            "JOIN documents ON documents.id = document ORDER BY rank",
            [" OR ".join(asked), limit],
        )
        return [Excerpt(*row) for row in rows]

    def near(self, vector: Vectors, limit: int) -> list[tuple[Excerpt, float]]:
        """Exact search: one product with all vectors, which are held in memory from the first question on."""
        self._forget_what_changed()
        if self._vectors is None:
            self._vectors = self._read_vectors()
        numbers, near = self._vectors
        best = {} if near is None else {numbers[row]: cosine for row, cosine in near(vector, limit)}
        marks = ", ".join("?" * len(best))
        rows = self._query(
            "SELECT passages.id, text, source, place FROM passages JOIN documents ON documents.id = document "
            f"WHERE passages.id IN ({marks})",
            list(best),
        )
        found = {number: Excerpt(*about) for number, *about in rows}
        return [(found[number], cosine) for number, cosine in best.items() if number in found]

    def _read_vectors(self) -> tuple[list[int], Near | None]:
        """All vectors, with the numbers of their passages."""
        note = self.embedder()
        width = 0 if note is None else note.width
        rows = self._query("SELECT id, vector FROM passages WHERE vector NOT NULL")
        if any(not isinstance(row[1], bytes) or len(row[1]) != 2 * width for row in rows):
            raise KothaError(
                "{name} is damaged: a vector does not have width {width}; rebuild the index",
                name=self.name,
                width=width,
            )
        joined = np.frombuffer(b"".join(row[1] for row in rows), np.float16).astype(np.float32)
        if not np.isfinite(joined).all():
            raise KothaError("{name} is damaged: a vector contains NaN or infinity; rebuild the index", name=self.name)
        return [row[0] for row in rows], Near(joined.reshape(-1, width)) if rows else None

    def _forget_what_changed(self) -> None:
        """What is held in memory is read again once another connection has written."""
        [(version,)] = self._query("PRAGMA data_version")
        if version != self._seen_version:
            self._seen_version, self._vectors, self._measures = version, None, None

    # -- writing ------------------------------------------------------------------------------------------------------

    @contextmanager
    def _writing(self) -> Iterator[sqlite3.Connection]:
        """One transaction."""
        with self._told():
            self._database.execute("BEGIN IMMEDIATE")
            try:
                yield self._database
            except BaseException:
                self._database.execute("ROLLBACK")
                raise
            self._database.execute("COMMIT")
        self._seen_version = None

    def note_embedder(self, note: EmbedderNote) -> None:
        """Remember whose vectors will be kept."""
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
        """Keep new documents, note other places of known ones, forget others: in one transaction.

        One that is there already stays as it is.
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

    def close(self) -> None:
        """Let go of the file; the last one to do so takes the log in."""
        in_vain = False
        if self._writes:
            with suppress(sqlite3.Error):  # somebody else has it open and needs the log, or it was damaged meanwhile
                in_vain = self._is_new and not self._database.execute("SELECT 1 FROM documents").fetchone()
                self._database.execute("PRAGMA busy_timeout = 0")
                self._database.execute("PRAGMA journal_mode = DELETE")
        self._database.close()
        if in_vain:
            self._path.unlink(missing_ok=True)

    # -- a file that can be trusted -----------------------------------------------------------------------------------

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
                raise KothaError("{name} is empty; index some documents first", name=self.name)
            raise KothaError("{path} is not an index; choose another name", path=self.name)
        if version != _VERSION:
            raise KothaError(
                "{name} has index format {version}, and this version of Kotha reads {known}; rebuild the index",
                name=self.name,
                version=version,
                known=_VERSION,
            )
        expected = sqlite3.connect(":memory:")  # for what SQLite itself writes down when these tables are made
        try:
            for table in _TABLES:
                expected.execute(table)
            made = set(expected.execute(_SCHEMA))
        finally:
            expected.close()
        if set(self._query(_SCHEMA)) != made:
            raise KothaError(
                "{name} does not have the tables of an index; it was modified or is damaged", name=self.name
            )

    @contextmanager
    def _told(self) -> Iterator[None]:
        """What SQLite says, in our words."""
        try:
            yield
        except sqlite3.OperationalError as error:
            if "locked" in str(error) or "busy" in str(error):
                raise KothaError(
                    "{name} is locked: another process is writing to it; wait until it ends", name=self.name
                ) from error
            raise KothaError("{name} cannot be used: {error}", name=self.name, error=error) from error
        except (sqlite3.Error, UnicodeDecodeError) as error:
            raise KothaError(
                "{name} is not an index, or is damaged ({error}); choose another name, or rebuild the index",
                name=self.name,
                error=error,
            ) from error


def _let_go(database: sqlite3.Connection) -> None:
    with suppress(sqlite3.ProgrammingError):  # another thread's, which the garbage happened to be collected in
        database.close()


def _connect(path: Path, write: bool) -> sqlite3.Connection:
    """A connection that begins no transaction by itself; one that only reads cannot write."""
    place = path.resolve().as_uri() + ("" if write else "?mode=ro")
    return sqlite3.connect(place, uri=True, timeout=_BUSY_SECONDS, isolation_level=None)
