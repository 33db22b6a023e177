"""Search by meaning: the cosine of vectors, after whitening (PCA whitening, with a floor).

A model's vectors all lean the same way, and a few directions that have nothing to do with what a text says outweigh the
rest. Taken from their mean and scaled so that all directions spread alike, they tell texts apart much better
(docs/dev/experiments.md). How they spread is learned from the vectors of the index itself, each time that they are
read: a stored one never goes out of date when documents change. Where there are too few to tell, it is the plain
cosine.

Su et al. 2021, https://arxiv.org/abs/2103.15316.
"""

import numpy as np
from numpy.typing import NDArray

Vectors = NDArray[np.float32]

_FLOOR = 0.1  # added to each direction's variance, as a share of the mean one
_FEWEST = 2  # vectors a direction, to learn from


def unit(vectors: Vectors) -> Vectors:
    """Vectors at length 1; what has none stays zero.

    >>> unit(np.array([[3, 4], [0, 0]], np.float32)).tolist()
    [[0.6000000238418579, 0.800000011920929], [0.0, 0.0]]
    """
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    scaled: Vectors = (vectors / np.where(lengths > 0, lengths, 1)).astype(np.float32)
    return scaled


class Near:
    """Vectors (passages, C), ready to be asked which are the nearest to another."""

    def __init__(self, vectors: Vectors) -> None:
        passages, width = vectors.shape
        self._mean: Vectors | None = None
        self._scale: Vectors | None = None
        if passages >= _FEWEST * width:
            self._mean = vectors.mean(axis=0)
            around = vectors - self._mean
            spread, directions = np.linalg.eigh(around.T @ around / passages)  # (C,), (C, C)
            floored = np.sqrt(spread.clip(0) + _FLOOR * spread.mean())
            self._scale = (directions / floored).astype(np.float32) if spread.mean() > 0 else None
        self._vectors = self._turned(vectors)

    def __call__(self, vector: Vectors, limit: int) -> list[tuple[int, float]]:
        """Rows and cosines of the nearest, best first."""
        cosines = self._vectors @ self._turned(vector[None])[0]  # (passages,)
        some = np.arange(len(cosines))
        if limit < len(cosines):  # all but the best need no order
            some = np.argpartition(-cosines, limit)[:limit]
        best = some[np.lexsort((some, -cosines[some]))]
        return [(int(row), float(cosines[row])) for row in best]

    def _turned(self, vectors: Vectors) -> Vectors:
        if self._mean is None or self._scale is None:
            return unit(vectors)
        turned: Vectors = ((vectors - self._mean) @ self._scale).astype(np.float32)
        return unit(turned)
