"""A flowchart put in order: how far the order that was given is the right one.

Every pair of pieces that stands in the right order counts for it, every pair that stands the other way round against
it (Kendall's tau), so that an order drawn blindly is worth nothing on average, and one swap of neighbours costs little.
A piece that was left out is in order with none.
"""

import random
from dataclasses import dataclass
from itertools import combinations, pairwise

from kotha.i18n.message import Bilingual


@dataclass(frozen=True)
class Flowchart:
    """Pieces in their right order, and the numbers under which they are shown."""

    pieces: tuple[Bilingual, ...]
    numbers: tuple[int, ...]  # of each piece, counted from 1

    @property
    def shown(self) -> list[Bilingual]:
        """The pieces by their numbers."""
        return [self.pieces[self.numbers.index(number)] for number in range(1, len(self.pieces) + 1)]


def shuffled(pieces: tuple[Bilingual, ...], seed: int) -> Flowchart:
    """Pieces under numbers that do not tell their order."""
    numbers = list(range(1, len(pieces) + 1))
    draw = random.Random(seed)
    while numbers == sorted(numbers):
        draw.shuffle(numbers)
    return Flowchart(pieces, tuple(numbers))


@dataclass(frozen=True)
class Ordered:
    """What an order is worth, and the first two pieces that stand the wrong way round."""

    credit: float
    swapped: tuple[int, int] | None = None  # by their numbers: the second belongs before the first
    missing: tuple[int, ...] = ()


def read_order(given: list[int], order: Flowchart) -> Ordered | None:
    """Grade an order of numbers; None where it holds what is no piece, or a piece twice.

    >>> chart = Flowchart(tuple(Bilingual(name, name) for name in "abc"), (1, 2, 3))
    >>> read_order([1, 2, 3], chart).credit, read_order([2, 1, 3], chart).swapped
    (1.0, (2, 1))
    """
    if not given or len(set(given)) != len(given) or not set(given) <= set(order.numbers):
        return None
    rank = {number: place for place, number in enumerate(order.numbers)}
    right = sum(rank[first] < rank[second] for first, second in combinations(given, 2))
    wrong = len(given) * (len(given) - 1) // 2 - right
    n_pairs = len(order.numbers) * (len(order.numbers) - 1) // 2
    swapped = next(((first, second) for first, second in pairwise(given) if rank[first] > rank[second]), None)
    missing = tuple(number for number in order.numbers if number not in given)
    return Ordered(max(0.0, (right - wrong) / n_pairs), swapped, missing)
