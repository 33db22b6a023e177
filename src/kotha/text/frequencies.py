"""What someone reaches who knows only how often each answer occurs: the first thing that a model has to beat."""

import numpy as np
from numpy.typing import NDArray

Counts = NDArray[np.int64]


def frequency_nats(learned: Counts, held_out: Counts) -> float:
    """Mean nats of held-out answers to one who guesses by how often each was seen: (V,), (V,) -> nats.

    One is added to each count, because an answer that was never seen is still possible.

    >>> round(frequency_nats(np.array([2, 0]), np.array([1, 1])), 4)  # (-ln 3/4 - ln 1/4) / 2
    0.837
    """
    chances = (learned + 1) / (learned.sum() + len(learned))
    return -float((held_out * np.log(chances)).sum() / held_out.sum())
