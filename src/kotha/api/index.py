"""A document index, for search and for answers with citations."""

import os
from collections.abc import Iterable
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any

from kotha.api import AnyPath, listed
from kotha.api.progress import displayed
from kotha.arguments import checked
from kotha.errors import KothaError
from kotha.i18n.message import OnProgress
from kotha.retrieval.answer import CitedAnswer as CitedAnswer
from kotha.retrieval.answer import answer
from kotha.retrieval.documents import IndexOptions
from kotha.retrieval.hybrid import Hit as Hit
from kotha.retrieval.index import By, IndexReport, PassageEmbedder, search, update
from kotha.retrieval.index import SearchResult as SearchResult
from kotha.retrieval.sqlite_store import Measures, SqliteStore
from kotha.storage.status import exists
from kotha.text.corpus.documents import OnProblem

if TYPE_CHECKING:
    from kotha.api.model import LanguageModel


class Index:
    """A searchable index of documents split into passages, stored in one file.

    With a ``model`` (a model or its path), passages are also compared by the model's embeddings. Without a model,
    passages are compared only by words, which does not require torch.

    >>> index = kotha.Index("stories.index")
    >>> index.update("stories.jsonl").documents
    60
    >>> index
    Index('stories.index': ... passages)
    """

    @checked()
    def __init__(self, path: AnyPath, model: "LanguageModel | AnyPath | None" = None) -> None:
        self.path = os.fspath(path)
        self._model = model
        self._embed: PassageEmbedder | None = None
        self._store: SqliteStore | None = None

    def __repr__(self) -> str:
        try:
            return f"Index({self.path!r}: {self.measures.passages:,} passages)"
        except (KothaError, OSError) as error:
            return f"Index({self.path!r}: {'new' if not exists(Path(self.path)) else error})"

    def __enter__(self) -> "Index":
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    @displayed
    @checked(IndexOptions)
    def update(
        self,
        paths: AnyPath | Iterable[AnyPath],
        *,
        on_progress: OnProgress | None = None,
        on_problem: OnProblem | None = None,
        **how: Any,
    ) -> IndexReport:
        """Update the index from files, folders or globs: txt, md, html, pdf, jsonl, csv, tsv, parquet.

        Unchanged documents are kept, and documents that no longer exist are removed. ``how`` may set ``passage_length``
        (the maximum length of a passage in characters), ``field`` and ``errors``.

        >>> index = kotha.Index("stories.index")
        >>> index.update("stories.jsonl").unchanged
        60
        """
        self.close()
        store = SqliteStore(self.path, write=True)
        try:
            return update(store, listed(paths), IndexOptions(**how), self._embedder(), on_progress, on_problem)
        finally:
            store.close()

    @checked()
    def search(self, question: str, limit: int = 5, by: By | None = None) -> SearchResult:
        """Return the passages that best match a question, with their scores; ``by`` is words, meaning or both.

        >>> found = kotha.Index("stories.index").search("নদীর ধারে", limit=2)
        >>> len(found.hits), found.hits[0].passage.place.startswith("line ")
        (2, True)
        """
        return search(self._open(), question, limit, by, None if by == "words" else self._embedder())

    @checked()
    def ask(self, question: str, limit: int = 5, by: By | None = None, *, tokens: int = 100) -> CitedAnswer:
        """Answer a question from matching passages, with citations; ``found`` is False if no passage matches.

        A model that was not trained to answer questions is not used. The answer is then the sentence that best matches
        the question, and ``remark`` says so.

        >>> print(kotha.Index("stories.index").ask("zebra crossing?").answer)
        not found in these documents
        """
        return answer(self.search(question, limit, by), self._writer(tokens))

    @property
    def measures(self) -> Measures:
        """The number of passages, documents and sources.

        >>> kotha.Index("stories.index").measures.sources
        1
        """
        return self._open().measures()

    def close(self) -> None:
        """Close the file; the next search opens it again.

        >>> kotha.Index("stories.index").close()
        """
        if self._store is not None:
            self._store.close()
            self._store = None

    def _open(self) -> SqliteStore:
        if self._store is None:
            self._store = SqliteStore(self.path)
        return self._store

    def _loaded_model(self) -> "LanguageModel | None":
        if isinstance(self._model, str | os.PathLike):
            from kotha.api.model import load

            self._model = load(self._model)
        return self._model

    def _embedder(self) -> PassageEmbedder | None:
        lm = self._loaded_model()
        if lm is not None and self._embed is None:
            self._embed = lm.embedder()
        return self._embed

    def _writer(self, tokens: int) -> Any:
        lm = self._loaded_model()
        if lm is None or lm.config.family != "gpt":
            return None
        from kotha.retrieval.answer import ChatWriter

        return ChatWriter.of(lm.engine(), tokens)
