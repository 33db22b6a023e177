"""Answers that are no numbers: one's own words, known by what they must name, and pieces put in order.

A rubric is a list of things to name, each with the words by which it is known, in both languages. A word is known by
its beginning, since Bangla and English put endings behind it; several words in one entry must all be there. What is
recognised is words and not thought: whoever says it otherwise gets too little, whoever lists the words too much. So
the rubric is shown afterwards, and a teacher reads.
"""

import random
import re
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from kotha.course.data import said
from kotha.i18n.message import Bilingual
from kotha.i18n.numbers import ascii_digits

_TOKEN = re.compile(r"[a-z_]+|\d+(?:\.\d+)?|[\u0980-\u09e3\u09f0-\u09ff]+")
_GROUPED = re.compile(r"(?<=\d),(?=\d)")
# A thing that a good answer names, or what to reply to a wrong one: its text, and the words that it is known by.
Thing = Mapping[str, Any]
_SIGNS = (("∞", " infinity "), ("√", " root "), ("−", "-"), ("-log", " minus log"), ("-ln", " minus ln"))


class Rubric:
    """What a good answer names, as the question file has it; any entry of words will do to know a thing by."""

    def __init__(self, told: Mapping[str, Any]) -> None:
        self.lead = said(told["lead"])  # a question that leads there; the hint
        self.parts: list[Mapping[str, Any]] = told["parts"]  # things of one kind, of which so many are enough
        self.misbeliefs: list[Thing] = told["misbeliefs"]
        self.needed = sum(part["enough"] for part in self.parts)
        self.things: list[Thing] = [thing for part in self.parts for thing in part["things"]]

    def read(self, text: str) -> tuple[list[Thing], int, list[Bilingual]]:
        """What a student's own words name, how much of that counts, and what to reply to what is wrong.

        >>> mask = {"en": "the mask", "bn": "মাস্ক", "known_by": ["mask", "মাস্ক"]}
        >>> rubric = Rubric({"lead": "?", "parts": [{"enough": 1, "things": [mask]}], "misbeliefs": []})
        >>> rubric.read("মাস্কের জন্য")[1], rubric.read("no idea")[1]
        (1, 0)
        """
        tokens = _tokens(text)
        named = [thing for thing in self.things if _is_named(thing, tokens)]
        counted = sum(min(part["enough"], sum(thing in named for thing in part["things"])) for part in self.parts)
        return named, counted, [said(each) for each in self.misbeliefs if _is_named(each, tokens)]


def _is_named(thing: Thing, tokens: list[str]) -> bool:
    return any(all(_is_there(tokens, word) for word in _tokens(entry)) for entry in thing["known_by"])


def _tokens(text: str) -> list[str]:
    plain = ascii_digits(unicodedata.normalize("NFC", text)).lower()
    for sign, spelled in _SIGNS:
        plain = plain.replace(sign, spelled)
    return _TOKEN.findall(_GROUPED.sub("", plain))


def _is_there(tokens: list[str], word: str) -> bool:
    """Whether a word begins with it; a number, or a single letter, must be the whole word."""
    whole = word[0].isdigit() or (len(word) == 1 and word.isascii())
    return word in tokens if whole else any(token.startswith(word) for token in tokens)


@dataclass(frozen=True)
class Flowchart:
    """Pieces in their right order, and the numbers under which they are shown."""

    pieces: tuple[Bilingual, ...]
    numbers: tuple[int, ...]  # of each piece, counted from 1

    @property
    def shown(self) -> list[Bilingual]:
        """The pieces by their numbers."""
        return [self.pieces[self.numbers.index(number)] for number in range(1, len(self.pieces) + 1)]


def shuffled(pieces: tuple[Bilingual, ...], seed: int) -> Flowchart:
    """Pieces under numbers that do not tell their order."""
    numbers = list(range(1, len(pieces) + 1))
    draw = random.Random(seed)
    while numbers == sorted(numbers):
        draw.shuffle(numbers)
    return Flowchart(pieces, tuple(numbers))
