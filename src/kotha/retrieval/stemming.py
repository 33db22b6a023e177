"""Words as a search compares them, and their stems: light stemming for Bangla, by its commonest endings.

A word is a run of letters, marks and digits. The marks are the point: SQLite's own tokenizer takes vowel signs for
spaces, so that কৃষি falls into ক, ষ and matches every other word with these consonants. Both sides are normalized by the
house's rules first, joiners are dropped, digits are Bangla's, and letters that have a case lose it.

Not done here: verb forms, compounds, synonyms. An ending is taken off only where enough of the word is left, so that
short words stay as they are; a stem is for finding, never for showing.
"""

from functools import lru_cache
from typing import NamedTuple

import regex

from kotha.i18n.numbers import DIGITS
from kotha.text.normalize import normalize

_WORD = regex.compile(r"[\p{L}\p{M}\p{N}\u200c\u200d]+")
_BANGLA_DIGITS = str.maketrans(dict(DIGITS))
# Plural, article, case, emphasis, as they stand after each other at the end of a word.
_ENDINGS = """
    গুলোতে গুলোকে গুলোর গুলিতে গুলিকে গুলির গুলো গুলি দেরকে েদের দের েরা রা
    টিতে টিকে টির টি টায় টাকে টার টা য়ের য়ে ের েতে কে তে র ে য় ও ই
"""
_LONGEST_FIRST = sorted(normalize(_ENDINGS).split(), key=len, reverse=True)
_LEAST_LETTERS = 3  # code points that must be left of a word
_REMEMBERED_WORDS = 1 << 18


class FoldedWord(NamedTuple):
    """A word of a text as it is compared, and its stem."""

    form: str
    stem: str


def fold(text: str) -> list[FoldedWord]:
    """The words of a text, in their order.

    >>> [word.stem for word in fold("নদীগুলোর ধারে, কৃষির কথা!")]
    ['নদী', 'ধার', 'কৃষি', 'কথা']
    >>> fold("12 ROOMS") == fold("১২ rooms")
    True
    """
    return [_folded(found) for found in _WORD.findall(normalize(text))]


@lru_cache(_REMEMBERED_WORDS)
def _folded(found: str) -> FoldedWord:
    form = found.casefold().translate(_BANGLA_DIGITS).replace("\u200c", "").replace("\u200d", "")
    return FoldedWord(form, _stem(form))


def _stem(form: str) -> str:
    for ending in _LONGEST_FIRST:
        if form.endswith(ending) and len(form) - len(ending) >= _LEAST_LETTERS:
            return form[: -len(ending)]
    return form
