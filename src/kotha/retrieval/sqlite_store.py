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
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

import numpy as np

from kotha.errors import KothaError
from kotha.retrieval.dense import Near
from kotha.retrieval.folding import fold
from kotha.retrieval.passages import Excerpt
from kotha.retrieval.store import EmbedderNote, Known, Measures, Stored, Vectors
from kotha.storage.status import is_file, is_there

_APPLICATION = 0x4B544849  # "KTHI", where SQLite's header has a place for whose file it is
_VERSION = 1
_HEADER = b"SQLite format 3\0"
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
_BUSY_SECONDS = 20
# Passages that a query looks at, at most: of a large index, the rarest words that together have so many.
_MOST_MATCHES = 2000


class SqliteStore:
    """An index file, open for reading, or for writing too; made where it is to be written and is not there."""

    def __init__(self, path: str | os.PathLike[str], *, write: bool = False) -> None:
        self.name = os.fspath(path)
        self._path = Path(path)
        self._writes, self._is_new = write, write and not is_there(self._path)
        if self._is_new:
            self._path.parent.mkdir(parents=True, exist_ok=True)
        else:
            _check_header(self._path)
        self._seen_version: int | None = None
        self._vectors: tuple[list[int], Near | None] | None = None
        self._measures: Measures | None = None
        with self._told():
            self._database = _connect(self._path, write)
            weakref.finalize(self, _let_go, self._database)  # who forgets to close it is not told so at some later time
            self._database.execute("PRAGMA trusted_schema = OFF")
            self._database.execute("PRAGMA cell_size_check = ON")
            self._database.execute("PRAGMA foreign_keys = ON")
            if write:
                self._database.execute("PRAGMA journal_mode = WAL")
                self._database.execute("PRAGMA synchronous = NORMAL")
                self._make_tables()
            self._check_tables()

    # -- reading ------------------------------------------------------------------------------------------------------

    def measures(self) -> Measures:
        """How much there is."""
        self._forget_what_changed()
        if self._measures is None:
            with self._told():
                passages, words = self._database.execute("SELECT count(*), avg(words) FROM passages").fetchone()
                counted = "SELECT count(*), count(DISTINCT source) FROM documents"
                documents, sources = self._database.execute(counted).fetchone()
            self._measures = Measures(passages, documents, sources, float(words or 0.0))
        return self._measures

    def embedder(self) -> EmbedderNote | None:
        """Whose vectors are kept."""
        with self._told():
            row = self._database.execute("SELECT fingerprint, name, width FROM embedder").fetchone()
        return None if row is None else EmbedderNote(*row)

    def sources(self) -> list[str]:
        """Files that documents are from."""
        with self._told():
            return [row[0] for row in self._database.execute("SELECT DISTINCT source FROM documents ORDER BY source")]

    def digests(self, source: str) -> dict[bytes, Known]:
        """Documents of a source by their digests."""
        with self._told():
            rows = self._database.execute("SELECT digest, id, place FROM documents WHERE source = ?", [source])
            return {digest: Known(number, place) for digest, number, place in rows}

    def some_texts(self) -> list[str]:
        """A few passages, whichever."""
        with self._told():
            return [row[0] for row in self._database.execute("SELECT text FROM passages LIMIT 20")]

    def frequencies(self, stems: Sequence[str]) -> dict[str, int]:
        """In how many passages each stem occurs."""
        marks = ", ".join("?" * len(stems))
        with self._told():
            found = dict(
                self._database.execute(f"SELECT term, doc FROM stem_counts WHERE term IN ({marks})", list(stems))
            )
        return {stem: found.get(stem, 0) for stem in stems}

    def find(self, counts: Mapping[str, int], limit: int) -> list[Stored]:
        """The likeliest passages by FTS5's BM25, over the rarest stems first."""
        asked: list[str] = []
        matches = 0
        for stem in sorted(counts, key=lambda stem: counts[stem]):
            matches += counts[stem]
            if counts[stem] and (not asked or matches <= _MOST_MATCHES):
                asked.append('"' + stem.replace('"', '""') + '"')
        if not asked:
            return []
        with self._told():
            # The ranking alone in the inner query: FTS5 sorts numbers, and only the best have their texts read.
            rows = self._database.execute(
                "SELECT passages.id, text, source, place FROM (SELECT rowid AS found, rank FROM stems "
                "WHERE stems MATCH ? ORDER BY rank LIMIT ?) JOIN passages ON passages.id = found "
                "JOIN documents ON documents.id = document ORDER BY rank",
                [" OR ".join(asked), limit],
            )
            return [Stored(number, Excerpt(text, source, place)) for number, text, source, place in rows]

    def near(self, vector: Vectors, limit: int) -> list[tuple[Stored, float]]:
        """Exact search: one product with all vectors, which are held in memory from the first question on."""
        self._forget_what_changed()
        if self._vectors is None:
            self._vectors = self._read_vectors()
        numbers, near = self._vectors
        if near is None:
            return []
        rows = [(numbers[row], cosine) for row, cosine in near(vector, limit)]
        found = self._passages([number for number, _ in rows])
        return [(found[number], cosine) for number, cosine in rows if number in found]

    def _read_vectors(self) -> tuple[list[int], Near | None]:
        """All vectors, with the numbers of their passages."""
        note = self.embedder()
        width = 0 if note is None else note.width
        with self._told():
            rows = self._database.execute("SELECT id, vector FROM passages WHERE vector NOT NULL").fetchall()
        if any(not isinstance(row[1], bytes) or len(row[1]) != 2 * width for row in rows):
            raise KothaError(
                "{name} is damaged: a vector has another width than {width}; index again", name=self.name, width=width
            )
        joined = np.frombuffer(b"".join(row[1] for row in rows), np.float16).astype(np.float32)
        if not np.isfinite(joined).all():
            raise KothaError("{name} is damaged: a vector holds what is no number; index again", name=self.name)
        return [row[0] for row in rows], Near(joined.reshape(-1, width)) if rows else None

    def _forget_what_changed(self) -> None:
        """What is held in memory is read again once another connection has written."""
        with self._told():
            [version] = self._database.execute("PRAGMA data_version").fetchone()
        if version != self._seen_version:
            self._seen_version, self._vectors, self._measures = version, None, None

    def _passages(self, numbers: Sequence[int]) -> dict[int, Stored]:
        marks = ", ".join("?" * len(numbers))
        with self._told():
            rows = self._database.execute(
                "SELECT passages.id, text, source, place FROM passages JOIN documents ON documents.id = document "
                f"WHERE passages.id IN ({marks})",
                list(numbers),
            )
            return {row[0]: Stored(row[0], Excerpt(*row[1:])) for row in rows}

    # -- writing ------------------------------------------------------------------------------------------------------

    @contextmanager
    def writing(self) -> Iterator[None]:
        """One transaction."""
        with self._told():
            self._database.execute("BEGIN IMMEDIATE")
            try:
                yield
            except BaseException:
                self._database.execute("ROLLBACK")
                raise
            self._database.execute("COMMIT")
        self._seen_version = None

    def note_embedder(self, note: EmbedderNote) -> None:
        """Remember whose vectors will be kept."""
        self._database.execute("DELETE FROM embedder")
        self._database.execute("INSERT INTO embedder VALUES (?, ?, ?)", [note.fingerprint, note.name, note.width])

    def add(self, source: str, place: str, digest: bytes, passages: Sequence[str], vectors: Vectors | None) -> None:
        """Keep a document; one that is there already stays as it is."""
        row = "INSERT OR IGNORE INTO documents (source, place, digest) VALUES (?, ?, ?)"
        added = self._database.execute(row, [source, place, digest])
        if not added.rowcount:
            return
        document = added.lastrowid
        for index, text in enumerate(passages):
            stems = [word.stem for word in fold(text)]
            blob = None if vectors is None else vectors[index].astype(np.float16).tobytes()
            kept = self._database.execute(
                "INSERT INTO passages (document, text, words, vector) VALUES (?, ?, ?, ?)",
                [document, text, len(stems), blob],
            )
            self._database.execute("INSERT INTO stems (rowid, line) VALUES (?, ?)", [kept.lastrowid, " ".join(stems)])

    def move(self, document: int, place: str) -> None:
        """The same document, elsewhere in its source."""
        self._database.execute("UPDATE documents SET place = ? WHERE id = ?", [place, document])

    def remove(self, documents: Iterable[int]) -> None:
        """Forget documents, with their passages."""
        for document in documents:
            self._database.execute(
                "DELETE FROM stems WHERE rowid IN (SELECT id FROM passages WHERE document = ?)", [document]
            )
            self._database.execute("DELETE FROM documents WHERE id = ?", [document])

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
        with self.writing():
            if self._database.execute("SELECT count(*) FROM sqlite_master").fetchone() == (0,):
                self._database.execute(f"PRAGMA application_id = {_APPLICATION}")
                self._database.execute(f"PRAGMA user_version = {_VERSION}")
                for table in _TABLES:
                    self._database.execute(table)

    def _check_tables(self) -> None:
        [application] = self._database.execute("PRAGMA application_id").fetchone()
        [version] = self._database.execute("PRAGMA user_version").fetchone()
        if application != _APPLICATION:
            if not self._path.stat().st_size or not self._database.execute("SELECT 1 FROM sqlite_master").fetchone():
                raise KothaError("{name} is empty: no documents were indexed yet; index some first", name=self.name)
            raise KothaError("{name} is a database, but no index of ours; choose another name", name=self.name)
        if version != _VERSION:
            raise KothaError(
                "{name} is an index of format {version}, and this Kotha reads {known}; index again",
                name=self.name,
                version=version,
                known=_VERSION,
            )
        found = {row[0] for row in self._database.execute("SELECT sql FROM sqlite_master WHERE sql NOT NULL")}
        if found != _expected_tables():
            raise KothaError(
                "{name} holds other tables than an index does; it was changed, or is damaged", name=self.name
            )

    @contextmanager
    def _told(self) -> Iterator[None]:
        """What SQLite says, in our words."""
        try:
            yield
        except sqlite3.OperationalError as error:
            if "locked" in str(error) or "busy" in str(error):
                raise KothaError(
                    "{name} is in use: another process is writing there; wait until it ends", name=self.name
                ) from error
            raise KothaError("{name} cannot be used: {error}", name=self.name, error=error) from error
        except (sqlite3.Error, UnicodeDecodeError) as error:
            raise KothaError(
                "{name} is damaged ({error}); index the documents again", name=self.name, error=error
            ) from error


def _check_header(path: Path) -> None:
    if not is_there(path):
        raise KothaError("there is no index {path}; make one first, from the documents that you want to ask", path=path)
    if not is_file(path):
        raise KothaError("{path} is no file; an index is one", path=path)
    with path.open("rb") as file:
        begins = file.read(len(_HEADER))
    if begins and begins != _HEADER:
        raise KothaError("{path} is no index; choose another name", path=path)


def _let_go(database: sqlite3.Connection) -> None:
    with suppress(sqlite3.ProgrammingError):  # another thread's, which the garbage happened to be collected in
        database.close()


def _connect(path: Path, write: bool) -> sqlite3.Connection:
    """A connection that begins no transaction by itself; one that only reads cannot write."""
    if write:
        return sqlite3.connect(path, timeout=_BUSY_SECONDS, isolation_level=None)
    place = path.resolve().as_uri()
    database = sqlite3.connect(f"{place}?mode=ro", uri=True, timeout=_BUSY_SECONDS, isolation_level=None)
    try:
        database.execute("SELECT count(*) FROM sqlite_master").fetchone()
        return database
    except sqlite3.OperationalError:  # in a folder that cannot be written; without a log nobody is writing either
        database.close()
        if is_there(path.with_name(f"{path.name}-wal")):
            raise
        return sqlite3.connect(f"{place}?immutable=1", uri=True, isolation_level=None)


def _expected_tables() -> set[str]:
    """What SQLite itself writes down when these tables are made."""
    database = sqlite3.connect(":memory:")
    try:
        for table in _TABLES:
            database.execute(table)
        return {row[0] for row in database.execute("SELECT sql FROM sqlite_master WHERE sql NOT NULL")}
    finally:
        database.close()
