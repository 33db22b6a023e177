"""Open questions, graded by what a good answer must name.

A rubric is a list of things to name, each with the words by which it is known, in both languages. A word is known by
its beginning, since Bangla and English put endings behind it; several words in one entry must all be there. What is
recognised is words and not thought: whoever says it otherwise gets too little, whoever lists the words too much. So
the rubric is shown afterwards, and a teacher reads.
"""

import re
import unicodedata
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from kotha.i18n.message import Bilingual
from kotha.i18n.numbers import ascii_digits

_TOKEN = re.compile(r"[a-z_]+|\d+(?:\.\d+)?|[\u0980-\u09e3\u09f0-\u09ff]+")
_GROUPED = re.compile(r"(?<=\d),(?=\d)")
_SIGNS = (("∞", " infinity "), ("√", " root "), ("−", "-"), ("-log", " minus log"), ("-ln", " minus ln"))


@dataclass(frozen=True)
class Named:
    """One thing that a good answer names, and the words by which it is known: any entry will do."""

    label: Bilingual
    known_by: tuple[str, ...]


@dataclass(frozen=True)
class Part:
    """Things of one kind, of which so many are enough."""

    things: tuple[Named, ...]
    enough: int

    @property
    def needed(self) -> int:
        """How many bring all the points."""
        return min(self.enough, len(self.things))


@dataclass(frozen=True)
class Misbelief:
    """A wrong thing that is often said, the words by which it is known, and what to answer."""

    reply: Bilingual
    known_by: tuple[str, ...]


@dataclass(frozen=True)
class Rubric:
    """What a good answer names."""

    lead: Bilingual  # a question that leads there; the hint
    parts: tuple[Part, ...]
    misbeliefs: tuple[Misbelief, ...] = ()

    @classmethod
    def from_dict(cls, told: Mapping[str, Any]) -> "Rubric":
        """As the question file has it."""
        parts = tuple(
            Part(tuple(Named(_said(thing), tuple(thing["known_by"])) for thing in part["things"]), part["enough"])
            for part in told["parts"]
        )
        wrong = tuple(Misbelief(_said(each), tuple(each["known_by"])) for each in told["misbeliefs"])
        return cls(_said(told["lead"]), parts, wrong)

    @property
    def needed(self) -> int:
        """How many things bring all the points."""
        return sum(part.needed for part in self.parts)

    @property
    def things(self) -> Iterator[Named]:
        """All that may be named."""
        return (thing for part in self.parts for thing in part.things)


@dataclass(frozen=True)
class Recognised:
    """What an answer names."""

    named: tuple[Named, ...]
    missing: tuple[Named, ...]
    credit: float  # the share of the points
    replies: tuple[Bilingual, ...]  # to what is wrong


def read_answer(text: str, rubric: Rubric) -> Recognised:
    """What a student's own words name.

    >>> rubric = Rubric(Bilingual("?", "?"), (Part((Named(Bilingual("the mask", "মাস্ক"), ("mask", "মাস্ক")),), 1),))
    >>> read_answer("মাস্কের জন্য", rubric).credit, read_answer("no idea", rubric).credit
    (1.0, 0.0)
    """
    tokens = _tokens(text)
    named = [thing for thing in rubric.things if _is_known(tokens, thing.known_by)]
    counted = sum(min(part.needed, sum(thing in named for thing in part.things)) for part in rubric.parts)
    missing = [
        thing
        for part in rubric.parts
        if sum(each in named for each in part.things) < part.needed
        for thing in part.things
        if thing not in named
    ]
    replies = [each.reply for each in rubric.misbeliefs if _is_known(tokens, each.known_by)]
    return Recognised(tuple(named), tuple(missing), counted / rubric.needed, tuple(replies))


def _said(told: Mapping[str, Any]) -> Bilingual:
    return Bilingual(told["en"], told["bn"])


def _tokens(text: str) -> list[str]:
    plain = ascii_digits(unicodedata.normalize("NFC", text)).lower()
    for sign, spelled in _SIGNS:
        plain = plain.replace(sign, spelled)
    return _TOKEN.findall(_GROUPED.sub("", plain))


def _is_known(tokens: list[str], known_by: tuple[str, ...]) -> bool:
    return any(all(_is_there(tokens, word) for word in _tokens(entry)) for entry in known_by)


def _is_there(tokens: list[str], word: str) -> bool:
    """Whether a word begins with it; a number, or a single letter, must be the whole word."""
    whole = word[0].isdigit() or (len(word) == 1 and word.isascii())
    return word in tokens if whole else any(token.startswith(word) for token in tokens)
