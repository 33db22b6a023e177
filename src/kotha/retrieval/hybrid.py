"""Two rankings as one: by words and by meaning (hybrid search).

Both scores have a scale that does not move from question to question: the share of the question that a passage repeats,
and a cosine. So they are added, the second with a weight. By rank alone (reciprocal rank fusion, Cormack et al. 2009)
the weaker ranking spoils the better one; ``docs/experiments.md`` has both.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from kotha.retrieval.passages import Excerpt
from kotha.retrieval.store import Stored

Ranking = Sequence[tuple[Stored, float]]

_MEANING = 0.2


@dataclass(frozen=True)
class Hit:
    """A passage that was found: its score, and what it is made of."""

    passage: Excerpt
    score: float
    words: float | None = None  # how much of the question it repeats: 1 is all of it
    meaning: float | None = None  # the cosine of the two vectors


def from_words(ranking: Ranking) -> list[Hit]:
    """Hits of a search by words."""
    return [Hit(stored.passage, score, words=score) for stored, score in ranking]


def from_meaning(ranking: Ranking) -> list[Hit]:
    """Hits of a search by meaning."""
    return [Hit(stored.passage, score, meaning=score) for stored, score in ranking]


def fuse(by_words: Ranking, by_meaning: Ranking) -> list[Hit]:
    """Hits of both, best first; who is missing in one has nothing from it.

    >>> one, two = (Stored(number, Excerpt(text, "a.txt", "line 1")) for number, text in enumerate(["নদী", "গ্রাম"]))
    >>> [(hit.passage.text, hit.words) for hit in fuse([(one, 0.4)], [(two, 0.9), (one, 0.8)])]
    [('নদী', 0.4), ('গ্রাম', None)]
    """
    words = {stored.number: score for stored, score in by_words}
    cosines = {stored.number: cosine for stored, cosine in by_meaning}
    found = {stored.number: stored.passage for stored, _ in (*by_words, *by_meaning)}
    hits = [
        Hit(
            passage,
            words.get(number, 0.0) + _MEANING * cosines.get(number, 0.0),
            words.get(number),
            cosines.get(number),
        )
        for number, passage in found.items()
    ]
    return sorted(hits, key=lambda hit: -hit.score)
