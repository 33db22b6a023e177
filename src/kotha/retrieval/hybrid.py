"""Hybrid search: merge the rankings by words and by meaning.

One score is the fraction of the question that a passage covers; the other is a cosine similarity. Both scores have the
same scale for every question, so they can be added, the second with a weight. Fusion by rank alone (reciprocal rank
fusion, Cormack et al. 2009) gives worse results than the better of the two rankings; ``docs/dev/experiments.md``
compares both methods.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from kotha.i18n.short_repr import ShortRepr
from kotha.retrieval.passages import Excerpt

Ranking = Sequence[tuple[Excerpt, float]]

_MEANING = 0.2


@dataclass(frozen=True, repr=False)
class Hit(ShortRepr):
    """A passage found by a search, with its score and the parts of the score."""

    passage: Excerpt
    score: float
    words: float | None = None  # share of the question that it covers, 0 to 1
    meaning: float | None = None  # cosine of the two vectors


def fuse(by_words: Ranking, by_meaning: Ranking) -> list[Hit]:
    """Merge two rankings, best first; a passage missing from one gets no score from it.

    >>> one, two = (Excerpt(text, "a.txt", "line 1") for text in ("নদী", "গ্রাম"))
    >>> [(hit.passage.text, hit.words) for hit in fuse([(one, 0.4)], [(two, 0.9), (one, 0.8)])]
    [('নদী', 0.4), ('গ্রাম', None)]
    """
    words, cosines = dict(by_words), dict(by_meaning)
    hits = [
        Hit(each, words.get(each, 0.0) + _MEANING * cosines.get(each, 0.0), words.get(each), cosines.get(each))
        for each in {**words, **cosines}
    ]
    return sorted(hits, key=lambda hit: -hit.score)
