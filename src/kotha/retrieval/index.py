"""Updating and searching an index.

A document is identified by its source and a digest of its text. An update reads all files but writes only changes. New
documents are added. A document is removed if its file no longer contains it, or if its file no longer exists in an
indexed folder. Documents are written in atomic batches, so an interrupted update leaves a valid index and resumes when
it is run again.
"""

import hashlib
import os
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, Protocol, get_args

import numpy as np

from kotha.errors import KothaError, UsageError
from kotha.i18n.message import Message, OnProgress, Option
from kotha.i18n.short_repr import ShortRepr
from kotha.retrieval.dense import Vectors
from kotha.retrieval.documents import IndexOptions, list_files, read_file
from kotha.retrieval.hybrid import Hit, fuse
from kotha.retrieval.lexical import rank_by_words
from kotha.retrieval.passages import cut
from kotha.retrieval.sqlite_store import EmbedderNote, NewDocument, SqliteStore
from kotha.storage.status import is_directory
from kotha.text.choices import check_choice
from kotha.text.corpus.documents import OnProblem
from kotha.text.corpus.problems import CorpusProblem

By = Literal["words", "meaning", "both"]

_BATCH_PASSAGES = 128
_CANDIDATES = 50  # number of passages in each ranking, from which the hits are chosen


class PassageEmbedder(Protocol):
    """An object that embeds texts and identifies its model in ``note``, such as `embedding.Embedder`."""

    note: EmbedderNote

    def __call__(self, texts: Sequence[str], /) -> Vectors:
        """Return unit vectors: (texts, width)."""


@dataclass(repr=False)
class IndexReport(ShortRepr):
    """The changes made by an update, and the size of the index after it."""

    added: int = 0
    unchanged: int = 0
    removed: int = 0
    problems: int = 0
    documents: int = 0
    passages: int = 0
    sources: int = 0


@dataclass(frozen=True, repr=False)
class SearchResult(ShortRepr):
    """The hits for a question, and how they were ranked."""

    question: str
    by: By
    hits: list[Hit]


def update(
    store: SqliteStore,
    paths: Sequence[str | os.PathLike[str]],
    how: IndexOptions,
    embed: PassageEmbedder | None = None,
    on_progress: OnProgress | None = None,
    on_problem: OnProblem | None = None,
) -> IndexReport:
    """Update an index from files, folders and globs."""
    work = _Update(store, how, embed, on_progress, on_problem)
    files, complete = list_files(paths, work.problem)
    work.settle_embedder()
    work.total_bytes = sum(file.stat().st_size for file in files)
    for file in files:
        work.file(file)
    folders = {place.resolve() for path in paths if is_directory(place := Path(path).expanduser())}
    for source in store.sources() if complete else ():  # an unreadable folder may still contain it
        if Path(source) not in files and folders & set(Path(source).parents):
            work.keep(source, removed=[number for number, _ in store.digests(source).values()])
    now, report = store.measures(), work.report
    report.documents, report.passages, report.sources = now.documents, now.passages, now.sources
    return report


@dataclass
class _Update:
    """An update in progress, and its report."""

    store: SqliteStore
    how: IndexOptions
    embed: PassageEmbedder | None
    on_progress: OnProgress | None
    on_problem: OnProblem | None
    total_bytes: int = 0
    done_bytes: int = 0
    report: IndexReport = field(default_factory=IndexReport)
    unread: bool = False  # whether part of the current file could not be read

    def problem(self, problem: CorpusProblem) -> None:
        """Count a problem and report it to the caller."""
        self.report.problems += 1
        self.unread = self.unread or problem.unread
        if self.on_problem is not None:
            self.on_problem(problem)

    def settle_embedder(self) -> None:
        """Record the model that computes the vectors, or check that it has not changed; an index has only one model."""
        kept, name = self.store.embedder(), self.store.name
        if kept is None:
            if self.embed is not None:
                self.store.note_embedder(self.embed.note)
        elif self.embed is None or kept.fingerprint != self.embed.note.fingerprint:
            raise UsageError(
                "{name} contains vectors computed by {model}; use that model, or a new index",
                name=name,
                model=kept.name,
            )

    def file(self, file: Path) -> None:
        """Index one file: add its new documents and remove those that it no longer contains."""
        known = self.store.digests(str(file))
        gone, end = dict(known), self.done_bytes + file.stat().st_size
        self.unread = False
        fresh: dict[bytes, NewDocument] = {}
        moved: list[tuple[int, str]] = []
        for document in read_file(file, self.how, self.problem, self._advance):
            digest = self._digest(document.text)
            if digest in known:
                self.report.unchanged += gone.pop(digest, None) is not None
                number, position = known[digest]
                if position != document.place:
                    moved.append((number, document.place))
            else:
                fresh[digest] = NewDocument(document.place, digest, cut(document.text, self.how.passage_length))
            if sum(len(each.passages) for each in fresh.values()) >= _BATCH_PASSAGES:
                self.keep(str(file), fresh.values())
                fresh = {}
        self.keep(str(file), fresh.values(), moved, [] if self.unread else [number for number, _ in gone.values()])
        self._advance(end - self.done_bytes)

    def keep(
        self,
        source: str,
        fresh: Collection[NewDocument] = (),
        moved: Sequence[tuple[int, str]] = (),
        removed: Sequence[int] = (),
    ) -> None:
        """Write documents in one transaction; their vectors are computed beforehand to keep it short."""
        if self.embed is not None and fresh:
            vectors = self.embed([text for document in fresh for text in document.passages])
            for document in fresh:
                document.vectors, vectors = np.split(vectors, [len(document.passages)])
        if fresh or moved or removed:
            self.store.write(source, list(fresh), moved, removed)
        self.report.added += len(fresh)
        self.report.removed += len(removed)

    def _digest(self, text: str) -> bytes:
        """Return a document's digest, which depends on the passage size and the model as well as on the text."""
        parts = (str(self.how.passage_length), "" if self.embed is None else self.embed.note.fingerprint, text)
        return hashlib.sha256("\0".join(parts).encode()).digest()

    def _advance(self, n_bytes: int) -> None:
        self.done_bytes += n_bytes
        if self.on_progress is not None:
            self.on_progress(Message("indexing"), self.done_bytes, max(1, self.total_bytes))


def search(
    store: SqliteStore, question: str, limit: int = 5, by: By | None = None, embed: PassageEmbedder | None = None
) -> SearchResult:
    """Return the best passages for a question, ranked by words, by meaning, or by both (default, if possible)."""
    if limit < 1:
        raise UsageError("{limit} must be 1 or more", limit=Option("limit", limit))
    if not question.strip():
        raise UsageError("the question is empty")
    if not store.measures().passages:
        raise KothaError("{name} is empty; index some documents with `kotha index`", name=store.name)
    stored = store.embedder()
    chosen = by or ("words" if embed is None or stored is None else "both")
    check_choice("by", chosen, get_args(By))
    if chosen == "words":
        return SearchResult(question, chosen, fuse(rank_by_words(store, question, limit), ()))
    if stored is None:
        raise UsageError(
            "{name} has no vectors; index the documents with a model, or search with {by}",
            name=store.name,
            by=Option("by", "words"),
        )
    if embed is None or (embed.note.fingerprint, embed.note.width) != (stored.fingerprint, stored.width):
        raise UsageError(
            "{name} contains vectors computed by {model}; search with that model, or with {by}",
            name=store.name,
            by=Option("by", "words"),
            model=stored.name,
        )
    near = store.near(embed([question])[0], max(limit, _CANDIDATES))
    if chosen == "meaning":
        return SearchResult(question, chosen, [Hit(each, cosine, meaning=cosine) for each, cosine in near[:limit]])
    return SearchResult(question, chosen, fuse(rank_by_words(store, question, max(limit, _CANDIDATES)), near)[:limit])
