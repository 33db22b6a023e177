"""Sampling for one row on a CPU, in NumPy: the settings of ``plain.py``, without ranking a whole vocabulary.

The same method as ``sampling.py``, which does it for a batch of tensors: only the best few logits are ranked, and one
random number in [0, 1) selects from them. All of them are ranked only if that number may fall on one of the others.
"""

import numpy as np
from numpy.typing import NDArray

from kotha.generation.settings import SamplingSettings

Floats = NDArray[np.float32]
# The number of tokens ranked first without top-k.
_FEW = 256


def penalize(logits: Floats, penalty: float, seen: NDArray[np.bool_]) -> Floats:
    """Apply the repetition penalty: logits (V,) and which tokens the text has, booleans (V,) -> (V,)."""
    divisor = np.float32(penalty)
    return np.where(seen, np.where(logits > 0, logits / divisor, logits * divisor), logits)


def draw(logits: Floats, settings: SamplingSettings, number: float) -> int:
    """Sample a token: logits (V,) and a random number in [0, 1) -> ().

    >>> logits = np.log(np.array([0.25, 0.5, 0.25], np.float32))
    >>> [draw(logits, SamplingSettings(temperature=1, top_k=2), number) for number in (0.0, 0.6, 0.7)]
    [1, 1, 0]
    """
    if settings.greedy:
        return int(logits.argmax())  # the first of equal ones
    token, is_certain = _point(logits, settings, number, min(settings.top_k or _FEW, len(logits)))
    return token if is_certain else _point(logits, settings, number, len(logits))[0]


def best(scores: Floats, count: int) -> NDArray[np.int64]:
    """The indices of the largest scores, best first: (V,) -> (count,)."""
    some = np.argpartition(scores, len(scores) - count)[len(scores) - count :]
    some.sort()  # of equal ones the first is first
    return some[np.argsort(-scores[some], kind="stable")]


def _point(logits: Floats, settings: SamplingSettings, number: float, width: int) -> tuple[int, bool]:
    """The token that the number selects among the best ``width``, and whether the others cannot change it."""
    top_p = np.inf if settings.top_p is None else np.float32(settings.top_p)
    min_p, heat = np.float32(settings.min_p or 0), np.float32(max(settings.temperature, 1e-30))
    tokens = best(logits, width)
    values = logits[tokens]
    weights = np.exp((values - values[0]) / heat)  # 1 for the best
    reached = _totals(weights)
    total = reached[-1]  # the total that top-p refers to, after top-k
    is_whole = settings.top_k is not None or width == len(logits)  # no other token can be sampled
    if not is_whole:
        total = np.exp((logits - values[0]) / heat).sum()
    kept = (reached - weights < top_p * total) & (weights >= min_p) & (weights > 0)
    reached = _totals(weights * kept)
    is_closed = is_whole or not kept[-1]  # no unranked token would be kept
    is_open = settings.top_k is None and settings.top_p is None and settings.min_p is None  # all would be
    goal = np.float32(number) * (reached[-1] if is_closed else total)
    rank = int((reached <= goal).sum())  # the first whose cumulative weight exceeds the goal
    last = int(kept.sum()) - 1  # the sum may be rounded down
    return int(tokens[min(rank, last)]), bool(is_closed or (is_open and goal < reached[-1]))


def _totals(weights: Floats) -> Floats:
    """Cumulative sums, rounded once: (width,) -> (width,)."""
    return np.cumsum(weights, dtype=np.float64).astype(np.float32)
