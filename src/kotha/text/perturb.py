"""Text perturbations for robustness evaluation: spelling noise, typing errors, romanization.

The result depends only on the text, the kind, a seed and a share of words, so it is reproducible. Typing errors change
complete aksharas (``akshara.py``), so no vowel sign loses its consonant. Words are never joined or split, so per-word
results remain comparable.

- **spelling**: a letter is replaced with one that sounds the same (ি ী, ু ূ, ন ণ, শ ষ স, জ য, ড় র)
- **typos**: an akshara is omitted, doubled, or swapped with the next one
- **latin**: the text in Latin letters, as people type it without a Bangla keyboard (romanization)
- **digits**: Bangla digits become ASCII digits
- **punctuation**: all punctuation is deleted
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
# Letters encoded with a separate dot; these are handled first.
_DOTTED = {"ড়": "র", "ঢ়": "ড়"}
MARKS = "।॥,;:!?.“”‘’\"'()[]{}—–-"
_PUNCTUATION = re.compile(f"[{re.escape(MARKS)}]+")

# Bangla letters and their romanization.
_LATIN: dict[str, dict[str, str]] = json.loads(Path(__file__).with_suffix(".json").read_text(encoding="utf-8"))
_VOWELS, _SIGNS, _CONSONANTS, _WITH_DOT = (_LATIN[name] for name in ("vowels", "signs", "consonants", "with_dot"))
_DOT, _VIRAMA, _NASAL, _DANDA = "়", "্", "ঁ", "।"
_BARE = "ৎংঃ"  # consonants without an inherent vowel


def misspellings(word: str) -> list[str]:
    """Return the word with each letter in turn replaced by others that sound the same."""
    found = [word.replace(dotted, other, 1) for dotted, other in _DOTTED.items() if dotted in word]
    for at, letter in enumerate(word):
        if word[at + 1 : at + 2] != _DOT:
            found += [word[:at] + other + word[at + 1 :] for other in _CONFUSED.get(letter, "")]
    return found


def _misspelled(word: str, rng: random.Random) -> str:
    """Replace one letter in a word with another that sounds the same."""
    for dotted, other in _DOTTED.items():
        if dotted in word:
            return word.replace(dotted, other, 1)
    positions = [at for at, letter in enumerate(word) if letter in _CONFUSED and word[at + 1 : at + 2] != _DOT]
    if not positions:
        return word
    at = rng.choice(positions)
    return word[:at] + rng.choice(_CONFUSED[word[at]]) + word[at + 1 :]


def _mistyped(word: str, rng: random.Random) -> str:
    """Omit an akshara in a word, double it, or swap it with the next one; surrounding punctuation stays in place."""
    bare = word.strip(MARKS)
    letters = list(aksharas(bare))
    if len(letters) < 2:
        return word
    before, after = word.split(bare, 1)
    at = rng.randrange(len(letters) - 1)
    mistake = rng.choice(("out", "twice", "late"))
    if mistake == "out":
        del letters[at]
    elif mistake == "twice":
        letters.insert(at, letters[at])
    else:
        letters[at], letters[at + 1] = letters[at + 1], letters[at]
    return before + "".join(letters) + after


def romanized(text: str) -> str:
    """Romanize Bangla, roughly as people type it on phones; other text is unchanged.

    >>> romanized("আমার সোনার বাংলা। পাঁচটি বই"), romanized("রাষ্ট্র ১২")
    ('amar sonar bangla. panchti boi', 'rashtro 12')
    """
    found: list[str] = []
    for position, letter in enumerate(text):
        follows = text[position + 1 : position + 2]
        if letter in _CONSONANTS:
            found.append(_WITH_DOT.get(letter, _CONSONANTS[letter]) if follows == _DOT else _CONSONANTS[letter])
            if letter not in _BARE and _has_inherent_vowel(text, position):
                found.append("o")
        elif letter == _NASAL:
            found.append("n")
        elif letter == _DANDA:
            found.append(".")
        elif letter not in (_DOT, _VIRAMA, "\u200c", "\u200d"):
            found.append(_VOWELS.get(letter, _SIGNS.get(letter, letter)))
    return ascii_digits("".join(found))


def _has_inherent_vowel(text: str, position: int) -> bool:
    """Guess whether the consonant at a position is pronounced with its inherent vowel.

    The result is true after a conjunct, and false at the end of a word. Between two consonants, it is true at the start
    of a word, or if the second consonant has no vowel sign either (কলম: kolom, but বসলে: bosle).
    """
    next_position = position + 1 + (text[position + 1 : position + 2] == _DOT)
    follows = text[next_position : next_position + 1]
    if follows in _SIGNS or follows in (_VIRAMA, _NASAL):
        return False
    if text[position - 1 : position] == _VIRAMA:
        return True
    if follows not in _CONSONANTS and follows not in _VOWELS:
        return False
    begins = position == 0 or text[position - 1] not in (*_CONSONANTS, *_VOWELS, *_SIGNS, _DOT, _NASAL)
    after = text[next_position + 1 : next_position + 2]
    return begins or (after not in _SIGNS and after != _VIRAMA)


_BY_WORD: dict[str, Change] = {"spelling": _misspelled, "typos": _mistyped}
_BY_TEXT: dict[str, Callable[[str], str]] = {
    "latin": romanized,
    "digits": ascii_digits,
    "punctuation": lambda text: _PUNCTUATION.sub("", text),
}
PERTURBATIONS = (*_BY_WORD, *_BY_TEXT)


def perturb(text: str, kind: str, *, share: float = 0.2, seed: int = 0) -> str:
    """Return perturbed text; kinds that work word by word change a share of its words.

    >>> perturb("নদীর ধারে", "spelling", share=1.0) == perturb("নদীর ধারে", "spelling", share=1.0) != "নদীর ধারে"
    True
    """
    check_choice("kind", kind, PERTURBATIONS)
    if not 0 < share <= 1:
        raise UsageError(
            "{share} (the share of words to change) must be above 0 and at most 1", share=Option("share", share)
        )
    text = unicodedata.normalize("NFC", text)  # in NFC, ড় is encoded as a letter and a dot
    if kind in _BY_TEXT:
        return _BY_TEXT[kind](text)
    digest = hashlib.sha256(f"{seed} {kind} {text}".encode()).hexdigest()
    rng = random.Random(digest)
    pieces = re.split(r"(\s+)", text)  # words and white space alternate
    return "".join(
        _BY_WORD[kind](piece, rng) if index % 2 == 0 and piece and rng.random() < share else piece
        for index, piece in enumerate(pieces)
    )
