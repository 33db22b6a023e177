"""Inflect Bangla nouns, numbers and verbs according to the sounds of a word.

The form of a suffix depends only on the last sound of the word, except that words of one open syllable (মা, চা, গাঁ)
take a glide::

                     genitive   locative   plural
    রহিম, গ্রাম       রহিমের     গ্রামে      শিক্ষকেরা     a consonant
    নৌকা              নৌকার      নৌকায়     রাজারা        আ
    নদী, জেলে         নদীর       নদীতে      জেলেরা        any other vowel sign
    বই, লাউ           বইয়ের     বইয়ে      বউয়েরা       a vowel letter
    মা, চা            মায়ের     চায়ে      মায়েরা       one open syllable
    শরৎ               শরতের      শরতে                     ৎ becomes ত again
    রং                রঙের       রঙে                      and ং becomes ঙ

This module does not know which nouns denote people; the plots use -রা and -জন only for people. Text is normalized to
NFC, in which ড়, ঢ় and য় are encoded as a letter and a dot.

Verbs are in the standard spoken form (চলিত), by stem class. A verb is identified by its verbal noun (করা, লেখা, খাওয়া,
দাঁড়ানো). The verbal noun determines seven stems, because the vowel of the root rises before some endings (লেখে but
লিখল, শোনে but শুনল, রাখে but রেখেছে). Each tense is one stem and one row of endings. The endings are ordered by person
and rank: আমি, তুই, তুমি, সে, তিনি; আপনি takes the form of তিনি.
"""

import functools
import json
from typing import NamedTuple

from kotha.i18n.numbers import bangla_digits
from kotha.text.stories.lexicon import file_of

VOWEL_SIGNS = "ািীুূৃেৈোৌ"
VOWEL_LETTERS = "অআইঈউঊঋএঐওঔ"
VIRAMA = "্"
CASES = ("র", "এ", "রা", "কে", "দের")
_GRAMMAR = json.loads(file_of("grammar.json"))
NUMBERS: list[str] = _GRAMMAR["numbers"]
PRONOUNS: dict[str, list[str]] = _GRAMMAR["pronouns"]
# Suffixes of the first three cases, by the preceding sound.
SUFFIXES: dict[str, list[str]] = _GRAMMAR["suffixes"]


def _ending(word: str) -> str:
    """Return the type of a word's last sound: 'glide', 'aa', 'vowel', 'cut' (ৎ), 'nasal' (ং) or 'consonant'."""
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
    """Inflect a noun for a case, named by its suffix: র (genitive), এ (locative), রা (plural of people), কে, দের.

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
    """Write a number in words up to a hundred, and in digits above.

    >>> number(35), number(350)
    ('পঁয়ত্রিশ', '৩৫০')
    """
    return NUMBERS[value] if value < len(NUMBERS) else digits(value)


def digits(value: int) -> str:
    """Write a number in Bangla digits with Indian grouping.

    >>> digits(952), digits(45000), digits(1234567)
    ('৯৫২', '৪৫,০০০', '১২,৩৪,৫৬৭')
    """
    text = str(value)
    groups = [text[-3:]]
    for end in range(len(text) - 3, 0, -2):
        groups.insert(0, text[max(0, end - 2) : end])
    return bangla_digits(",".join(groups))


def counted(value: int, classifier: str) -> str:
    """Write a number with its classifier: টি or টা for things, জন for people, খানা for flat things.

    >>> counted(2, "টি"), counted(2, "জন"), counted(5, "টা"), counted(3, "খানা"), counted(120, "জন")
    ('দুটি', 'দুজন', 'পাঁচটা', 'তিনখানা', '১২০ জন')
    """
    if value >= len(NUMBERS):
        return f"{digits(value)} {classifier}" if classifier == "জন" else digits(value) + classifier
    return ("দু" if value == 2 else NUMBERS[value]) + classifier


PERSONS = ("আমি", "তুই", "তুমি", "সে", "তিনি")
RISEN = {"ে": "ি", "ো": "ু", "ও": "উ"}
KEEPS_E, TAKES_I = _GRAMMAR["keeps_e"], _GRAMMAR["takes_i"]


class Stems(NamedTuple):
    """The stems that take endings, each named by its use."""

    before_i: str  # করি, লিখি, খাই
    before_e: str  # করে, লেখে, খায়
    past: str  # করল, লিখল, খেল
    joined: str  # করে, লিখে, খেয়ে: "having done", and the base of the perfect
    going: str  # করছে, লিখছে, খাচ্ছে
    habit: str  # করত, লিখত, খেত
    future: str  # করব, লিখব, খাব


IRREGULAR = {verb: Stems(*stems) for verb, stems in _GRAMMAR["irregular"].items()}
ENDINGS: dict[str, str] = _GRAMMAR["endings"]  # for each tense, stem+ending for each person
TENSES = frozenset({"request", *(name for name in ENDINGS if " " not in name)})
# Tenses whose forms equal those of another tense.
_AS = {("order", "তুমি"): "present", ("request", "তুই"): "present"}
_AS |= {("request", person): "future" for person in ("আমি", "সে", "তিনি")}
FORMS = frozenset({"joined", "to", "if", "noun", "of"})
# Irregular forms by verb, tense and person: endings that would be misread, and imperatives of everyday verbs.
EXCEPTIONS: dict[str, dict[str, dict[str, str]]] = _GRAMMAR["exceptions"]


@functools.cache
def stems(verb: str) -> Stems:
    """Return the stems of a verb, given its verbal noun.

    >>> stems("লেখা").past, stems("লেখা").before_e, stems("রাখা").joined, stems("খাওয়া").going
    ('লিখ', 'লেখ', 'রেখে', 'খাচ্')
    """
    if verb in IRREGULAR:
        return IRREGULAR[verb]
    if verb.endswith("নো"):  # দাঁড়ানো, শেখানো, এগোনো, খাওয়ানো
        stem = verb.removesuffix("নো")
        root = stem[:-1]
        joined = (root if verb in KEEPS_E or stem.endswith("ো") else _risen(root)) + "িয়ে"
        if verb.endswith("ওয়ানো"):
            joined = verb.removesuffix("ওয়ানো") + "ইয়ে"
        return Stems(stem, stem, stem, joined, stem + "চ্", stem, stem)
    if verb.endswith("ওয়া"):  # খাওয়া, গাওয়া
        root = verb.removesuffix("ওয়া")
        front = root.replace("া", "ে")
        if verb in TAKES_I:
            return Stems(root, root, root + "ই", front + "য়ে", root + "ই", root + "ই", root + "ই")
        return Stems(root, root, front, front + "য়ে", root + "চ্", front, root)
    if verb.endswith("োয়া") or verb.endswith("োঁয়া"):  # শোয়া, ছোঁয়া
        root = verb.removesuffix("য়া")
        high = root.replace("ো", "ু")
        return Stems(high, root, high, high + "য়ে", high + "চ্", high, root)
    root = verb.removesuffix("া")  # করা, রাখা, লেখা, শোনা
    if "া" in root or root.startswith("আ"):
        return Stems(root, root, root, root.replace("া", "ে").replace("আ", "এ") + "ে", root, root, root)
    high = root if verb in KEEPS_E else _risen(root)
    return Stems(high, root, high, high + "ে", high, high, high)


def _risen(root: str) -> str:
    return "".join(RISEN.get(letter, letter) for letter in root)


def _is_open(verb: str) -> bool:
    """Return whether the stem ends in a vowel: খা-, দাঁড়া-, শো-."""
    return verb.endswith(("নো", "ওয়া", "োয়া", "োঁয়া"))


def _request(verb: str) -> str:
    """Return the future imperative for তুমি, such as কোরো or লিখো."""
    joined = stems(verb).joined
    bare = not any(sign in joined[:-1] for sign in "ািুেোউএঁ")
    return (joined[0] + "ো" + joined[1:-1] if bare else joined[:-1]) + "ো"


@functools.cache
def conjugate(phrase: str, tense: str, person: str) -> str:
    """Return a finite verb form; in a phrase, the last word is the verb.

    >>> conjugate("করা", "past", "তিনি"), conjugate("জাল ফেলা", "was", "সে"), conjugate("যাওয়া", "future", "আমি")
    ('করলেন', 'জাল ফেলছিল', 'যাব')
    """
    before, space, verb = phrase.rpartition(" ")
    person = "তিনি" if person == "আপনি" else person
    if exception := EXCEPTIONS.get(verb, {}).get(tense, {}).get(person):
        form = exception
    elif (tense, person) in _AS:
        form = conjugate(verb, _AS[tense, person], person)
    elif tense == "request":
        form = _request(verb)
    else:
        row = ENDINGS.get(f"{tense} open" if _is_open(verb) else tense, ENDINGS[tense])
        stem, ending = row.split(" ")[PERSONS.index(person)].split("+")
        form = str(getattr(stems(verb), stem)) + ending
    return before + space + form


@functools.cache
def nonfinite(phrase: str, form: str) -> str:
    """Return a non-finite form: joined (করে), to (করতে), if (করলে), noun (করা), of (করার).

    >>> [nonfinite("শেখা", form) for form in ("joined", "to", "if", "noun", "of")]
    ['শিখে', 'শিখতে', 'শিখলে', 'শেখা', 'শেখার']
    """
    before, space, verb = phrase.rpartition(" ")
    stem = stems(verb)
    forms = {"joined": stem.joined, "to": stem.habit + "তে", "if": stem.past + "লে", "noun": verb, "of": verb + "র"}
    return before + space + forms[form]
