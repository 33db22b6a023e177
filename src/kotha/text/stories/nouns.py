"""Bangla nouns and numbers: case, plural and classifier, by the sound in which a word ends.

What a suffix looks like depends on the last sound alone, apart from words of one open syllable (মা, চা, গাঁ), which
take a glide::

                     genitive   locative   plural
    রহিম, গ্রাম       রহিমের     গ্রামে      শিক্ষকেরা     a consonant
    নৌকা              নৌকার      নৌকায়     রাজারা        আ
    নদী, জেলে         নদীর       নদীতে      জেলেরা        any other vowel sign
    বই, লাউ           বইয়ের     বইয়ে      বউয়েরা       a vowel letter
    মা, চা            মায়ের     চায়ে      মায়েরা       one open syllable
    শরৎ               শরতের      শরতে                     ৎ becomes ত again
    রং                রঙের       রঙে                      and ং becomes ঙ

It does not know which nouns name people; the plots ask for -রা and -জন where they mean people. Text is in Unicode's
form NFC, where ড়, ঢ় and য় are a letter and a dot.
"""

import functools
import json

from kotha.i18n.numbers import bangla_digits
from kotha.text.stories.lexicon import file_of

VOWEL_SIGNS = "ািীুূৃেৈোৌ"
VOWEL_LETTERS = "অআইঈউঊঋএঐওঔ"
VIRAMA = "্"
CASES = ("র", "এ", "রা", "কে", "দের")
_GRAMMAR = json.loads(file_of("grammar.json"))
NUMBERS: list[str] = _GRAMMAR["numbers"]
PRONOUNS: dict[str, list[str]] = _GRAMMAR["pronouns"]
# The first three cases, by the sound before.
SUFFIXES: dict[str, list[str]] = _GRAMMAR["suffixes"]


def _ending(word: str) -> str:
    """The kind of sound a word ends in: 'glide', 'aa', 'vowel', 'cut' (ৎ), 'nasal' (ং) or 'consonant'."""
    last = word.rsplit(" ", 1)[-1].rsplit("-", 1)[-1].replace("ঁ", "")
    if last[-1] in VOWEL_LETTERS:
        return "glide"
    if last[-1] in VOWEL_SIGNS:
        syllables = sum(c in VOWEL_SIGNS or c in VOWEL_LETTERS for c in last)
        letters = [c for c in last if c not in VOWEL_SIGNS and c != "়"]
        if syllables == 1 and (len(letters) == 1 or (letters[1] == VIRAMA and len(letters) == 3)):
            return "glide"
        return "aa" if last[-1] == "া" else "vowel"
    return {"ৎ": "cut", "ং": "nasal"}.get(last[-1], "consonant")


@functools.cache
def inflect(word: str, case: str) -> str:
    """A noun in the case that a plot names by its suffix: র (of it), এ (in, on or at it), রা (several people), কে, দের.

    >>> [inflect(word, "র") for word in ("রহিম", "নদী", "মা", "বই", "শরৎ")]
    ['রহিমের', 'নদীর', 'মায়ের', 'বইয়ের', 'শরতের']
    >>> [inflect(word, "এ") for word in ("গ্রাম", "ঢাকা", "নদী", "বই", "গাঁ")]
    ['গ্রামে', 'ঢাকায়', 'নদীতে', 'বইয়ে', 'গাঁয়ে']
    >>> [inflect(word, "রা") for word in ("জেলে", "কৃষক", "ছাত্র", "মা")]
    ['জেলেরা', 'কৃষকেরা', 'ছাত্ররা', 'মায়েরা']
    """
    if case in ("কে", "দের"):
        return word + case
    ending = _ending(word)
    if case == "রা" and ending == "consonant" and word[-2:-1] == VIRAMA:
        return word + case
    stem = word[:-1] if ending in ("cut", "nasal") else word
    return stem + SUFFIXES[ending][CASES.index(case)]


def number(value: int) -> str:
    """A number up to a hundred in words, and above it in digits.

    >>> number(35), number(350)
    ('পঁয়ত্রিশ', '৩৫০')
    """
    return NUMBERS[value] if value < len(NUMBERS) else digits(value)


def digits(value: int) -> str:
    """A number in Bangla digits, grouped by thousands and then by hundreds.

    >>> digits(952), digits(45000), digits(1234567)
    ('৯৫২', '৪৫,০০০', '১২,৩৪,৫৬৭')
    """
    text = str(value)
    groups = [text[-3:]]
    for end in range(len(text) - 3, 0, -2):
        groups.insert(0, text[max(0, end - 2) : end])
    return bangla_digits(",".join(groups))


def counted(value: int, classifier: str) -> str:
    """A number with its classifier: টি or টা for things, জন for people, খানা for flat things.

    >>> counted(2, "টি"), counted(2, "জন"), counted(5, "টা"), counted(3, "খানা"), counted(120, "জন")
    ('দুটি', 'দুজন', 'পাঁচটা', 'তিনখানা', '১২০ জন')
    """
    if value >= len(NUMBERS):
        return f"{digits(value)} {classifier}" if classifier == "জন" else digits(value) + classifier
    return ("দু" if value == 2 else NUMBERS[value]) + classifier
