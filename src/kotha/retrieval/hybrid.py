"""Two rankings as one: by words and by meaning (hybrid search).

Both scores have a scale that does not move from question to question: the share of the question that a passage repeats,
and a cosine. So they are added, the second with a weight. By rank alone (reciprocal rank fusion, Cormack et al. 2009)
the weaker ranking spoils the better one; ``docs/dev/experiments.md`` has both.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from kotha.retrieval.passages import Excerpt

Ranking = Sequence[tuple[Excerpt, float]]

_MEANING = 0.2


@dataclass(frozen=True)
class Hit:
    """A passage that was found: its score, and what it is made of."""

    passage: Excerpt
    score: float
    words: float | None = None  # how much of the question it repeats: 1 is all of it
    meaning: float | None = None  # the cosine of the two vectors


def fuse(by_words: Ranking, by_meaning: Ranking) -> list[Hit]:
    """Hits of both, best first; who is missing in one has nothing from it.

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
