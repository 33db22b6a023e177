"""Words and stems for search: normalization, and light stemming of the most common Bangla endings.

A word is a run of letters, marks and digits. Marks must be included: SQLite's own tokenizer treats vowel signs as
separators, so that কৃষি becomes ক, ষ and matches every other word with these consonants. Text is normalized
(``text/normalize.py``), joiners are removed, digits become Bangla digits, and case is folded.

Verb forms, compounds and synonyms are not handled. An ending is removed only if enough of the word remains, so short
words are unchanged. Stems are for search, not for display.
"""

from functools import lru_cache
from typing import NamedTuple

import regex

from kotha.i18n.numbers import DIGITS
from kotha.text.normalize import normalize

_WORD = regex.compile(r"[\p{L}\p{M}\p{N}\u200c\u200d]+")
_BANGLA_DIGITS = str.maketrans(dict(DIGITS))
# Suffixes for plural, article, case and emphasis, and their combinations.
_ENDINGS = """
    গুলোতে গুলোকে গুলোর গুলিতে গুলিকে গুলির গুলো গুলি দেরকে েদের দের েরা রা
    টিতে টিকে টির টি টায় টাকে টার টা য়ের য়ে ের েতে কে তে র ে য় ও ই
"""
_LONGEST_FIRST = sorted(normalize(_ENDINGS).split(), key=len, reverse=True)
_FEWEST_CHARACTERS = 3  # code points of a stem
_CACHED_WORDS = 1 << 18


class FoldedWord(NamedTuple):
    """A normalized word and its stem."""

    form: str
    stem: str


def fold(text: str) -> list[FoldedWord]:
    """Return the words in a text, in order.

    >>> [word.stem for word in fold("নদীগুলোর ধারে, কৃষির কথা!")]
    ['নদী', 'ধার', 'কৃষি', 'কথা']
    >>> fold("12 ROOMS") == fold("১২ rooms")
    True
    """
    return [_folded(found) for found in _WORD.findall(normalize(text))]


@lru_cache(_CACHED_WORDS)
def _folded(found: str) -> FoldedWord:
    form = found.casefold().translate(_BANGLA_DIGITS).replace("\u200c", "").replace("\u200d", "")
    return FoldedWord(form, _stem(form))


def _stem(form: str) -> str:
    for ending in _LONGEST_FIRST:
        if form.endswith(ending) and len(form) - len(ending) >= _FEWEST_CHARACTERS:
            return form[: -len(ending)]
    return form
