"""The lexicon of the stories, read from ``words/``: tables of nouns, each with related nouns as parts.

A table in a file starts with ``[name]``, followed by a line for each noun and its parts (``name; part: a, b; part:
c``). ``name: a, b`` is a table of nouns without parts, and ``name of table: a, b`` a subset of another table. An
indented line continues the previous one, and # starts a comment. Tables that depend on others are built in code: a
season links to its months, and a village name is composed of two parts.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

_WORDS = Path(__file__).with_name("words")
_TABLE = re.compile(r"\[([a-z]+)\]")
_LISTED = re.compile(r"([a-z]+)(?: of ([a-z]+))?: (.*)")
# Parts that are nouns from another table.
_LINKS = {
    ("month", "pick"): "basket",
    ("month", "sold"): "basket",
    ("month", "crop"): "harvest",
    ("season", "month"): "month",
    ("district", "disaster"): "disaster",
}


@dataclass(frozen=True, slots=True)
class Noun:
    """A word in the lexicon with its parts; a person's ``rank`` is their pronoun."""

    text: str
    rank: str | None = None
    parts: Mapping[str, tuple["Noun", ...]] = field(default_factory=dict)
    key: str = ""  # words with the same key count as one choice (default: the text)


Nouns = tuple[Noun, ...]
Tables = Mapping[str, Nouns]


def listed(text: str) -> list[str]:
    """Split a comma-separated line into words.

    >>> listed("আম, পাকা পেঁপে")
    ['আম', 'পাকা পেঁপে']
    """
    return [" ".join(word.split()) for word in text.split(",") if word.strip()]


def nouns(text: str, rank: str | None = None) -> Nouns:
    """Parse the nouns in a comma-separated line."""
    return tuple(Noun(word, rank) for word in listed(text))


def entries(text: str) -> dict[str, str]:
    """Parse ``name: text`` lines; an indented line continues the previous one, and any other line is a comment."""
    return dict(re.findall(r"^(\w+): (.*(?:\n    .*)*)", text, re.MULTILINE))


def read_tables(text: str) -> dict[str, Nouns]:
    """Parse the tables in a file.

    >>> tables = read_tables("[pet]\\nহাঁস; eats: ধান, শামুক\\nগরু; eats: ঘাস\\nbird of pet: হাঁস\\n")
    >>> [food.text for food in tables["bird"][0].parts["eats"]]
    ['ধান', 'শামুক']
    """
    found: dict[str, Nouns] = {}
    table = ""
    for line in re.sub(r"^#.*\n", "", text, flags=re.MULTILINE).replace("\n    ", " ").splitlines():
        if heading := _TABLE.fullmatch(line):
            table = heading[1]
        elif entry := _LISTED.fullmatch(line):
            name, of, words = entry.groups()
            found[name] = _some(found[of], words) if of else nouns(words)
        elif line:
            word, *parts = line.split(";")
            pairs = (part.split(":") for part in parts)
            noun = Noun(word.strip(), parts={part.strip(): nouns(words) for part, words in pairs})
            found[table] = (*found.get(table, ()), noun)
    return found


def _some(table: Nouns, words: str) -> Nouns:
    by_name = {noun.text: noun for noun in table}
    return tuple(by_name[word] for word in listed(words))


def file_of(name: str) -> str:
    """Return the text of a file in ``words/``."""
    return (_WORDS / name).read_text(encoding="utf-8")


@cache
def phrases() -> dict[str, str]:
    """Return the shared phrases of plots by name."""
    return entries(file_of("phrases.txt"))


@cache
def lexicon() -> Tables:
    """Return every table of nouns."""
    tables: dict[str, Nouns] = {}
    for name in ("things", "nature", "places", "seasons"):
        tables |= read_tables(file_of(f"{name}.txt"))
    for (table, part), other in _LINKS.items():
        by_name = {noun.text: noun for noun in tables[other]}
        tables[table] = tuple(
            Noun(noun.text, parts={**noun.parts, part: tuple(by_name[each.text] for each in noun.parts[part])})
            for noun in tables[table]
        )
    tables["season"] = tuple(map(_season, tables["season"]))
    tables["autumn"] = _some(tables["season"], ", ".join(noun.text for noun in tables["autumn"]))
    # Birds without a place are seen in the wild, and birds that eat fish are seen by the water.
    tables["bird"] = tuple(Noun(bird.text, parts={"haunt": tables["wild"], **bird.parts}) for bird in tables["bird"])
    tables["village"] = tuple(Noun(a.text + b.text) for a in tables["beginning"] for b in tables["ending"])
    return tables | _people()


def _season(noun: Noun) -> Noun:
    """Return the season with the all-day weather added to its mornings and afternoons.

    A smell has the key of its flower, so that no document uses both.
    """
    flowers = [flower.text for flower in noun.parts["flower"]]
    smells = (
        Noun(air.text, key=next((flower for flower in flowers if air.text.startswith(flower)), ""))
        for air in noun.parts["air"]
    )
    hours = {hour: noun.parts["day"] + noun.parts[hour] for hour in ("early", "late")}
    return Noun(noun.text, parts={**noun.parts, **hours, "air": tuple(smells)})


# -- people -----------------------------------------------------------------------------------------------------------

_FAMILY_WORDS = ("water", "dusk", "feast", "mother", "father", "forefather")
_KIN = ("kin", "parent", "grand", "aunt")


@cache
def communities() -> dict[str, dict[str, str]]:
    """Return the entries of ``people.txt`` for each community, by name."""
    _, *parts = re.split(r"^\[(\w+)\]$", file_of("people.txt"), flags=re.MULTILINE)
    return {name: entries(text) for name, text in zip(parts[::2], parts[1::2], strict=True)}


def _people() -> dict[str, Nouns]:
    return {
        "child": tuple(_children()),
        "neighbour": tuple(_grown("man", "woman", after="title")),
        "citizen": tuple(_grown("man", "woman", after="family")),
        "grown": tuple(_grown("man", "woman")),
        # Words for rowing, casting nets, steering and driving.
        "man": tuple(_grown("man")),
        "townsman": tuple(_grown("man", after="family")),
        "peer": (Noun("তুই", "তুই"), Noun("তুমি", "তুমি")),
    }


def _family_words(community: Mapping[str, str], names: tuple[str, ...]) -> dict[str, Nouns]:
    """Return a community's words by part; all but the first three denote people."""
    return {name: nouns(community[name], None if name in _FAMILY_WORDS[:3] else "তিনি") for name in names}


def _children() -> Iterator[Noun]:
    for community in communities().values():
        parts = {**_family_words(community, _FAMILY_WORDS + _KIN), "sibling": nouns("ছোট ভাই, ছোট বোন", "সে")}
        yield from (Noun(name, "সে", parts) for name in listed(community["child"]))


def _grown(*kinds: str, after: str = "") -> Iterator[Noun]:
    """Yield adults by name, optionally followed by a title or a family name."""
    for community in communities().values():
        words = _family_words(community, _FAMILY_WORDS)
        for kind in kinds:
            for name in listed(community.get(kind, "")):
                for more in listed(community[f"{kind}_{after}"]) if after else [""]:
                    yield Noun(f"{name} {more}".strip(), "তিনি", words, key=name)
