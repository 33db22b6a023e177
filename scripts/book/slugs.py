"""Anchors of headings as a code host makes them, so that a link to one works there and on the site."""

import re
import unicodedata
from collections.abc import Callable


def slugs() -> Callable[[str, str], str]:
    """What the site's builder asks for: a function from a heading to its anchor."""
    return slug


def slug(heading: str, separator: str) -> str:
    """The anchor of a heading: letters with their signs, digits and dashes.

    >>> slug("১. লেখা, অক্ষর ও টোকেন", "-")
    '১-লেখা-অক্ষর-ও-টোকেন'
    """
    signs = heading.strip().lower()
    kept = "".join(sign for sign in signs if sign in " -_" or unicodedata.category(sign)[0] in "LMN")
    return re.sub(r"\s", separator, kept)
