"""Words in two languages, with numbers filled in: in Bangla with Bangla digits."""

from dataclasses import dataclass
from string import Formatter
from typing import Any, Literal

Language = Literal["en", "bn"]
_BANGLA_DIGITS = str.maketrans("0123456789", "০১২৩৪৫৬৭৮৯")


class _BanglaNumbers(Formatter):
    """Turns the digits of what is filled in, and of nothing else: names such as uint16 stay as they are typed."""

    def format_field(self, value: Any, format_spec: str) -> str:
        text: str = super().format_field(value, format_spec)
        return text.translate(_BANGLA_DIGITS)


@dataclass(frozen=True)
class Words:
    """The same said twice."""

    en: str
    bn: str

    def fill(self, **values: Any) -> "Words":
        """With the numbers put in.

        >>> Words("{n:,} tokens", "{n:,}টি টোকেন").fill(n=8192).bn
        '৮,১৯২টি টোকেন'
        """
        return Words(self.en.format(**values), _BanglaNumbers().format(self.bn, **values))

    def to(self, language: Language) -> str:
        """In one language."""
        return self.bn if language == "bn" else self.en


def same(text: str) -> Words:
    """What reads the same in both, such as a line of arithmetic."""
    return Words(text, text)
