"""Texts as others would write them: spelling noise, slips of the keys, another script; to see how far a score falls.

Each kind is a function of the text, a seed and a share of words, and nothing else, so a figure can be had again.
Letters are changed whole (``akshara.py``): no vowel sign loses its consonant. Words are never joined or parted, so
figures per word can be compared.

- **spelling**: letters that sound alike are taken for each other (ি ী, ু ূ, ন ণ, শ ষ স, জ য, ড় র): what is often confused
- **typos**: a letter is left out, doubled, or changes places with the next
- **latin**: the whole text in Latin letters, as on a phone without a Bangla keyboard (romanization)
- **digits**: Bangla digits become ASCII ones
- **punctuation**: all of it is left out
"""

import hashlib
import json
import random
import re
import unicodedata
from collections.abc import Callable
from pathlib import Path

from kotha.errors import UsageError
from kotha.i18n.message import Option
from kotha.i18n.numbers import ascii_digits
from kotha.text.akshara import aksharas
from kotha.text.choices import check_choice

Change = Callable[[str, random.Random], str]

_ALIKE = ("িী", "ুূ", "ইঈ", "উঊ", "নণ", "শষস", "জয")
_CONFUSED = {letter: group.replace(letter, "") for group in _ALIKE for letter in group}
# Letters that Unicode writes with a dot of their own; they go first.
_DOTTED = {"ড়": "র", "ঢ়": "ড়"}
_MARKS = "।॥,;:!?.“”‘’\"'()[]{}—–-"
_PUNCTUATION = re.compile(f"[{re.escape(_MARKS)}]+")

# Bangla letters in Latin ones.
_LATIN: dict[str, dict[str, str]] = json.loads(Path(__file__).with_suffix(".json").read_text(encoding="utf-8"))
_VOWELS, _SIGNS, _CONSONANTS, _WITH_DOT = (_LATIN[name] for name in ("vowels", "signs", "consonants", "with_dot"))
_DOT, _VIRAMA, _NASAL, _DANDA = "়", "্", "ঁ", "।"
_BARE = "ৎংঃ"  # consonants that never have a vowel


def _spelled(word: str, chance: random.Random) -> str:
    """The word with one letter taken for another that sounds alike."""
    for dotted, other in _DOTTED.items():
        if dotted in word:
            return word.replace(dotted, other, 1)
    places = [place for place, letter in enumerate(word) if letter in _CONFUSED and word[place + 1 : place + 2] != _DOT]
    if not places:
        return word
    place = chance.choice(places)
    return word[:place] + chance.choice(_CONFUSED[word[place]]) + word[place + 1 :]


def _mistyped(word: str, chance: random.Random) -> str:
    """The word with one letter left out, doubled, or after the next; marks around it stay where they are."""
    bare = word.strip(_MARKS)
    letters = list(aksharas(bare))
    if len(letters) < 2:
        return word
    before, after = word.split(bare, 1)
    place = chance.randrange(len(letters) - 1)
    slip = chance.choice(("out", "twice", "late"))
    if slip == "out":
        del letters[place]
    elif slip == "twice":
        letters.insert(place, letters[place])
    else:
        letters[place], letters[place + 1] = letters[place + 1], letters[place]
    return before + "".join(letters) + after


def romanized(text: str) -> str:
    """Bangla in Latin letters, roughly as people write it on phones; what is not Bangla stays.

    >>> romanized("আমার সোনার বাংলা। পাঁচটি বই"), romanized("রাষ্ট্র ১২")
    ('amar sonar bangla. panchti boi', 'rashtro 12')
    """
    found: list[str] = []
    for place, letter in enumerate(text):
        follows = text[place + 1 : place + 2]
        if letter in _CONSONANTS:
            found.append(_WITH_DOT.get(letter, _CONSONANTS[letter]) if follows == _DOT else _CONSONANTS[letter])
            if letter not in _BARE and _has_hidden_vowel(text, place):
                found.append("o")
        elif letter == _NASAL:
            found.append("n")
        elif letter == _DANDA:
            found.append(".")
        elif letter not in (_DOT, _VIRAMA, "\u200c", "\u200d"):
            found.append(_VOWELS.get(letter, _SIGNS.get(letter, letter)))
    return ascii_digits("".join(found))


def _has_hidden_vowel(text: str, place: int) -> bool:
    """Whether the consonant at a place is said with the vowel that nobody writes: a rule of thumb.

    After a conjunct it is; at the end of a word it is not; between two consonants it is where the word begins, or
    where the second has no vowel sign either (কলম: kolom, but বসলে: bosle).
    """
    next_place = place + 1 + (text[place + 1 : place + 2] == _DOT)
    follows = text[next_place : next_place + 1]
    if follows in _SIGNS or follows in (_VIRAMA, _NASAL):
        return False
    if text[place - 1 : place] == _VIRAMA:
        return True
    if follows not in _CONSONANTS and follows not in _VOWELS:
        return False
    begins = place == 0 or text[place - 1] not in (*_CONSONANTS, *_VOWELS, *_SIGNS, _DOT, _NASAL)
    after = text[next_place + 1 : next_place + 2]
    return begins or (after not in _SIGNS and after != _VIRAMA)


_BY_WORD: dict[str, Change] = {"spelling": _spelled, "typos": _mistyped}
_WHOLE: dict[str, Callable[[str], str]] = {
    "latin": romanized,
    "digits": ascii_digits,
    "punctuation": lambda text: _PUNCTUATION.sub("", text),
}
PERTURBATIONS = (*_BY_WORD, *_WHOLE)


def perturb(text: str, kind: str, *, share: float = 0.2, seed: int = 0) -> str:
    """A text as another would write it; of the kinds that go word by word, a share of its words is changed.

    >>> perturb("নদীর ধারে", "spelling", share=1.0) == perturb("নদীর ধারে", "spelling", share=1.0) != "নদীর ধারে"
    True
    """
    check_choice("kind", kind, PERTURBATIONS)
    if not 0 < share <= 1:
        raise UsageError("{share} of the words must be above 0 and at most 1", share=Option("share", share))
    text = unicodedata.normalize("NFC", text)  # where ড় is a letter and its dot
    if kind in _WHOLE:
        return _WHOLE[kind](text)
    digest = hashlib.sha256(f"{seed} {kind} {text}".encode()).hexdigest()
    chance = random.Random(digest)
    pieces = re.split(r"(\s+)", text)  # words and what parts them, by turns
    return "".join(
        _BY_WORD[kind](piece, chance) if place % 2 == 0 and piece and chance.random() < share else piece
        for place, piece in enumerate(pieces)
    )
