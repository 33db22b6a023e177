"""Compare a typed number with the right one, and check that it is precise enough.

Students may type Bangla digits, powers of ten, fractions, percentages, words such as million, and units such as MB. The
precision of an answer counts as well: 0.51 stands for any number that rounds to it. A comma can group digits (8,192 and
the South Asian 5,81,39,648) or separate two numbers (0.37,0.57). Both readings are returned; the one with as many
values as the question expects is used. If a single number is expected, an expression is accepted too: ``1.0×0.2 +
0.5×0.1``, ``0.37/1.414``, ``e^0.5 / (e^0.5 + 1)``. The page follows the same rules (``web/src/math/sums.ts``), and both
are tested with the same list of cases.

A number is right if the true value rounds to it. A number with one digit is not enough, unless the answer is exact.
Rounding intermediate results (the workshop's 1.414 for √2, scores with three decimals) leads to small errors, and each
question defines how large an error is allowed. Counts that can be computed exactly must be exact.
"""

import math
import re
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path

from kotha.course.data import calculate, data_file
from kotha.i18n.message import Bilingual
from kotha.i18n.numbers import ascii_digits

FILE = Path(__file__).with_name("questions.json")
_COUNTS, _BYTES = data_file(FILE)["units"]["counts"], data_file(FILE)["units"]["bytes"]
_MINUS = str.maketrans("−–", "--")
_RAISED = str.maketrans("⁻⁺⁰¹²³⁴⁵⁶⁷⁸⁹", "-+0123456789")
_POWER = re.compile(r"\s*[×x*·]\s*10\s*(?:(?:\^|\*\*)\s*\(?\s*([-+]?\d+)\s*\)?|([⁻⁺]?[⁰¹²³⁴⁵⁶⁷⁸⁹]+))", re.IGNORECASE)
_RAISED_TO = re.compile(r"(?<![\d.])(\d{1,4})\s*(?:\^|\*\*)\s*(\d{1,2})(?![\d.])")
_GROUPED = re.compile(r"(?<![\d.,])\d{1,3}(?:,\d{2,3})*,\d{3}(?![\d,])")
_UNIT = "|".join(sorted(map(re.escape, (*_COUNTS, *_BYTES)), key=len, reverse=True))
_DIGITS = r"(?:\d+\.?\d*|\.\d+)"
_PLAIN = rf"{_DIGITS}(?:e[-+]?\d{{1,3}}(?!\d))?"
_NUMBER = re.compile(
    rf"(?<![a-z_\d.])(?P<sign>[-+]?)\s?(?:(?P<endless>∞|inf(?:inity)?\b)|(?P<top>{_PLAIN})(?:\s*/\s*(?P<bottom>{_PLAIN}))?"
    rf"\s*(?P<percent>%)?\s*(?P<unit>(?:{_UNIT})(?![a-z\u0980-\u09ff]))?)",
    re.IGNORECASE,
)
# Larger powers of ten do not fit in a float.
_MOST_POWER = 290
FEWEST_DIGITS = 2
# Sizes are often truncated instead of rounded (232 MB for 232.6); with this many digits, truncation is accepted.
_DIGITS_CUT = 3
# The workshop accepts -999 for minus infinity.
_AS_GOOD_AS_MINUS_INFINITY = -99.0
_EXACT = 1e-9
# The number of significant digits for an exact value, as many as a float has.
_ENOUGH = 15
# Expressions: their tokens, and alternative spellings.
_PIECE = re.compile(rf"\s*({_DIGITS}|[-+*/^()√e])")
_SPELLED = ((re.compile(r"\bexp\s*(?=\()"), "e^"), (re.compile(r"\bsqrt\b"), "√"), (re.compile(r"\*\*"), "^"))
_SIGNS = str.maketrans({"−": "-", "–": "-", "×": "*", "·": "*", "x": "*", "÷": "/", "[": "(", "]": ")"})
# A single number, optionally with a power of ten, is not read as an expression, because its digits define its
# precision.
_BARE = re.compile(rf"[-+]?\s*{_DIGITS}(?:\s*\*\s*10\s*\^\s*\(?[-+]?\d+\)?)?")
_ROOTS = re.compile(r"((?:√ )+)(e|[\d.e+-]+)")
_LONGEST, _TOO_DEEP = 400, re.compile(r"(?:[-+(√]\s*){41}")


@dataclass(frozen=True)
class Typed:
    """A typed number and its precision."""

    value: float
    step: float = 0.0  # the value of one unit in the last digit; 0 for a fraction, which is exact
    digits: int = _ENOUGH  # significant digits
    in_bytes: bool = False  # whether it had a unit of bytes, and was converted to bytes

    @property
    def rounded(self) -> "Typed":
        """The same number with trailing zeros as rounding: 16,000,000 is any number that rounds to 16 million."""
        if self.step != 1 or not self.value or not math.isfinite(self.value):
            return self
        text = f"{abs(self.value):.0f}"
        zeros = len(text) - len(text.rstrip("0"))
        return replace(self, step=10.0**zeros, digits=len(text) - zeros)


def readings(text: str) -> list[list[Typed]]:
    """Return the numbers in an answer, for each way to read its commas; only the part after the last = is used.

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
    return [[_typed(found) for found in _NUMBER.finditer(way.replace(",", " "))] for way in ways]


def _typed(found: re.Match[str]) -> Typed:
    sign = -1.0 if found["sign"] == "-" else 1.0
    if found["endless"]:
        return Typed(sign * math.inf)
    unit = (found["unit"] or "").lower()
    scale = sign * _COUNTS.get(unit, _BYTES.get(unit, 1.0)) * (0.01 if found["percent"] else 1.0)
    top = float(found["top"])
    if found["bottom"]:
        bottom = float(found["bottom"])
        return Typed(scale * top / bottom if bottom else math.nan, in_bytes=unit in _BYTES)
    mantissa, _, power = found["top"].lower().partition("e")
    digits = len(mantissa.replace(".", "").lstrip("0"))
    last = max(-_MOST_POWER, min(_MOST_POWER, int(power or 0) - len(mantissa.partition(".")[2])))
    return Typed(scale * top, abs(scale) * 10.0**last, digits, unit in _BYTES)


def worked_sum(text: str) -> float | None:
    """Evaluate a typed expression; return None for a single number or for anything that is not a complete expression.

    >>> worked_sum("১.০×০.২ + ০.৫×০.১"), worked_sum("√2 + e^0"), worked_sum("0.25"), worked_sum("2 +")
    (0.25, 2.414213562373095, None, None)
    """
    plain = ascii_digits(text).lower().rpartition("=")[2]
    for spelled, sign in _SPELLED:
        plain = spelled.sub(sign, plain)
    plain = plain.translate(_SIGNS).strip()
    pieces = _PIECE.findall(plain)
    is_expression = pieces and not _BARE.fullmatch(plain) and not _PIECE.sub("", plain).strip()
    if not is_expression or len(plain) > _LONGEST or _TOO_DEEP.search(plain):
        return None
    # Spaces keep separate tokens apart, so that 2 e 5 does not become 2e5.
    spaced = " ".join(piece if len(piece) == 1 and not piece.isdigit() else repr(float(piece)) for piece in pieces)
    spaced = _ROOTS.sub(lambda found: f"{found[1].replace('√', 'sqrt(')}{found[2]}{')' * found[1].count('√')}", spaced)
    try:
        value = calculate(spaced.replace("√", "sqrt").replace("^", "**"), {})
        return float(value) if math.isfinite(value) else None
    except (ArithmeticError, LookupError, ValueError, TypeError, SyntaxError):  # TypeError: root of a negative number
        return None


class Verdict(StrEnum):
    """The result of grading an answer."""

    RIGHT = "right"
    PARTLY = "partly right"
    WRONG = "wrong"
    COARSE = "too coarse"
    UNREADABLE = "unreadable"
    SKIPPED = "skipped"


_BEST_FIRST = (Verdict.RIGHT, Verdict.COARSE, Verdict.WRONG)


@dataclass(frozen=True)
class Expected:
    """The correct numbers, row by row."""

    values: tuple[float, ...]
    columns: int = 1  # numbers per row
    exact: bool = False  # whether only the exact number is right
    slack: float = 0.0  # allowed error from intermediate rounding
    others: tuple[tuple[float, ...], ...] = ()
    """Other answers that are also right, such as a count without biases."""
    bytes: float | None = None  # the answer in bytes, if it can be given with a unit

    @property
    def rows(self) -> int:
        """Number of rows."""
        return len(self.values) // self.columns


@dataclass(frozen=True)
class Slip:
    """A common mistake, with the numbers that it leads to and an explanation."""

    name: str
    words: Bilingual
    values: tuple[float, ...]

    def led_to(self, numbers: list[Typed] | tuple[Typed, ...], expected: Expected) -> bool:
        """Return whether the mistake leads to exactly these numbers; sizes in bytes are compared in bytes."""
        scale = 1e9 if expected.bytes is not None and numbers[0].in_bytes else 1.0
        plain = replace(expected, bytes=None)
        pairs = zip(numbers, self.values, strict=True)
        return all(compare(number, value * scale, plain) is Verdict.RIGHT for number, value in pairs)


@dataclass(frozen=True)
class Grade:
    """A verdict, and the indices of the wrong numbers."""

    verdict: Verdict
    wrong: tuple[int, ...] = ()
    numbers: tuple[Typed, ...] = ()  # as parsed

    @property
    def place(self) -> int | None:
        """Index of the first wrong number."""
        return self.wrong[0] if self.wrong else None


def grade(text: str, expected: Expected) -> Grade:
    """Grade what a student typed.

    >>> grade("0.37 0.57", Expected((0.37, 0.571))).verdict, grade("0.4 0.6", Expected((0.37, 0.571))).verdict
    (<Verdict.RIGHT: 'right'>, <Verdict.COARSE: 'too coarse'>)
    """
    worked = worked_sum(text) if len(expected.values) == 1 else None
    ways = readings(text) if worked is None else [[Typed(worked)]]
    fitting = [way for way in ways if len(way) == len(expected.values)]
    if not fitting:
        return Grade(Verdict.UNREADABLE, numbers=max(map(tuple, ways), key=len))
    grades = [_grade(way, values, expected) for way in fitting for values in (expected.values, *expected.others)]
    return min(grades, key=lambda each: (_BEST_FIRST.index(each.verdict), -(each.place or 0)))


def _grade(numbers: list[Typed], values: tuple[float, ...], expected: Expected) -> Grade:
    wanted = [expected.bytes if number.in_bytes else value for number, value in zip(numbers, values, strict=True)]
    verdicts = [compare(number, value, expected) for number, value in zip(numbers, wanted, strict=True)]
    # A wrong number outweighs an imprecise one, and is shown first.
    worst = max(verdicts, key=_BEST_FIRST.index)
    first = verdicts.index(worst)
    wrong = [place for place, verdict in enumerate(verdicts) if verdict is not Verdict.RIGHT]
    return Grade(worst, tuple(sorted(wrong, key=lambda place: place != first)), tuple(numbers))


def compare(number: Typed, value: float | None, expected: Expected) -> Verdict:
    """Compare a number with the right one, to the precision that ``expected`` requires."""
    if value is None:  # a unit of bytes, but the answer is not a size
        return Verdict.WRONG
    if value == -math.inf:
        return Verdict.RIGHT if number.value <= _AS_GOOD_AS_MINUS_INFINITY else Verdict.WRONG
    off = abs(number.value - value)
    if off <= _EXACT * max(1e-3, abs(value)):
        return Verdict.RIGHT
    if expected.exact or not number.value:  # a typed zero is never close enough
        return Verdict.WRONG
    if expected.bytes is not None and number.digits >= _DIGITS_CUT and 0 < value - number.value < number.step:
        return Verdict.RIGHT
    fits = [each for each in (number, number.rounded) if off <= max(each.step / 2 * (1 + _EXACT), expected.slack)]
    if any(each.digits >= FEWEST_DIGITS for each in fits):
        return Verdict.RIGHT
    return Verdict.COARSE if fits else Verdict.WRONG
