"""A map of words (PCA): their vectors laid into the plane that shows the most of their differences.

Principal components: the two directions in which the centred vectors spread most. A table of a hundred dimensions
never fits into two, so the share of the spread that the picture shows is part of the result. The sign of a component
means nothing; here its largest word lies on the positive side, so that the same model gives the same map.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from kotha.errors import UsageError
from kotha.inside.embeddings.words import Embeddings, Word

_DIMENSIONS = 2


@dataclass(frozen=True)
class Dot:
    """A word on the map."""

    text: str
    x: float
    y: float
    chosen: bool
    """Was it asked for by name?"""


@dataclass(frozen=True)
class WordMap:
    """Words in a plane."""

    dots: list[Dot]
    """Most frequent first; the chosen ones last."""
    shares: tuple[float, float]
    """Of all spread, what each axis shows."""


def word_map(table: Embeddings, chosen: list[Word], count: int = 300) -> WordMap:
    """The most frequent words and the chosen ones, in two dimensions."""
    named = {word.text for word in chosen}
    tokens = [token for token in table.frequent_words(count) if table.texts[token].strip() not in named]
    if len(tokens) + len(chosen) <= _DIMENSIONS:
        raise UsageError(f"a map of {len(tokens) + len(chosen)} words shows nothing; it needs at least three")
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
    places = u[:, :_DIMENSIONS] * s[:_DIMENSIONS]  # (N, 2)
    largest = places.gather(0, places.abs().argmax(0, keepdim=True))  # (1, 2)
    shares = (s.square() / s.square().sum().clamp_min(1e-30)).tolist()
    return places * torch.where(largest < 0, -1.0, 1.0), (shares[0], shares[1])
