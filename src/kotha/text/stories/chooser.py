"""The one source of randomness, which keeps the probability of everything it decides.

A document is made by asking a `Chooser` a series of questions. Each answer adds the logarithm of its probability,
so that at the end ``log_probability`` is that of the whole document. For the sum to be right nothing may be drawn
and thrown away: "another name than the first" is a choice among the names that are left, never a second try.
"""

import math
import random
from collections.abc import Sequence


class Chooser:
    """Answers to random questions, and how probable they were.

    >>> chooser = Chooser("7:0")
    >>> chooser.below(4) in range(4), round(chooser.log_probability, 4)
    (True, -1.3863)
    """

    __slots__ = ("draw", "log_probability")

    def __init__(self, seed: str) -> None:
        # A string seed goes through SHA-512, so that it means the same on every platform and under every hash seed.
        self.draw = random.Random(seed).random
        self.log_probability = 0.0

    def below(self, n: int) -> int:
        """Choose one of 0 … n-1, all equally probable."""
        self.log_probability -= math.log(n)
        return int(self.draw() * n)

    def weighted(self, weights: Sequence[float]) -> int:
        """Choose an index in proportion to its weight."""
        total = sum(weights)
        point = self.draw() * total
        chosen = 0
        for chosen, weight in enumerate(weights):  # noqa: B007 - the last one stands when rounding runs past the end
            point -= weight
            if point < 0:
                break
        self.log_probability += math.log(weights[chosen] / total)
        return chosen

    def several(self, k: int, n: int) -> list[int]:
        """Choose k different ones of 0 … n-1, in an order that is part of the choice."""
        left = list(range(n))
        return [left.pop(self.below(len(left))) for _ in range(k)]
