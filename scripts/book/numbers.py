"""Numbers in texts: found, compared as they are shown, in Latin or Bangla digits."""

import re
from collections.abc import Iterable

_TO_LATIN = str.maketrans("০১২৩৪৫৬৭৮৯−", "0123456789-")
# Not inside a name (uint16, GPT-2), nor a version's tail; a sign only where nothing stands before it.
NUMBER = re.compile(r"(?<![\w.])(?<![A-Za-z]-)(?:(?<![\w)\]])-)?\d[\d,]*+(?:\.\d++)?+(?:e-?\d++)?+(?![A-Za-z_])")
_SKIPPED = re.compile(
    r"!?\]\([^)]*\)"  # where a link or a picture leads to
    r"|^\s*\d+\.\s|^#+ .*$"  # numbers of a list, headings
    r"|<[^>]+>|https?://\S+",
    re.MULTILINE,
)


def latin(text: str) -> str:
    """The text with Latin digits."""
    return text.translate(_TO_LATIN)


def numbers_of(text: str) -> list[str]:
    """The numbers that a text shows, grouping taken out.

    >>> numbers_of("১৯৬টি টুকরা, −1.50 and 58,139,648; uint16, GPT-2")
    ['196', '-1.50', '58139648']
    """
    plain = re.sub(r"(?<=\d)_(?=\d)", "", latin(text))  # as Python groups them
    return [found.rstrip(",").replace(",", "") for found in NUMBER.findall(plain)]


def prose_numbers(text: str) -> list[str]:
    """The numbers of prose that somebody must answer for: all but single digits and the numbers of lists."""
    return [number for number in numbers_of(_SKIPPED.sub(" ", latin(text))) if not re.fullmatch(r"-?\d", number)]


def decimals(shown: str) -> int:
    """How many digits stand behind the point."""
    return len(shown.partition("e")[0].partition(".")[2])


def reads_as(value: float, shown: str) -> bool:
    """Whether a value is shown so, rounded to the digits that are there."""
    plain = latin(shown).replace(",", "")
    return abs(value - float(plain)) <= 0.5 * 10.0 ** -decimals(plain) * (1 + 1e-9)


def answered(shown: str, printed: Iterable[str]) -> bool:
    """Whether a number of the prose is among those that were printed, with as many digits or more."""
    return any(
        decimals(other) >= decimals(shown)
        and (reads_as(float(other), shown) or reads_as(abs(float(other)), shown.lstrip("-")))
        for other in printed
    )


def differences(expected: str, found: str, about: float = 0.0) -> str | None:
    """How two texts differ, or None: words must agree, and numbers.

    Whole numbers agree exactly. Of others the last digit may be off by one: machines round differently. ``about`` lets
    all of them differ by a share.

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
