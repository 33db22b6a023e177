"""Is an answer right? As right as it was given, and given exactly enough.

A number is right if the true one rounds to it. One digit is too coarse, unless it is the number itself. Whoever
carries rounded numbers along (the workshop's 1.414 for √2, scores with three decimals) ends a little beside the truth:
a question says how much of that it allows. Counts that a student can know exactly must be exact.
"""

import math
from dataclasses import dataclass
from enum import StrEnum

from kotha.inside.exercises.typed import Typed, readings

FEWEST_DIGITS = 2
# A size is often cut where it should be rounded, 232 MB for 232.6; with so many digits that is no mistake.
_DIGITS_CUT = 3
# The workshop lets -999 stand for minus infinity.
_AS_GOOD_AS_MINUS_INFINITY = -99.0
_EXACT = 1e-9


class Verdict(StrEnum):
    """What became of an answer."""

    RIGHT = "right"
    WRONG = "wrong"
    COARSE = "too coarse"
    UNREADABLE = "unreadable"
    SKIPPED = "skipped"
    OPEN = "open"


_BEST_FIRST = (Verdict.RIGHT, Verdict.COARSE, Verdict.WRONG)


@dataclass(frozen=True)
class Expected:
    """The numbers that are right, row by row."""

    values: tuple[float, ...]
    columns: int = 1
    """How many of them make a row."""
    exact: bool = False
    """Whether only the very number counts."""
    slack: float = 0.0
    """How far off a number may be that was computed from rounded ones."""
    others: tuple[tuple[float, ...], ...] = ()
    """Other answers that are right too, such as a count that leaves biases out."""
    bytes: float | None = None
    """What the answer is in bytes, where it may be given with a unit of them."""

    @property
    def rows(self) -> int:
        """How many rows."""
        return len(self.values) // self.columns


def shape(*sizes: int) -> Expected:
    """The sizes of a tensor, which can be known exactly."""
    return Expected(tuple(map(float, sizes)), columns=len(sizes), exact=True)


@dataclass(frozen=True)
class Grade:
    """A verdict, and the first number that is not right."""

    verdict: Verdict
    place: int | None = None
    found: int = 0
    """How many numbers were read."""


def grade(text: str, expected: Expected) -> Grade:
    """Grade what a student typed.

    >>> grade("0.37 0.57", Expected((0.37, 0.571))).verdict, grade("0.4 0.6", Expected((0.37, 0.571))).verdict
    (<Verdict.RIGHT: 'right'>, <Verdict.COARSE: 'too coarse'>)
    """
    ways = readings(text)
    fitting = [way for way in ways if len(way) == len(expected.values)]
    if not fitting:
        return Grade(Verdict.UNREADABLE, found=max(map(len, ways)))
    grades = [_grade(way, values, expected) for way in fitting for values in (expected.values, *expected.others)]
    return min(grades, key=lambda each: (_BEST_FIRST.index(each.verdict), -(each.place or 0)))


def _grade(numbers: list[Typed], values: tuple[float, ...], expected: Expected) -> Grade:
    wanted = [expected.bytes if number.in_bytes else value for number, value in zip(numbers, values, strict=True)]
    verdicts = [_compare(number, value, expected) for number, value in zip(numbers, wanted, strict=True)]
    for verdict in (Verdict.WRONG, Verdict.COARSE):
        if verdict in verdicts:
            return Grade(verdict, verdicts.index(verdict), len(numbers))
    return Grade(Verdict.RIGHT, None, len(numbers))


def _compare(number: Typed, value: float | None, expected: Expected) -> Verdict:
    if value is None:  # a unit of bytes for what is no size
        return Verdict.WRONG
    if value == -math.inf:
        return Verdict.RIGHT if number.value <= _AS_GOOD_AS_MINUS_INFINITY else Verdict.WRONG
    off = abs(number.value - value)
    if off <= _EXACT * max(1e-3, abs(value)):
        return Verdict.RIGHT
    if expected.exact or not number.value:  # nothing but zero is near zero, however coarse
        return Verdict.WRONG
    if expected.bytes is not None and number.digits >= _DIGITS_CUT and 0 < value - number.value < number.step:
        return Verdict.RIGHT
    fits = [each for each in (number, number.rounded) if off <= max(each.step / 2 * (1 + _EXACT), expected.slack)]
    if any(each.digits >= FEWEST_DIGITS for each in fits):
        return Verdict.RIGHT
    return Verdict.COARSE if fits else Verdict.WRONG
