"""Ranking by words: BM25 over words, stems, and pairs of adjacent words.

The store selects candidates by their stems; this module scores them. The score is the sum of BM25 over four kinds of
terms: stems, exact words, pairs of adjacent stems, and exact pairs. A term is weighted by its rarity (idf; a pair by
that of its rarer word) and its frequency, which saturates (k1) and has less effect in a long passage (b). The four
kinds have equal weight, and k1 is lower than usual. The weights and k1 were tuned on questions that are not part of any
reported score (docs/dev/experiments.md).

Robertson and Zaragoza 2009, The Probabilistic Relevance Framework: BM25 and Beyond.
"""

import math
from collections import Counter
from collections.abc import Sequence
from itertools import pairwise
from operator import attrgetter

from kotha.retrieval.passages import Excerpt
from kotha.retrieval.sqlite_store import SqliteStore
from kotha.retrieval.stemming import FoldedWord, fold

_K1, _B = 0.4, 0.75
_CANDIDATES = 30
# Interrogative words, which are ignored because a passage that answers the question does not contain them.
_QUESTION_WORDS = "কে কার কাকে কারা কাদের কী কি কোন কোনটি কোথায় কোথা কবে কখন কত কতটি কয়টি কতজন কেন কেমন কীভাবে কিভাবে"
_STOP_WORDS = {word.form for word in fold(_QUESTION_WORDS)}
_MOST_WORDS = 64  # maximum number of words used from a question


def rank_by_words(store: SqliteStore, question: str, limit: int) -> list[tuple[Excerpt, float]]:
    """Return passages that share words with a question, best first; a passage equal to the question scores 1."""
    query = fold(question)[:_MOST_WORDS]
    query = [word for word in query if word.form not in _STOP_WORDS] or query
    if not query:
        return []
    measures = store.measures()
    counts = store.frequencies(list({word.stem for word in query}))
    worth = {stem: idf(count, measures.passages) for stem, count in counts.items()}
    maximum = weigh(query, query, worth, len(query))
    found = store.find(counts, max(limit, _CANDIDATES))
    scored = [(each, weigh(query, fold(each.text), worth, measures.mean_words) / maximum) for each in found]
    return sorted(scored, key=lambda pair: -pair[1])[:limit]


def idf(count: int, passages: int) -> float:
    """Return the inverse document frequency of a stem that occurs in ``count`` of the passages.

    >>> round(idf(1, 1000), 2), round(idf(900, 1000), 2)
    (6.5, 0.11)
    """
    return math.log(1 + (passages - count + 0.5) / (count + 0.5))


def weigh(
    query: Sequence[FoldedWord], words: Sequence[FoldedWord], worth: dict[str, float], mean_words: float
) -> float:
    """Return the BM25 score of a passage for a question, given the words of both.

    >>> near, far = (fold(text) for text in ("পদ্মা নদীর তীরে", "নদীর তীরে পদ্মা"))
    >>> worth = {"পদ্মা": 3.0, "নদী": 1.0}
    >>> weigh(fold("পদ্মা নদী"), near, worth, 3.0) > weigh(fold("পদ্মা নদী"), far, worth, 3.0)
    True
    """
    relative = len(words) / max(mean_words, 1.0)
    kept = [(index, word) for index, word in enumerate(words) if word.stem in worth]  # others have no weight
    neighbours = [(one, two) for (at, one), (then, two) in pairwise(kept) if then == at + 1]
    score = 0.0
    for of in (_form, _stem):
        singles = Counter(of(word) for _, word in kept)
        pairs = Counter((of(one), of(two)) for one, two in neighbours)
        for key, value in {of(word): worth.get(word.stem, 0.0) for word in query}.items():
            score += value * _saturated(singles[key], relative)
        for one, two in {(of(one), of(two)): (one, two) for one, two in pairwise(query)}.values():
            rarer = max(worth.get(one.stem, 0.0), worth.get(two.stem, 0.0))
            score += rarer * _saturated(pairs[of(one), of(two)], relative)
    return score


_form, _stem = attrgetter("form"), attrgetter("stem")


def _saturated(count: int, relative: float) -> float:
    return count * (_K1 + 1) / (count + _K1 * (1 - _B + _B * relative)) if count else 0.0
