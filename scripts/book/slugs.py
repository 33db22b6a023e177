"""Heading anchors in the style of code hosting sites, so that links work both there and on the book's site."""

import re
import unicodedata
from collections.abc import Callable


def slugs() -> Callable[[str, str], str]:
    """Return the function that converts a heading to its anchor, as the site builder requires."""
    return slug


def slug(heading: str, separator: str) -> str:
    """Return the anchor of a heading: letters with combining marks, digits and dashes.

    >>> slug("১. লেখা, অক্ষর ও টোকেন", "-")
    '১-লেখা-অক্ষর-ও-টোকেন'
    """
    signs = heading.strip().lower()
    kept = "".join(sign for sign in signs if sign in " -_" or unicodedata.category(sign)[0] in "LMN")
    return re.sub(r"\s", separator, kept)
