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

It does not know which nouns name people; the plots ask for -রা and -জন where they mean people. Text is in Unicode's
form NFC, where ড়, ঢ় and য় are a letter and a dot.
"""

import functools
from collections.abc import Callable

from kotha.wording import bangla_digits

VOWEL_SIGNS = "ািীুূৃেৈোৌ"
VOWEL_LETTERS = "অআইঈউঊঋএঐওঔ"
VIRAMA = "্"
NUMBER_WORDS = """
    শূন্য এক দুই তিন চার পাঁচ ছয় সাত আট নয় দশ এগারো বারো তেরো চৌদ্দ পনেরো ষোলো সতেরো আঠারো উনিশ বিশ
    একুশ বাইশ তেইশ চব্বিশ পঁচিশ ছাব্বিশ সাতাশ আটাশ ঊনত্রিশ ত্রিশ একত্রিশ বত্রিশ তেত্রিশ চৌত্রিশ
    পঁয়ত্রিশ ছত্রিশ সাঁইত্রিশ আটত্রিশ ঊনচল্লিশ চল্লিশ একচল্লিশ বিয়াল্লিশ তেতাল্লিশ চুয়াল্লিশ
    পঁয়তাল্লিশ ছেচল্লিশ সাতচল্লিশ আটচল্লিশ ঊনপঞ্চাশ পঞ্চাশ একান্ন বায়ান্ন তিপ্পান্ন চুয়ান্ন পঞ্চান্ন
    ছাপ্পান্ন সাতান্ন আটান্ন ঊনষাট ষাট একষট্টি বাষট্টি তেষট্টি চৌষট্টি পঁয়ষট্টি ছেষট্টি সাতষট্টি
    আটষট্টি ঊনসত্তর সত্তর একাত্তর বাহাত্তর তিয়াত্তর চুয়াত্তর পঁচাত্তর ছিয়াত্তর সাতাত্তর আটাত্তর ঊনআশি
    আশি একাশি বিরাশি তিরাশি চুরাশি পঁচাশি ছিয়াশি সাতাশি আটাশি ঊননব্বই নব্বই একানব্বই বিরানব্বই
    তিরানব্বই চুরানব্বই পঁচানব্বই ছিয়ানব্বই সাতানব্বই আটানব্বই নিরানব্বই একশো
"""
NUMBERS = NUMBER_WORDS.split()
PRONOUNS = {
    "সে": ("সে", "তার", "তাকে"),
    "তিনি": ("তিনি", "তাঁর", "তাঁকে"),
    "তুই": ("তুই", "তোর", "তোকে"),
    "তুমি": ("তুমি", "তোমার", "তোমাকে"),
    "আপনি": ("আপনি", "আপনার", "আপনাকে"),
}


def _ending(word: str) -> str:
    """The kind of sound a word ends in: 'glide', 'aa', 'vowel', 'cut' (ৎ) or 'consonant'."""
    last = word.rsplit(" ", 1)[-1].rsplit("-", 1)[-1].replace("ঁ", "")
    if last[-1] in VOWEL_LETTERS:
        return "glide"
    if last[-1] in VOWEL_SIGNS:
        syllables = sum(c in VOWEL_SIGNS or c in VOWEL_LETTERS for c in last)
        letters = [c for c in last if c not in VOWEL_SIGNS and c != "়"]
        if syllables == 1 and (len(letters) == 1 or (letters[1] == VIRAMA and len(letters) == 3)):
            return "glide"
        return "aa" if last[-1] == "া" else "vowel"
    return "cut" if last[-1] == "ৎ" else "consonant"


def genitive(word: str) -> str:
    """Of a thing or person.

    >>> genitive("রহিম"), genitive("নদী"), genitive("মা"), genitive("বই"), genitive("শরৎ")
    ('রহিমের', 'নদীর', 'মায়ের', 'বইয়ের', 'শরতের')
    """
    ending = _ending(word)
    if ending == "glide":
        return word + "য়ের"
    if ending == "cut":
        return word[:-1] + "তের"
    return word + ("ের" if ending == "consonant" else "র")


def locative(word: str) -> str:
    """In, on or at a thing.

    >>> locative("গ্রাম"), locative("ঢাকা"), locative("নদী"), locative("বই"), locative("গাঁ")
    ('গ্রামে', 'ঢাকায়', 'নদীতে', 'বইয়ে', 'গাঁয়ে')
    """
    ending = _ending(word)
    if ending == "cut":
        return word[:-1] + "তে"
    return word + {"glide": "য়ে", "aa": "য়", "vowel": "তে", "consonant": "ে"}[ending]


def plural(word: str) -> str:
    """Several people.

    >>> plural("জেলে"), plural("কৃষক"), plural("ছাত্র"), plural("মা")
    ('জেলেরা', 'কৃষকেরা', 'ছাত্ররা', 'মায়েরা')
    """
    ending = _ending(word)
    if ending == "glide":
        return word + "য়েরা"
    conjunct = len(word) > 2 and word[-2] == VIRAMA
    return word + ("েরা" if ending == "consonant" and not conjunct else "রা")


CASES: dict[str, Callable[[str], str]] = {
    "র": genitive,
    "এ": locative,
    "রা": plural,
    "কে": lambda word: word + "কে",
    "দের": lambda word: word + "দের",
}


@functools.cache
def inflect(word: str, case: str) -> str:
    """A noun in the case that a plot names by its suffix: র, এ, কে, রা or দের.

    >>> inflect("চাষি", "দের")
    'চাষিদের'
    """
    return CASES[case](word)


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
