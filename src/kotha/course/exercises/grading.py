"""Is an answer right? As right as it was given, and given exactly enough.

Numbers come as a student types them: Bangla digits, powers of ten, fractions, percents, words for millions, bytes. What
counts is not the number alone but how exactly it was given: 0.51 stands for anything that rounds to it. A comma may
group digits (8,192 and the South Asian 5,81,39,648) or part two numbers (0.37,0.57); both readings are offered, and the
question decides by how many numbers it expects. Where one number is asked for, the sum that it comes of will do
(``formula.py``).

A number is right if the true one rounds to it. One digit is too coarse, unless it is the number itself. Whoever
carries rounded numbers along (the workshop's 1.414 for √2, scores with three decimals) ends a little beside the truth:
a question says how much of that it allows. Counts that a student can know exactly must be exact.
"""

import math
import re
from dataclasses import dataclass, replace
from enum import StrEnum

from kotha.course.exercises.formula import question_file, worked_sum
from kotha.i18n.numbers import ascii_digits

_MINUS = str.maketrans("−–", "--")
_RAISED = str.maketrans("⁻⁺⁰¹²³⁴⁵⁶⁷⁸⁹", "-+0123456789")
_POWER = re.compile(r"\s*[×x*·]\s*10\s*(?:(?:\^|\*\*)\s*\(?\s*([-+]?\d+)\s*\)?|([⁻⁺]?[⁰¹²³⁴⁵⁶⁷⁸⁹]+))", re.IGNORECASE)
_RAISED_TO = re.compile(r"(?<![\d.])(\d{1,4})\s*(?:\^|\*\*)\s*(\d{1,2})(?![\d.])")
_GROUPED = re.compile(r"(?<![\d.,])\d{1,3}(?:,\d{2,3})*,\d{3}(?![\d,])")
_COUNTS, _BYTES = question_file()["units"]["counts"], question_file()["units"]["bytes"]
_UNIT = "|".join(sorted(map(re.escape, (*_COUNTS, *_BYTES)), key=len, reverse=True))
_PLAIN = r"(?:\d+\.?\d*|\.\d+)(?:e[-+]?\d{1,3}(?!\d))?"
_NUMBER = re.compile(
    rf"(?<![a-z_\d.])(?P<sign>[-+]?)\s?(?:(?P<endless>∞|inf(?:inity)?\b)|(?P<top>{_PLAIN})(?:\s*/\s*(?P<bottom>{_PLAIN}))?"
    rf"\s*(?P<percent>%)?\s*(?P<unit>(?:{_UNIT})(?![a-z\u0980-\u09ff]))?)",
    re.IGNORECASE,
)
# Beyond this a power of ten is no float.
_MOST_POWER = 290
FEWEST_DIGITS = 2
# A size is often cut where it should be rounded, 232 MB for 232.6; with so many digits that is no mistake.
_DIGITS_CUT = 3
# The workshop lets -999 stand for minus infinity.
_AS_GOOD_AS_MINUS_INFINITY = -99.0
_EXACT = 1e-9
# Significant digits of what is known exactly: as many as a float has.
_ENOUGH = 15


@dataclass(frozen=True)
class Typed:
    """One number, and how exactly it was given."""

    value: float
    step: float  # what one more in the last digit would add; 0 for a fraction, which is exact
    digits: int  # significant ones; for a fraction, as many as one could wish
    in_bytes: bool = False  # whether it came with a unit of bytes, and was turned into bytes by it

    @property
    def rounded(self) -> "Typed":
        """The same number, its last zeros taken for rounding: 16,000,000 for anything near 16 million."""
        if self.step != 1 or not self.value or not math.isfinite(self.value):
            return self
        text = f"{abs(self.value):.0f}"
        zeros = len(text) - len(text.rstrip("0"))
        return replace(self, step=10.0**zeros, digits=len(text) - zeros)


def readings(text: str) -> list[list[Typed]]:
    """The numbers in an answer, by each way to take its commas; after an equals sign, only what follows the last.

    >>> [[each.value for each in found] for found in readings("৮,১৯২")]
    [[8192.0], [8.0, 192.0]]
    >>> [each.value for each in readings("1.5 × 10^-4")[0]]
    [0.00015]
    """
    plain = ascii_digits(text).translate(_MINUS).rpartition("=")[2]
    plain = _POWER.sub(lambda found: f"e{found[1] or found[2].translate(_RAISED)}", plain)
    plain = _RAISED_TO.sub(lambda found: str(int(found[1]) ** int(found[2])), plain)
    plain = re.sub(r"[()\[\]{}|;]|(?<=[\d\s])[×x*](?=[\d\s])", " ", plain, flags=re.IGNORECASE)
    ways = dict.fromkeys((_GROUPED.sub(lambda found: found[0].replace(",", ""), plain), plain))
    return [[_typed(found) for found in _NUMBER.finditer(re.sub(r",", " ", way))] for way in ways]


def _typed(found: re.Match[str]) -> Typed:
    sign = -1.0 if found["sign"] == "-" else 1.0
    if found["endless"]:
        return Typed(sign * math.inf, 0.0, _ENOUGH)
    unit = (found["unit"] or "").lower()
    scale = _COUNTS.get(unit, _BYTES.get(unit, 1.0)) * (0.01 if found["percent"] else 1.0)
    top = float(found["top"])
    if found["bottom"]:
        bottom = float(found["bottom"])
        return Typed(sign * scale * top / bottom if bottom else math.nan, 0.0, _ENOUGH, unit in _BYTES)
    mantissa, _, power = found["top"].lower().partition("e")
    decimals = len(mantissa.partition(".")[2])
    digits = len(mantissa.replace(".", "").lstrip("0"))
    last = max(-_MOST_POWER, min(_MOST_POWER, int(power or 0) - decimals))
    return Typed(sign * scale * top, scale * 10.0**last, digits, unit in _BYTES)


class Verdict(StrEnum):
    """What became of an answer."""

    RIGHT = "right"
    PARTLY = "partly right"
    WRONG = "wrong"
    COARSE = "too coarse"
    UNREADABLE = "unreadable"
    SKIPPED = "skipped"


_BEST_FIRST = (Verdict.RIGHT, Verdict.COARSE, Verdict.WRONG)


@dataclass(frozen=True)
class Expected:
    """The numbers that are right, row by row."""

    values: tuple[float, ...]
    columns: int = 1  # how many of them make a row
    exact: bool = False  # whether only the very number counts
    slack: float = 0.0  # how far off a number may be that was computed from rounded ones
    others: tuple[tuple[float, ...], ...] = ()
    """Other answers that are right too, such as a count that leaves biases out."""
    bytes: float | None = None  # what the answer is in bytes, where it may be given with a unit of them

    @property
    def rows(self) -> int:
        """How many rows."""
        return len(self.values) // self.columns


@dataclass(frozen=True)
class Grade:
    """A verdict, and which numbers are not right."""

    verdict: Verdict
    wrong: tuple[int, ...] = ()
    found: int = 0  # how many numbers were read
    numbers: tuple[Typed, ...] = ()  # as they were read

    @property
    def place(self) -> int | None:
        """The first that is not right."""
        return self.wrong[0] if self.wrong else None


def grade(text: str, expected: Expected) -> Grade:
    """Grade what a student typed.

    >>> grade("0.37 0.57", Expected((0.37, 0.571))).verdict, grade("0.4 0.6", Expected((0.37, 0.571))).verdict
    (<Verdict.RIGHT: 'right'>, <Verdict.COARSE: 'too coarse'>)
    """
    worked = worked_sum(text) if len(expected.values) == 1 else None
    ways = readings(text) if worked is None else [[Typed(worked, 0.0, _ENOUGH)]]
    fitting = [way for way in ways if len(way) == len(expected.values)]
    if not fitting:
        return Grade(Verdict.UNREADABLE, found=max(map(len, ways)))
    grades = [_grade(way, values, expected) for way in fitting for values in (expected.values, *expected.others)]
    return min(grades, key=lambda each: (_BEST_FIRST.index(each.verdict), -(each.place or 0)))


def _grade(numbers: list[Typed], values: tuple[float, ...], expected: Expected) -> Grade:
    wanted = [expected.bytes if number.in_bytes else value for number, value in zip(numbers, values, strict=True)]
    verdicts = [compare(number, value, expected) for number, value in zip(numbers, wanted, strict=True)]
    wrong = tuple(place for place, verdict in enumerate(verdicts) if verdict is not Verdict.RIGHT)
    # One that is wrong weighs more than one that is coarse, and is shown first.
    for verdict in (Verdict.WRONG, Verdict.COARSE):
        if verdict in verdicts:
            first = verdicts.index(verdict)
            return Grade(verdict, (first, *(each for each in wrong if each != first)), len(numbers), tuple(numbers))
    return Grade(Verdict.RIGHT, (), len(numbers), tuple(numbers))


def compare(number: Typed, value: float | None, expected: Expected) -> Verdict:
    """One number against the one that is right, as exactly as ``expected`` asks for."""
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
