"""Agreement between judges: how often two say the same of one thing, and how much more often than by chance.

Krippendorff's alpha for names (https://en.wikipedia.org/wiki/Krippendorff's_alpha): 1 for judges who always agree, 0
for those who agree no more than by chance. Any number of judges will do, and not each must have seen everything; what
only one has judged says nothing of agreement.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Agreement:
    """How far judges agree on what more than one of them has judged."""

    things: int  # judged by two or more
    share: float | None  # of pairs of judgements on one thing that are the same
    alpha: float | None  # Krippendorff's; None where there is nothing to compare, or only one answer ever


def agreement(judged: Iterable[Sequence[str]]) -> Agreement:
    """From what was said of each thing, by whoever judged it.

    >>> found = agreement([["left", "left"], ["right", "right"], ["left", "right"]])
    >>> found.things, round(found.share or 0, 3), round(found.alpha or 0, 3)
    (3, 0.667, 0.444)
    """
    shared = [Counter(said) for said in judged if len(said) > 1]
    total = sum(each.total() for each in shared)
    if not total:
        return Agreement(0, None, None)
    # Each thing counts as many times as it was judged, however many pairs that makes.
    same = sum(n * (n - 1) / (each.total() - 1) for each in shared for n in each.values()) / total
    answers = sum(shared, Counter[str]())
    by_chance = sum(n * (n - 1) for n in answers.values()) / (total * (total - 1))
    return Agreement(len(shared), same, None if by_chance == 1 else 1 - (1 - same) / (1 - by_chance))
