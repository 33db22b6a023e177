"""Sample a token for one row on a CPU, with NumPy: like ``plain.py``, but without ranking the whole vocabulary.

With top-k, only the k best logits are ranked. Without top-k, the best few hundred logits are ranked first; this is
enough if the random number selects one of them. ``sampling.py`` samples tokens for a whole batch, with tensors.
"""

import numpy as np
from numpy.typing import NDArray

from kotha.generation.request import Seen
from kotha.generation.settings import SamplingSettings

Floats = NDArray[np.float32]
# The number of tokens ranked first if there is no top-k.
_FEW = 256


def penalize(logits: Floats, penalty: float, seen: set[int]) -> Floats:
    """Apply the repetition penalty to the tokens that occur in the text: logits (V,) -> (V,)."""
    tokens, divisor, scores = np.fromiter(seen, np.int64, len(seen)), np.float32(penalty), logits.copy()
    scores[tokens] = np.where(logits[tokens] > 0, logits[tokens] / divisor, logits[tokens] * divisor)
    return scores


def draw(logits: Floats, settings: SamplingSettings, number: float) -> int:
    """Sample a token: logits (V,) and a random number in [0, 1) -> ().

    >>> logits = np.log(np.array([0.25, 0.5, 0.25], np.float32))
    >>> [draw(logits, SamplingSettings(temperature=1, top_k=2), number) for number in (0.0, 0.6, 0.7)]
    [1, 1, 0]
    """
    if settings.greedy:
        return int(logits.argmax())  # the first of equal logits
    token = _point(logits, settings, number, min(settings.top_k or _FEW, len(logits)))
    if token is None:
        token = _point(logits, settings, number, len(logits))
    assert token is not None, "without filtering, the number selects from all tokens"
    return token


def report(logits: Floats, token: int, count: int) -> Seen:
    """Return a token and the ``count`` most likely ones, with their probabilities before sampling settings apply."""
    shifted = logits - logits.max()
    chances = shifted - np.log(np.exp(shifted).sum())
    ids = [token, *_best(chances, min(count, len(chances))).tolist()]
    likelier = chances > chances[token]
    return ids, chances[ids].tolist(), [int(likelier.sum()) + 1], [float(np.exp(chances[likelier]).sum())]


def _best(scores: Floats, count: int) -> NDArray[np.int64]:
    """Return the indices of the largest scores, highest first: (V,) -> (count,)."""
    least = np.partition(scores, -count)[-count] if count else np.inf
    some = np.flatnonzero(scores >= least)
    return some[np.argsort(-scores[some], kind="stable")[:count]]  # the first of equal scores


def _point(logits: Floats, settings: SamplingSettings, number: float, width: int) -> int | None:
    """Return the token that the number selects among the ``width`` most likely tokens.

    Return None if it may be another token.
    """
    heat = np.float32(max(settings.temperature, 1e-30))
    tokens = _best(logits, width)
    weights = np.exp((logits[tokens] - logits[tokens[0]]) / heat)  # 1 for the most likely token
    reached = _totals(weights)
    is_all = settings.top_k is not None or width == len(logits)  # no other token can be sampled
    total = reached[-1] if is_all else np.exp((logits - logits[tokens[0]]) / heat).sum()  # the total for top-p
    kept = (weights >= np.float32(settings.min_p or 0)) & (weights > 0)
    if settings.top_p is not None:
        kept &= reached - weights < np.float32(settings.top_p) * total
    reached = _totals(weights * kept)
    is_closed = is_all or not kept[-1]  # no other token would be kept
    goal = np.float32(number) * (reached[-1] if is_closed else total)
    if not is_closed and (goal >= reached[-1] or settings.top_p is not None or settings.min_p is not None):
        return None
    rank = int((reached <= goal).sum())  # the first whose cumulative weight exceeds the goal
    return int(tokens[min(rank, int(kept.sum()) - 1)])  # rounding may make the sum too small


def _totals(weights: Floats) -> Floats:
    """Return cumulative sums, each rounded once: (width,) -> (width,)."""
    return np.cumsum(weights, dtype=np.float64).astype(np.float32)
