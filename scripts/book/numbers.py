"""Find numbers in text, in Latin or Bangla digits, and compare them as printed."""

import re
from collections.abc import Iterable

_TO_LATIN = str.maketrans("০১২৩৪৫৬৭৮৯−", "0123456789-")
# Not inside a name (uint16, GPT-2) or at the end of a version; a sign only if no character precedes it.
NUMBER = re.compile(r"(?<![\w.])(?<![A-Za-z]-)(?:(?<![\w)\]])-)?\d[\d,]*+(?:\.\d++)?+(?:e-?\d++)?+(?![A-Za-z_])")
_SKIPPED = re.compile(
    r"!?\]\([^)]*\)"  # targets of links and pictures
    r"|^\s*\d+\.\s|^#+ .*$"  # list numbers, headings
    r"|<[^>]+>|https?://\S+",
    re.MULTILINE,
)


def latin(text: str) -> str:
    """Return the text with Latin digits."""
    return text.translate(_TO_LATIN)


def numbers_of(text: str) -> list[str]:
    """Return the numbers in a text, without digit grouping.

    >>> numbers_of("১৯৬টি টুকরা, −1.50 and 58,139,648; uint16, GPT-2")
    ['196', '-1.50', '58139648']
    """
    plain = re.sub(r"(?<=\d)_(?=\d)", "", latin(text))  # grouped as in Python
    return [found.rstrip(",").replace(",", "") for found in NUMBER.findall(plain)]


def prose_numbers(text: str) -> list[str]:
    """Return the numbers in prose that must be checked: all but single digits and list numbers."""
    return [number for number in numbers_of(_SKIPPED.sub(" ", latin(text))) if not re.fullmatch(r"-?\d", number)]


def decimals(shown: str) -> int:
    """Return the number of digits after the decimal point."""
    return len(shown.partition("e")[0].partition(".")[2])


def reads_as(value: float, shown: str) -> bool:
    """Return whether a value, rounded to the digits shown, gives this number."""
    plain = latin(shown).replace(",", "")
    return abs(value - float(plain)) <= 0.5 * 10.0 ** -decimals(plain) * (1 + 1e-9)


def answered(shown: str, printed: Iterable[str]) -> bool:
    """Return whether a number in the prose is among those printed, with at least as many digits."""
    return any(
        decimals(other) >= decimals(shown)
        and (reads_as(float(other), shown) or reads_as(abs(float(other)), shown.lstrip("-")))
        for other in printed
    )


def differences(expected: str, found: str, about: float = 0.0) -> str | None:
    """Return the difference between two texts, or None if their words and numbers match.

    Integers must match exactly. In other numbers the last digit may differ by one, because machines round differently.
    ``about`` is a relative tolerance for all numbers.

    >>> differences("loss 4.08", "loss 4.09"), differences("loss 4.08", "loss 4.10")
    (None, 'expected 4.08, found 4.10')
    """
    wanted, got = latin(expected), latin(found)
    if NUMBER.sub("#", wanted) != NUMBER.sub("#", got):
        return f"expected:\n{expected}\nfound:\n{found}"
    for one, other in zip(NUMBER.findall(wanted), NUMBER.findall(got), strict=True):
        left, right = one.replace(",", ""), other.replace(",", "")
        digits = max(decimals(left), decimals(right))
        allowed = (1.01 * 10.0**-digits if digits or "e" in left else 0.0) + about * abs(float(left))
        if abs(float(left) - float(right)) > allowed:
            return f"expected {one}, found {other}"
    return None
