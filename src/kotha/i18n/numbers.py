"""Format numbers and amounts in English and Bangla.

Bangla uses its own digits, groups them by lakh, and counts in crores. Babel, and Fluent, which uses Babel, always write
Latin digits, so this module formats Bangla numbers itself. Tests compare the results with ICU.
"""

import os
import re
from dataclasses import dataclass
from typing import Literal

Language = Literal["en", "bn"]
LANGUAGES: tuple[Language, ...] = ("en", "bn")

# The variable that sets the language, and those of the locale, in their order of precedence.
VARIABLE, _LOCALE = "KOTHA_LANGUAGE", ("LC_ALL", "LC_MESSAGES", "LANG")

_SIZES = ((1e12, "TB"), (1e9, "GB"), (1e6, "MB"), (1e3, "kB"))
# Unit of time, its length in seconds, and the duration below which it is used.
_TIMES = (("second", 1, 120), ("minute", 60, 7200), ("hour", 3600, 259_200), ("day", 86_400, float("inf")))
_IN_BANGLA = {"byte": "বাইট", "second": "সেকেন্ড", "minute": "মিনিট", "hour": "ঘণ্টা", "day": "দিন"}
_GROUPED = re.compile(r"\d{1,3}(?:,\d{3})+")


def environment_language() -> Language:
    """Return the language that ``KOTHA_LANGUAGE`` requests, otherwise that of the locale, otherwise English."""
    requested = os.environ.get(VARIABLE) or next(filter(None, map(os.environ.get, _LOCALE)), "")
    return "bn" if requested == "bn" or requested.startswith("bn_") else "en"


@dataclass(frozen=True)
class Amount:
    """A number with a unit, formatted for the user's language."""

    value: float

    def __str__(self) -> str:
        return in_words(self, "en")

    def __format__(self, spec: str) -> str:
        return format(str(self), spec)


class Size(Amount):
    """A size in bytes, with decimal units.

    >>> [str(Size(n)) for n in (512, 20_480, 231_900_000, 3_207_862_885)]
    ['512 bytes', '20.5 kB', '232 MB', '3.2 GB']
    """


class Duration(Amount):
    """A duration in seconds.

    >>> [str(Duration(seconds)) for seconds in (0.04, 1, 90, 2460, 11_520, 400_000)]
    ['0.04 seconds', '1 second', '90 seconds', '41 minutes', '3.2 hours', '4.6 days']
    """


class Count(Amount):
    """A large count.

    >>> [str(Count(value)) for value in (950, 24_576_000, 1.5e9)]
    ['950', '24.6 million', '1.5 billion']
    """


def number(value: float, spec: str, language: Language) -> str:
    """Format a number by a Python format specification.

    >>> number(2312741, ",", "bn"), number(0.5, ".1%", "bn"), number(3.14159, ".2f", "bn"), number(7, "", "en")
    ('২৩,১২,৭৪১', '৫০.০%', '৩.১৪', '7')
    """
    return number_text(format(value, spec), language)


def in_words(amount: Amount, language: Language) -> str:
    """Format an amount with its unit.

    >>> in_words(Duration(600), "bn"), in_words(Size(3.2e9), "bn"), in_words(Count(24_600_000), "bn")
    ('১০ মিনিট', '৩.২ GB', '২.৪৬ কোটি')
    """
    if isinstance(amount, Size):
        unit, name = next((each for each in _SIZES if abs(amount.value) >= 0.9995 * each[0]), (1, "byte"))
        short = f"{amount.value:.0f}" if name == "byte" else _short(amount.value / unit, 100)
        return _with_unit(short, name, language) if name == "byte" else f"{number_text(short, language)} {name}"
    if isinstance(amount, Duration):
        name, seconds, _ = next(each for each in _TIMES if amount.value < each[2])
        tiny = 0 < amount.value < 0.1
        return _with_unit(f"{amount.value:.1g}" if tiny else _short(amount.value / seconds, 10), name, language)
    return _count(amount.value, language)


def number_text(text: str, language: Language) -> str:
    """Convert a formatted number to the digits and the digit grouping of a language.

    >>> number_text("58,139,648", "bn")
    '৫,৮১,৩৯,৬৪৮'
    """
    return text if language == "en" else bangla_digits(_GROUPED.sub(lambda found: by_lakh(found[0]), text))


def by_lakh(grouped: str) -> str:
    """Group a whole number by thousand, lakh and crore.

    >>> by_lakh("58,139,648"), by_lakh("950")
    ('5,81,39,648', '950')
    """
    digits = grouped.replace(",", "")
    head = re.sub(r"\B(?=(?:\d{2})+$)", ",", digits[:-3])
    return f"{head},{digits[-3:]}" if head else digits


def _with_unit(text: str, unit: str, language: Language) -> str:
    if language == "en":
        return f"{text} {unit}{'' if text == '1' else 's'}"
    return f"{number_text(text, language)} {_IN_BANGLA[unit]}"


def _count(value: float, language: Language) -> str:
    large = ((1e9, "billion"), (1e6, "million")) if language == "en" else ((1e7, "কোটি"), (1e5, "লাখ"))
    for unit, name in large:
        if value >= unit:
            amount = f"{value / unit:.3g}" if value < 1000 * unit else f"{value / unit:,.0f}"
            return f"{number_text(amount, language)} {name}"
    return number(value, ",.0f", language)


def _short(value: float, whole_from: float) -> str:
    """Format a number, with one decimal place if it is below ``whole_from``."""
    return f"{value:,.0f}" if value >= whole_from else f"{value:.1f}".removesuffix(".0")


# Pairs of ASCII and Bangla digits.
DIGITS = tuple(zip("0123456789", "০১২৩৪৫৬৭৮৯", strict=True))
_TO_BANGLA = str.maketrans(dict(DIGITS))
_TO_ASCII = str.maketrans({bangla: ascii_ for ascii_, bangla in DIGITS})


def bangla_digits(text: str) -> str:
    """Replace ASCII digits with Bangla digits.

    >>> bangla_digits("8,192")
    '৮,১৯২'
    """
    return text.translate(_TO_BANGLA)


def ascii_digits(text: str) -> str:
    """Replace Bangla digits with ASCII digits.

    >>> ascii_digits("৮,১৯২")
    '8,192'
    """
    return text.translate(_TO_ASCII)
