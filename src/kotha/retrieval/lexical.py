"""Ranking by words: BM25 over words, stems, and pairs of neighbours.

A store finds candidates by their stems; here each is weighed. What a question and a passage share counts four times, if
it is shared so far: as a stem, as the very word, as a pair of stems that stand side by side in both, and as the very
pair. Each is worth as much as it is rare (idf; a pair as its rarer half) and how often it occurs, which soon counts for
no more (k1) and for less in a long passage (b). The four weigh the same, and k1 is lower than usual: both were chosen
on questions that no figure is reported for (docs/dev/experiments.md).

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
# What a question asks with: no passage is found by it, and none must have it to fit.
_QUESTION_WORDS = "কে কার কাকে কারা কাদের কী কি কোন কোনটি কোথায় কোথা কবে কখন কত কতটি কয়টি কতজন কেন কেমন কীভাবে কিভাবে"
_ASKING = {word.form for word in fold(_QUESTION_WORDS)}
_MOST_WORDS = 64  # of a question; what is longer is a document


def rank_by_words(store: SqliteStore, question: str, limit: int) -> list[tuple[Excerpt, float]]:
    """Passages that share words with a question, best first; 1 is the score of the question itself, word for word."""
    asked = fold(question)[:_MOST_WORDS]
    asked = [word for word in asked if word.form not in _ASKING] or asked
    if not asked:
        return []
    measures = store.measures()
    counts = store.frequencies(list({word.stem for word in asked}))
    worth = {stem: idf(count, measures.passages) for stem, count in counts.items()}
    whole = weigh(asked, asked, worth, len(asked))
    found = store.find(counts, max(limit, _CANDIDATES))
    scored = [(each, weigh(asked, fold(each.text), worth, measures.mean_words) / whole) for each in found]
    return sorted(scored, key=lambda pair: -pair[1])[:limit]


def idf(count: int, passages: int) -> float:
    """What a stem is worth that so many of the passages have: the rarer, the more.

    >>> round(idf(1, 1000), 2), round(idf(900, 1000), 2)
    (6.5, 0.11)
    """
    return math.log(1 + (passages - count + 0.5) / (count + 0.5))


def weigh(
    asked: Sequence[FoldedWord], words: Sequence[FoldedWord], worth: dict[str, float], mean_words: float
) -> float:
    """The score of a passage's words for a question's.

    >>> near, far = (fold(text) for text in ("পদ্মা নদীর তীরে", "নদীর তীরে পদ্মা"))
    >>> worth = {"পদ্মা": 3.0, "নদী": 1.0}
    >>> weigh(fold("পদ্মা নদী"), near, worth, 3.0) > weigh(fold("পদ্মা নদী"), far, worth, 3.0)
    True
    """
    relative = len(words) / max(mean_words, 1.0)
    kept = [(place, word) for place, word in enumerate(words) if word.stem in worth]  # others have no part in it
    neighbours = [(one, two) for (at, one), (then, two) in pairwise(kept) if then == at + 1]
    score = 0.0
    for of in (_form, _stem):
        singles = Counter(of(word) for _, word in kept)
        pairs = Counter((of(one), of(two)) for one, two in neighbours)
        for key, value in {of(word): worth.get(word.stem, 0.0) for word in asked}.items():
            score += value * _often(singles[key], relative)
        for one, two in {(of(one), of(two)): (one, two) for one, two in pairwise(asked)}.values():
            rarer = max(worth.get(one.stem, 0.0), worth.get(two.stem, 0.0))
            score += rarer * _often(pairs[of(one), of(two)], relative)
    return score


_form, _stem = attrgetter("form"), attrgetter("stem")


def _often(count: int, relative: float) -> float:
    return count * (_K1 + 1) / (count + _K1 * (1 - _B + _B * relative)) if count else 0.0
