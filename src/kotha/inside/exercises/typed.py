"""Numbers as a student types them: Bangla digits, powers of ten, fractions, percents, words for millions, bytes.

What counts is not the number alone but how exactly it was given: 0.51 stands for anything that rounds to it. A comma
may group digits (8,192 and the South Asian 5,81,39,648) or part two numbers (0.37,0.57); both readings are offered, and
the question decides by how many numbers it expects.
"""

import math
import re
from dataclasses import dataclass, replace

from kotha.wording import ascii_digits

_MINUS = str.maketrans("−–", "--")
_RAISED = str.maketrans("⁻⁺⁰¹²³⁴⁵⁶⁷⁸⁹", "-+0123456789")
_POWER = re.compile(r"\s*[×x*·]\s*10\s*(?:(?:\^|\*\*)\s*\(?\s*([-+]?\d+)\s*\)?|([⁻⁺]?[⁰¹²³⁴⁵⁶⁷⁸⁹]+))", re.IGNORECASE)
_RAISED_TO = re.compile(r"(?<![\d.])(\d{1,4})\s*(?:\^|\*\*)\s*(\d{1,2})(?![\d.])")
_GROUPED = re.compile(r"(?<![\d.,])\d{1,3}(?:,\d{2,3})*,\d{3}(?![\d,])")
_COUNTS = {
    **dict.fromkeys(("k", "thousand", "হাজার"), 1e3),
    **dict.fromkeys(("lakh", "লাখ", "লক্ষ"), 1e5),
    **dict.fromkeys(("m", "million", "মিলিয়ন", "মিলিয়ন", "নিযুত"), 1e6),
    **dict.fromkeys(("crore", "কোটি"), 1e7),
    **dict.fromkeys(("bn", "billion", "বিলিয়ন", "বিলিয়ন"), 1e9),
}
_BYTES = {
    **dict.fromkeys(("b", "byte", "bytes", "বাইট"), 1.0),
    **dict.fromkeys(("kb", "kilobyte", "kilobytes", "কেবি", "কিলোবাইট"), 1e3),
    **dict.fromkeys(("mb", "megabyte", "megabytes", "এমবি", "মেগাবাইট"), 1e6),
    **dict.fromkeys(("gb", "gigabyte", "gigabytes", "জিবি", "গিগাবাইট"), 1e9),
    **{"kib": 2.0**10, "mib": 2.0**20, "gib": 2.0**30},
}
_UNIT = "|".join(sorted(map(re.escape, (*_COUNTS, *_BYTES)), key=len, reverse=True))
_PLAIN = r"(?:\d+\.?\d*|\.\d+)(?:e[-+]?\d{1,3}(?!\d))?"
_NUMBER = re.compile(
    rf"(?<![a-z_\d.])(?P<sign>[-+]?)\s?(?:(?P<endless>∞|inf(?:inity)?\b)|(?P<top>{_PLAIN})(?:\s*/\s*(?P<bottom>{_PLAIN}))?"
    rf"\s*(?P<percent>%)?\s*(?P<unit>(?:{_UNIT})(?![a-z\u0980-\u09ff]))?)",
    re.IGNORECASE,
)
# Beyond this a power of ten is no float.
_MOST_POWER = 290


@dataclass(frozen=True)
class Typed:
    """One number, and how exactly it was given."""

    value: float
    step: float
    """What one more in the last digit would add; 0 for a fraction, which is exact."""
    digits: int
    """Significant ones; for a fraction, as many as one could wish."""
    in_bytes: bool = False
    """Whether it came with a unit of bytes, and was turned into bytes by it."""

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
        return Typed(sign * math.inf, 0.0, 15)
    unit = (found["unit"] or "").lower()
    scale = _COUNTS.get(unit, _BYTES.get(unit, 1.0)) * (0.01 if found["percent"] else 1.0)
    top = float(found["top"])
    if found["bottom"]:
        bottom = float(found["bottom"])
        return Typed(sign * scale * top / bottom if bottom else math.nan, 0.0, 15, unit in _BYTES)
    mantissa, _, power = found["top"].lower().partition("e")
    decimals = len(mantissa.partition(".")[2])
    digits = len(mantissa.replace(".", "").lstrip("0"))
    last = max(-_MOST_POWER, min(_MOST_POWER, int(power or 0) - decimals))
    return Typed(sign * scale * top, scale * 10.0**last, digits, unit in _BYTES)
