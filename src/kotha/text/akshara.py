"""Aksharas: the grapheme clusters that readers of Bangla perceive as single letters.

ক্ষ is three code points and nine bytes, but one akshara. All code that splits text (tokens, streams, plots, pages)
splits it between aksharas. An akshara is an extended grapheme cluster of Unicode with the Indic conjunct rule GB9c, as
in ICU and the browser's ``Intl.Segmenter``; tests check that all three agree. The ``\\X`` of ``regex`` lacks this
rule and splits ক্ষ.

Syllables (a phonetic unit) and words are not handled here.

Unicode Standard Annex #29, https://www.unicode.org/reports/tr29/
"""

import regex

_JOINABLE = r"[\p{InCB=Extend}\p{InCB=Linker}]"

# A cluster, and further ones joined to it by a hasanta: consonant, signs that include a hasanta | consonant. Extend*
# does not match a hasanta, so a run of a thousand hasantas can match in only one way.
_AKSHARA = regex.compile(
    rf"\X(?:(?<=\p{{InCB=Consonant}}\p{{InCB=Extend}}*\p{{InCB=Linker}}{_JOINABLE}*)(?=\p{{InCB=Consonant}})\X)*"
)

# In Unicode a vowel cannot be the base of a conjunct, so অ্যা is split after its hasanta. Vocabulary pieces are built
# from these units instead, so that no piece ends in a dangling hasanta.
_UNIT = regex.compile(rf"{_AKSHARA.pattern}(?:(?<=[\u0985\u098F]\u09CD)(?=\u09AF){_AKSHARA.pattern})?")

# A code point that attaches to the preceding one: vowel signs, hasanta, nukta, chandrabindu, joiners, accents.
_DEPENDENT = regex.compile(r"[\p{M}\u200C\u200D]")
_DEPENDENT_ALONE = regex.compile(rf"{_DEPENDENT.pattern}+")

HASANTA = "\u09cd"


def aksharas(text: str) -> list[str]:
    """Split text into aksharas; their concatenation is the text.

    >>> aksharas("ক্ষমা স্ত্রী")
    ['ক্ষ', 'মা', ' ', 'স্ত্রী']
    """
    return _AKSHARA.findall(text)


def units(text: str) -> list[str]:
    """Split text into the units of vocabulary pieces: aksharas, without splitting অ্যা and এ্যা.

    >>> aksharas("অ্যাপ"), units("অ্যাপ")
    (['অ্', 'যা', 'প'], ['অ্যা', 'প'])
    """
    return _UNIT.findall(text)


def starts_dependent(piece: str) -> bool:
    """Return whether a piece starts with a sign that belongs to the preceding akshara.

    >>> starts_dependent("ার"), starts_dependent("আর")
    (True, False)
    """
    return _DEPENDENT.match(piece) is not None


def is_dependent(piece: str) -> bool:
    """Return whether a piece consists only of signs that belong to the preceding akshara.

    >>> is_dependent("\u09cd\u200d"), is_dependent("্য")
    (True, False)
    """
    return _DEPENDENT_ALONE.fullmatch(piece) is not None


def is_whole(piece: str) -> bool:
    """Return whether a piece can be placed between any two other pieces without splitting an akshara.

    >>> [is_whole(piece) for piece in ("মা", "া", "ক্")]
    [True, False, False]
    """
    # Hasanta + ZWNJ ends an akshara (উদ্‌যাপন); hasanta alone, or with ZWJ, joins the next consonant.
    return bool(piece) and not starts_dependent(piece) and not piece.endswith((HASANTA, HASANTA + "\u200d"))
