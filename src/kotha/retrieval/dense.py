"""Search by meaning: the cosine of vectors, after whitening (PCA whitening, with a floor).

A model's vectors share a large mean, and a few directions that have little to do with the text dominate their variance.
After centring and scaling to equal variance in all directions, the vectors distinguish texts much better
(docs/dev/experiments.md). Mean and variance are estimated each time the vectors are loaded, so stored vectors stay
valid when documents change. If there are too few vectors, they are not whitened.

Su et al. 2021, https://arxiv.org/abs/2103.15316.
"""

import numpy as np
from numpy.typing import NDArray

Vectors = NDArray[np.float32]

_FLOOR = 0.1  # added to the variance of each direction, as a share of the mean variance
_FEWEST = 2  # vectors per dimension needed to estimate the whitening


def unit(vectors: Vectors) -> Vectors:
    """Scale vectors to length 1; zero vectors stay zero.

    >>> unit(np.array([[3, 4], [0, 0]], np.float32)).tolist()
    [[0.6000000238418579, 0.800000011920929], [0.0, 0.0]]
    """
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    scaled: Vectors = (vectors / np.where(lengths > 0, lengths, 1)).astype(np.float32)
    return scaled


class VectorIndex:
    """Nearest-neighbour search over vectors (passages, C)."""

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
        self._vectors = self._whitened(vectors)

    def __call__(self, vector: Vectors, limit: int) -> list[tuple[int, float]]:
        """Return the rows and cosines of the nearest vectors, best first."""
        cosines = self._vectors @ self._whitened(vector[None])[0]  # (passages,)
        rows = np.arange(len(cosines))
        if limit < len(cosines):  # only the best are sorted
            rows = np.argpartition(-cosines, limit)[:limit]
        best = rows[np.lexsort((rows, -cosines[rows]))]
        return [(int(row), float(cosines[row])) for row in best]

    def _whitened(self, vectors: Vectors) -> Vectors:
        if self._mean is None or self._scale is None:
            return unit(vectors)
        whitened: Vectors = ((vectors - self._mean) @ self._scale).astype(np.float32)
        return unit(whitened)
