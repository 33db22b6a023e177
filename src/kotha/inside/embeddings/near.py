"""How near words stand: the neighbours of a word by cosine similarity, two words beside two drawn at random, and a map.

Near is measured by cosine similarity: the angle between two vectors. All rows of a small model share much
(what tells a used row from an unused one, a frequent word from a rare one), which lifts every cosine alike. The mean is
taken away first, unless one asks for the plain angle. Measured on two models of 2 layers of 96 that learned the
stories, with eight lists of like words (kin, months, numbers, ...): of the nearest words 56.9 % were of the same list
without the mean and 55.4 % with it (54.0 % and 52.5 % in the other model), and the cosine of two random words fell from
0.18 to 0.00, so that a figure says something by itself. (Mu & Viswanath 2018, https://arxiv.org/abs/1702.01417)

How far apart two words stand means nothing alone, so it is measured beside random pairs. A wider table has room for
finer differences: given several runs of different widths, the same pair is measured in each.

The map (PCA) lays words into the plane in which the centred vectors spread most, their two principal components. A
table of a hundred dimensions never fits into two, so the share of the spread that the picture shows is part of the
result. The sign of a component means nothing; here its largest word lies on the positive side, so that the same model
gives the same map.
"""

from dataclasses import asdict, dataclass
from typing import Any

import torch
from torch import Tensor

from kotha.errors import UsageError
from kotha.i18n.message import Message
from kotha.inside.embeddings.words import Embeddings, Word
from kotha.report.table import Table

_RANDOM_PAIRS = 2000
_FREQUENT = 1000


@dataclass(frozen=True)
class Neighbour:
    """A row near a word."""

    token: int
    text: str
    cosine: float


def nearest_words(table: Embeddings, word: Word, count: int = 10, centred: bool = True) -> list[Neighbour]:
    """The rows nearest to a word by cosine, nearest first; its own pieces are left out."""
    cosines = directions(table.vectors[table.rows], table, centred) @ directions(word.vector, table, centred)  # (N,)
    own = torch.isin(table.rows, torch.tensor(word.tokens))
    same_text = torch.tensor([table.texts[token].strip() == word.text for token in table.rows.tolist()])
    cosines = cosines.masked_fill(own | same_text, -torch.inf)
    best = cosines.topk(min(count, int(cosines.isfinite().sum())))
    tokens = table.rows[best.indices].tolist()
    pairs = zip(tokens, best.values.tolist(), strict=True)
    return [Neighbour(token, table.texts[token].strip(), cosine) for token, cosine in pairs]


def directions(vectors: Tensor, table: Embeddings, centred: bool = True) -> Tensor:
    """Vectors of length one, from the table's mean or from zero: (..., C) -> (..., C)."""
    moved = vectors - table.mean if centred else vectors
    return torch.nn.functional.normalize(moved, dim=-1)


@dataclass(frozen=True)
class PairDistance:
    """Two words in one table."""

    width: int
    cosine: float  # of the two words, from the mean
    random_cosine: float  # the mean over pairs of random frequent words
    distance: float  # between the two words, over the mean length of the two (from the mean of all rows)
    random_distance: float  # the same, on average, for pairs of random frequent words
    rank: int  # place of the second word among the neighbours of the first, from 1
    pieces: tuple[int, int]  # tokens that the two words are made of

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


def pair_table(words: tuple[str, str], found: dict[str, PairDistance]) -> Table:
    """The same pair in several runs, to read."""
    names = ("cosine", "random_cosine", "distance", "random_distance", "relative")
    rows = [
        [run, f"{each.width:,}", *(f"{getattr(each, name):.3f}" for name in names), f"{each.rank:,}"]
        for run, each in found.items()
    ]
    header = [
        *(Message("run"), Message("width"), Message("cosine"), Message("random"), Message("distance")),
        *(Message("random"), Message("share of random"), Message("neighbour no.")),
    ]
    in_pieces = any(max(each.pieces) > 1 for each in found.values())
    remarks = [Message("a word that is not one token is the mean of its pieces")] if in_pieces else []
    return Table(Message("{first} and {second}", first=words[0], second=words[1]), header, rows, remarks)


@dataclass(frozen=True)
class Dot:
    """A word on the map."""

    text: str
    x: float
    y: float
    chosen: bool  # was it asked for by name?


@dataclass(frozen=True)
class WordMap:
    """Words in a plane."""

    dots: list[Dot]  # most frequent first; the chosen ones last
    shares: tuple[float, float]  # of all spread, what each axis shows


def word_map(table: Embeddings, chosen: list[Word], count: int = 300) -> WordMap:
    """The most frequent words and the chosen ones, in two dimensions."""
    named = {word.text for word in chosen}
    tokens = [token for token in table.frequent_words(count) if table.texts[token].strip() not in named]
    if len(tokens) + len(chosen) < 3:
        n_words = len(tokens) + len(chosen)
        raise UsageError("a map of {n} words shows nothing; it needs at least three", n=n_words)
    vectors = torch.cat([table.vectors[tokens], *(word.vector[None] for word in chosen)])  # (N, C)
    places, shares = principal_plane(vectors)
    texts = [table.texts[token].strip() for token in tokens] + [word.text for word in chosen]
    rows = zip(texts, places.tolist(), strict=True)
    dots = [Dot(text, x, y, place >= len(tokens)) for place, (text, (x, y)) in enumerate(rows)]
    return WordMap(dots, shares)


def principal_plane(vectors: Tensor) -> tuple[Tensor, tuple[float, float]]:
    """The two directions of most spread, and their shares of it: (N, C) -> (N, 2)."""
    centred = vectors - vectors.mean(0)
    u, s, _ = torch.linalg.svd(centred, full_matrices=False)  # (N, K), (K,)
    places = u[:, :2] * s[:2]  # (N, 2)
    largest = places.gather(0, places.abs().argmax(0, keepdim=True))  # (1, 2)
    shares = (s.square() / s.square().sum().clamp_min(1e-30)).tolist()
    return places * torch.where(largest < 0, -1.0, 1.0), (shares[0], shares[1])
