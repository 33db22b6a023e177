"""Bradley–Terry: how strong each of several is, from who won against whom, with an interval.

The chance that a wins against b is e^a / (e^a + e^b) (https://www.jstor.org/stable/2334029). A tie is half a win for
each. Strengths are fitted by maximum likelihood (Newton's method), and lie around 0, the mean of all; their
uncertainty is the inverse of the curvature there. One that has won everything would be infinitely strong, so every pair
that met is given one more tie; ``prior`` says how many.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from kotha.errors import DataError

Numbers = NDArray[np.float64]
_DEVIATIONS = 1.96  # 95 of 100
_ROUNDS, _CLOSE = 100, 1e-10


@dataclass(frozen=True)
class Strengths:
    """Strengths in nats of odds, around 0, and how they vary together."""

    values: Numbers  # (n,)
    covariance: Numbers  # (n, n)

    def interval(self, place: int) -> tuple[float, float]:
        """Where a strength lies in 95 of 100 cases."""
        half = _DEVIATIONS * float(np.sqrt(self.covariance[place, place]))
        return float(self.values[place]) - half, float(self.values[place]) + half

    def chance(self, one: int, other: int) -> tuple[float, float, float]:
        """How likely one wins against the other, and where that lies in 95 of 100 cases."""
        apart = self.values[one] - self.values[other]
        spread = self.covariance
        half = _DEVIATIONS * float(np.sqrt(spread[one, one] + spread[other, other] - 2 * spread[one, other]))
        low, middle, high = (1 / (1 + np.exp(-each)) for each in (apart - half, apart, apart + half))
        return float(middle), float(low), float(high)


def fit_strengths(wins: Numbers, prior: float = 1.0) -> Strengths:
    """Strengths from wins: row against column, a tie half to each, (n, n) -> (n,) and (n, n).

    >>> found = fit_strengths(np.array([[0.0, 3.0], [1.0, 0.0]]), prior=0.0)
    >>> round(float(np.exp(found.values[0] - found.values[1])), 6)  # it won three times as often
    3.0
    """
    met = (wins + wins.T > 0).astype(float)
    if len(wins) < 2 or not _hang_together(met):
        raise DataError("these have not all met, not even by way of others, so they cannot be compared; judge more")
    counted = wins + prior / 2 * met
    games, won = counted + counted.T, counted.sum(axis=1)
    values = np.zeros(len(wins))
    centre = np.full_like(games, 1 / len(wins))  # fixes the mean, which the games leave open
    for _ in range(_ROUNDS):
        chances = 1 / (1 + np.exp(values[None] - values[:, None]))  # row wins against column
        slope = won - (games * chances).sum(axis=1)
        curved = games * chances * (1 - chances)
        curvature = np.diag(curved.sum(axis=1)) - curved
        step = np.linalg.solve(curvature + centre, slope)
        values = values + np.clip(step, -1, 1)
        if np.abs(step).max() < _CLOSE:
            break
    spread = np.linalg.inv(curvature + centre) - centre  # around the mean, which is certain
    return Strengths(values - values.mean(), spread)


def _hang_together(met: Numbers) -> bool:
    reached = np.linalg.matrix_power(met + np.eye(len(met)), len(met))
    return bool((reached > 0).all())
