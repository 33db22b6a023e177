"""Aksharas: the letters that a reader of Bangla sees.

ক্ষ is three code points and nine bytes, and one letter. Everything here that cuts text (tokens, streams, plots, pages)
cuts between aksharas. They are Unicode's extended grapheme clusters with the Indic conjunct rule GB9c, the same that
ICU and the browser's ``Intl.Segmenter`` use; the tests hold the three equal. ``regex``'s own ``\\X`` lacks that rule
and cuts ক্ষ in two.

Not done here: syllables (a spoken unit) and words.

Unicode Standard Annex #29, https://www.unicode.org/reports/tr29/
"""

import regex

_JOINABLE = r"[\p{InCB=Extend}\p{InCB=Linker}]"

# A cluster, then each next one that its hasanta ties to it: consonant, signs with a hasanta among them | consonant.
# Before the first hasanta stands none: a thousand of them are then looked at in one way, and not in a million.
_AKSHARA = regex.compile(
    rf"\X(?:(?<=\p{{InCB=Consonant}}\p{{InCB=Extend}}*\p{{InCB=Linker}}{_JOINABLE}*)(?=\p{{InCB=Consonant}})\X)*"
)

# Unicode counts a vowel as no base for a conjunct and cuts অ্যা after its hasanta, where no reader would. Vocabulary
# pieces are made of these units, so that none ends in a dangling hasanta.
_UNIT = regex.compile(rf"{_AKSHARA.pattern}(?:(?<=[\u0985\u098F]\u09CD)(?=\u09AF){_AKSHARA.pattern})?")

# A code point that can only lean on the one before it: vowel signs, hasanta, nukta, chandrabindu, joiners, accents.
_DEPENDENT = regex.compile(r"[\p{M}\u200C\u200D]")
_DEPENDENT_ALONE = regex.compile(rf"{_DEPENDENT.pattern}+")

HASANTA = "\u09cd"


def aksharas(text: str) -> list[str]:
    """Cut text into the letters that a reader sees; joined, they give the text back.

    >>> aksharas("ক্ষমা স্ত্রী")
    ['ক্ষ', 'মা', ' ', 'স্ত্রী']
    """
    return _AKSHARA.findall(text)


def units(text: str) -> list[str]:
    """Cut text into what vocabulary pieces are built from: aksharas, with অ্যা and এ্যা kept whole.

    >>> aksharas("অ্যাপ"), units("অ্যাপ")
    (['অ্', 'যা', 'প'], ['অ্যা', 'প'])
    """
    return _UNIT.findall(text)


def starts_dependent(piece: str) -> bool:
    """Whether a piece begins with a sign that belongs to the letter before it.

    >>> starts_dependent("ার"), starts_dependent("আর")
    (True, False)
    """
    return _DEPENDENT.match(piece) is not None


def is_dependent(piece: str) -> bool:
    """Whether a piece is signs alone, which belong to the letter before them.

    >>> is_dependent("\u09cd\u200d"), is_dependent("্য")
    (True, False)
    """
    return _DEPENDENT_ALONE.fullmatch(piece) is not None


def is_whole(piece: str) -> bool:
    """Whether a piece can stand between any two others without cutting a letter.

    >>> [is_whole(piece) for piece in ("মা", "া", "ক্")]
    [True, False, False]
    """
    # Hasanta + ZWNJ is a finished letter (উদ্‌যাপন); hasanta alone, or with ZWJ, still reaches for the next consonant.
    return bool(piece) and not starts_dependent(piece) and not piece.endswith((HASANTA, HASANTA + "\u200d"))
