"""What a question is worth: the workshop's points, shared among its parts, and what tries and hints leave of them."""

import math
from collections.abc import Sequence

# As the workshop prints them beside its questions; those of the eleventh are a bonus.
WORKSHOP = {1: 20, 2: 25, 3: 15, 4: 20, 5: 15, 6: 25, 7: 30, 8: 25, 9: 25, 10: 30, 11: 20, 12: 30}
BONUS = (11,)
# What is mended at a second try counts so much, and each hint takes so much away.
SECOND_TRY = 0.5
HINT_COST = 0.1


def share_out(points: int, weights: Sequence[int]) -> list[int]:
    """Whole points by weight, none lost: what is left over goes to those who were cut most.

    >>> share_out(25, [1, 1, 3, 3])
    [3, 3, 10, 9]
    """
    exact = [points * weight / sum(weights) for weight in weights]
    whole = [math.floor(each) for each in exact]
    most_cut = sorted(range(len(exact)), key=lambda place: whole[place] - exact[place])
    for place in most_cut[: points - sum(whole)]:
        whole[place] += 1
    return whole


def earned(points: int, credits: Sequence[float], hints: int) -> float:
    """Points for the shares that each try had right, to the half point.

    >>> earned(10, [1.0], 0), earned(10, [0.0, 1.0], 0), earned(10, [0.8, 1.0], 0), earned(10, [1.0], 2)
    (10.0, 5.0, 9.0, 8.0)
    """
    if not credits:
        return 0.0
    mended = max(0.0, max(credits) - credits[0])
    share = (credits[0] + SECOND_TRY * mended) * max(0.0, 1 - HINT_COST * hints)
    return math.floor(2 * points * share + 0.5 + 1e-9) / 2
