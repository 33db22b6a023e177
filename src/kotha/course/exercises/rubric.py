"""Answers that are not numbers: words, which are matched by a rubric, and pieces to put in order.

A rubric is a list of things to mention, each with the keywords that identify it in both languages. A keyword matches
the beginning of a word, because Bangla and English words have endings; if a keyword entry has several words, all of
them must occur. Only words are matched, not their meaning, so an answer in unusual wording earns too few points and a
list of keywords earns too many. The rubric is therefore shown after the answer, and a teacher should read the answer.
"""

import random
import re
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from kotha.course.data import bilingual
from kotha.i18n.message import Bilingual
from kotha.i18n.numbers import ascii_digits

_TOKEN = re.compile(r"[a-z_]+|\d+(?:\.\d+)?|[\u0980-\u09e3\u09f0-\u09ff]+")
_GROUPED = re.compile(r"(?<=\d),(?=\d)")
# A thing that a good answer mentions, or a reply to a misconception: its text, and its keywords.
Thing = Mapping[str, Any]
_SIGNS = (("∞", " infinity "), ("√", " root "), ("−", "-"), ("-log", " minus log"), ("-ln", " minus ln"))


class Rubric:
    """The rubric of a question: things to mention, each identified by any of its keyword entries."""

    def __init__(self, entry: Mapping[str, Any]) -> None:
        self.lead = bilingual(entry["lead"])  # a leading question, used as a hint
        self.parts: list[Mapping[str, Any]] = entry["parts"]  # groups of things; ``enough`` per group are required
        self.misbeliefs: list[Thing] = entry["misbeliefs"]
        self.needed = sum(part["enough"] for part in self.parts)
        self.things: list[Thing] = [thing for part in self.parts for thing in part["things"]]

    def read(self, text: str) -> tuple[list[Thing], int, list[Bilingual]]:
        """Return the things that a text mentions, the number of them that count, and replies to misconceptions.

        >>> mask = {"en": "the mask", "bn": "মাস্ক", "known_by": ["mask", "মাস্ক"]}
        >>> rubric = Rubric({"lead": "?", "parts": [{"enough": 1, "things": [mask]}], "misbeliefs": []})
        >>> rubric.read("মাস্কের জন্য")[1], rubric.read("no idea")[1]
        (1, 0)
        """
        tokens = _tokens(text)
        named = [thing for thing in self.things if _is_named(thing, tokens)]
        counted = sum(min(part["enough"], sum(thing in named for thing in part["things"])) for part in self.parts)
        return named, counted, [bilingual(each) for each in self.misbeliefs if _is_named(each, tokens)]


def _is_named(thing: Thing, tokens: list[str]) -> bool:
    return any(all(_occurs(tokens, word) for word in _tokens(entry)) for entry in thing["known_by"])


def _tokens(text: str) -> list[str]:
    plain = ascii_digits(unicodedata.normalize("NFC", text)).lower()
    for sign, spelled in _SIGNS:
        plain = plain.replace(sign, spelled)
    return _TOKEN.findall(_GROUPED.sub("", plain))


def _occurs(tokens: list[str], word: str) -> bool:
    """Return whether any token starts with the word; numbers and single letters must match exactly."""
    exact = word[0].isdigit() or (len(word) == 1 and word.isascii())
    return word in tokens if exact else any(token.startswith(word) for token in tokens)


@dataclass(frozen=True)
class Flowchart:
    """Pieces in the right order, and the numbers shown next to them."""

    pieces: tuple[Bilingual, ...]
    numbers: tuple[int, ...]  # the number shown next to each piece, from 1

    @property
    def shown(self) -> list[Bilingual]:
        """The pieces, ordered by the numbers shown next to them."""
        return [self.pieces[self.numbers.index(number)] for number in range(1, len(self.pieces) + 1)]


def shuffled(pieces: tuple[Bilingual, ...], seed: int) -> Flowchart:
    """Number the pieces in a random order that is never the right one."""
    numbers = list(range(1, len(pieces) + 1))
    draw = random.Random(seed)
    while numbers == sorted(numbers):
        draw.shuffle(numbers)
    return Flowchart(pieces, tuple(numbers))
