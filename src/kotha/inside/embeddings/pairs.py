"""How far apart two words stand, beside two words drawn at random: small numbers mean nothing alone.

A wider table has room for finer differences: given several runs of different widths, the same pair is measured in each.
"""

from dataclasses import asdict, dataclass
from typing import Any

import torch

from kotha.inside.embeddings.neighbours import directions
from kotha.inside.embeddings.words import Embeddings

_RANDOM_PAIRS = 2000
_FREQUENT = 1000


@dataclass(frozen=True)
class PairDistance:
    """Two words in one table."""

    width: int
    cosine: float
    """Of the two words, from the mean."""
    random_cosine: float
    """The mean over pairs of random frequent words."""
    distance: float
    """Between the two words, over the mean length of the two (from the mean of all rows)."""
    random_distance: float
    """The same, on average, for pairs of random frequent words."""
    rank: int
    """Place of the second word among the neighbours of the first, from 1."""
    pieces: tuple[int, int]
    """Tokens that the two words are made of."""

    @property
    def relative(self) -> float:
        """The pair's distance as a share of a random pair's."""
        return self.distance / self.random_distance

    def to_dict(self) -> dict[str, Any]:
        """Ready for JSON."""
        return {**asdict(self), "relative": self.relative}


def measure_pair(table: Embeddings, first: str, second: str, seed: int = 0) -> PairDistance:
    """Cosine and distance of two words, and of random frequent ones."""
    words = [table.find(each) for each in (first, second)]
    a, b = (word.vector - table.mean for word in words)
    frequent = torch.tensor(table.frequent_words(_FREQUENT))
    drawn = torch.randint(len(frequent), (2, _RANDOM_PAIRS), generator=torch.Generator().manual_seed(seed))
    drawn = drawn[:, drawn[0] != drawn[1]]
    left, right = (table.vectors[frequent[each]] - table.mean for each in drawn)  # each (N, C)
    cosines = directions(table.vectors[table.rows], table) @ directions(words[0].vector, table)  # (N,)
    cosine = float(torch.cosine_similarity(a, b, dim=0))
    others = ~torch.isin(table.rows, torch.tensor(words[0].tokens + words[1].tokens))
    return PairDistance(
        width=table.vectors.shape[1],
        cosine=cosine,
        random_cosine=float(torch.cosine_similarity(left, right).mean()),
        distance=float((a - b).norm() / (a.norm() + b.norm()) * 2),
        random_distance=float(((left - right).norm(dim=1) / (left.norm(dim=1) + right.norm(dim=1)) * 2).mean()),
        rank=1 + int((cosines[others] > cosine).sum()),
        pieces=(len(words[0].tokens), len(words[1].tokens)),
    )


def distance_at_widths(tables: dict[str, Embeddings], first: str, second: str) -> dict[str, PairDistance]:
    """The same pair in several tables by name, narrowest first."""
    ordered = sorted(tables.items(), key=lambda each: each[1].vectors.shape[1])
    return {name: measure_pair(table, first, second) for name, table in ordered}
