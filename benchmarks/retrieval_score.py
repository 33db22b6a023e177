"""Retrieval scores: recall@1, recall@5 and the mean reciprocal rank (MRR), compared with FTS5.

The baseline is SQLite's full-text search, with its default tokenizer, which treats a vowel sign as a space, or with
combining marks kept.
"""

import sqlite3
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import islice

from kotha.errors import UsageError
from kotha.retrieval.index import By, PassageEmbedder, search
from kotha.retrieval.sqlite_store import SqliteStore

# Ranks beyond this count as not found.
DEPTH = 10


@dataclass(frozen=True)
class RetrievalScore:
    """The shares of questions whose passage is first or among the first five results, and the mean of 1 / its rank."""

    questions: int
    recall_at_1: float
    recall_at_5: float
    mrr: float


def score_ranks(ranks: Iterable[int | None]) -> RetrievalScore:
    """Return the scores for ranks counted from 1; None means not found.

    >>> score_ranks([1, 2, None, 1])
    RetrievalScore(questions=4, recall_at_1=0.5, recall_at_5=0.75, mrr=0.625)
    """
    found = list(ranks)
    if not found:
        raise UsageError("there are no questions; give at least one")
    n = len(found)
    reached = [rank for rank in found if rank is not None and rank <= DEPTH]
    first, among_five = (sum(rank <= most for rank in reached) / n for most in (1, 5))
    return RetrievalScore(n, first, among_five, sum(1 / rank for rank in reached) / n)


def evaluate_search(
    store: SqliteStore, questions: Sequence[tuple[str, str]], by: By | None = None, embed: PassageEmbedder | None = None
) -> RetrievalScore:
    """Evaluate an index on (question, position) pairs; the position in the source is the correct answer."""
    ranks: list[int | None] = []
    for question, right in questions:
        places = [hit.passage.place for hit in search(store, question, DEPTH, by, embed).hits]
        ranks.append(places.index(right) + 1 if right in places else None)
    return score_ranks(ranks)


def evaluate_fts5(
    passages: Sequence[str], questions: Sequence[tuple[str, int]], tokenizer: str = "unicode61"
) -> RetrievalScore:
    """Evaluate the baseline, FTS5, on (question, index of its passage) pairs; any word of a question may match.

    >>> evaluate_fts5(["নদীর ধারে", "গ্রামের পথ"], [("কোন পথ?", 1)]).recall_at_1
    1.0
    """
    database = sqlite3.connect(":memory:")
    try:
        database.execute(f'CREATE VIRTUAL TABLE found USING fts5(text, tokenize="{tokenizer}")')
        database.executemany("INSERT INTO found (rowid, text) VALUES (?, ?)", enumerate(passages))
        ranks: list[int | None] = []
        for question, right in questions:
            words = " OR ".join('"{}"'.format(word.replace('"', '""')) for word in question.split())
            rows = database.execute("SELECT rowid FROM found WHERE found MATCH ? ORDER BY rank", [words])
            numbers = [row[0] for row in islice(rows, DEPTH)]
            ranks.append(numbers.index(right) + 1 if right in numbers else None)
        return score_ranks(ranks)
    finally:
        database.close()
