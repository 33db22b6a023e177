"""Answers that are no numbers: one's own words, known by what they must name, and pieces put in order.

A rubric is a list of things to name, each with the words by which it is known, in both languages. A word is known by
its beginning, since Bangla and English put endings behind it; several words in one entry must all be there. What is
recognised is words and not thought: whoever says it otherwise gets too little, whoever lists the words too much. So
the rubric is shown afterwards, and a teacher reads.
"""

import random
import re
import unicodedata
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from kotha.course.data import said
from kotha.i18n.message import Bilingual
from kotha.i18n.numbers import ascii_digits

_TOKEN = re.compile(r"[a-z_]+|\d+(?:\.\d+)?|[\u0980-\u09e3\u09f0-\u09ff]+")
_GROUPED = re.compile(r"(?<=\d),(?=\d)")
_SIGNS = (("∞", " infinity "), ("√", " root "), ("−", "-"), ("-log", " minus log"), ("-ln", " minus ln"))


@dataclass(frozen=True)
class Recognisable:
    """A thing that a good answer names, or what to reply to a wrong one; any entry of words will do to know it by."""

    text: Bilingual
    known_by: tuple[str, ...]

    @classmethod
    def from_dict(cls, told: Mapping[str, Any]) -> "Recognisable":
        """As the question file has it."""
        return cls(Bilingual(told["en"], told["bn"]), tuple(told["known_by"]))

    def is_in(self, tokens: list[str]) -> bool:
        """Whether some words name it."""
        return any(all(_is_there(tokens, word) for word in _tokens(entry)) for entry in self.known_by)


@dataclass(frozen=True)
class Part:
    """Things of one kind, of which so many bring all the points."""

    things: tuple[Recognisable, ...]
    needed: int


@dataclass(frozen=True)
class Rubric:
    """What a good answer names."""

    lead: Bilingual  # a question that leads there; the hint
    parts: tuple[Part, ...]
    misbeliefs: tuple[Recognisable, ...] = ()

    @classmethod
    def from_dict(cls, told: Mapping[str, Any]) -> "Rubric":
        """As the question file has it."""
        things = [tuple(map(Recognisable.from_dict, part["things"])) for part in told["parts"]]
        parts = zip(things, told["parts"], strict=True)
        return cls(
            said(told["lead"]),
            tuple(Part(each, min(part["enough"], len(each))) for each, part in parts),
            tuple(map(Recognisable.from_dict, told["misbeliefs"])),
        )

    @property
    def needed(self) -> int:
        """How many things bring all the points."""
        return sum(part.needed for part in self.parts)

    @property
    def things(self) -> Iterator[Recognisable]:
        """All that may be named."""
        return (thing for part in self.parts for thing in part.things)

    def read(self, text: str) -> tuple[tuple[Recognisable, ...], int, tuple[Bilingual, ...]]:
        """What a student's own words name, how much of that counts, and what to reply to what is wrong.

        >>> mask = Recognisable(Bilingual("the mask", "মাস্ক"), ("mask", "মাস্ক"))
        >>> rubric = Rubric(Bilingual("?", "?"), (Part((mask,), 1),))
        >>> rubric.read("মাস্কের জন্য")[1], rubric.read("no idea")[1]
        (1, 0)
        """
        tokens = _tokens(text)
        named = tuple(thing for thing in self.things if thing.is_in(tokens))
        counted = sum(min(part.needed, sum(thing in named for thing in part.things)) for part in self.parts)
        return named, counted, tuple(each.text for each in self.misbeliefs if each.is_in(tokens))


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
