"""What the terminal says, in the reader's language: ``--language``, or else ``KOTHA_LANGUAGE``, or else English.

Commands and the rooms below them speak English where they stand. For who reads Bangla, a sentence is known again by its
form, as the studio does it with what the server says: ``words/*.json`` holds each form in both languages by a key, with
names for what is filled in. So the errors of every room are told in Bangla though no room knows of it, English loads
nothing, and ``--json`` is what it was. A sentence that has no form stays as it came; what a model or a person wrote
never comes through here.
"""

import json
import os
import re
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

from kotha.wording import LANGUAGES, Language, WrittenNumber, marked, named, plain, settled

FOLDER = Path(__file__).parent / "words"
VARIABLE = "KOTHA_LANGUAGE"
_FLAG = "--language"
# What every command may have to say; beside it each has the words in the file of its own name.
_SHARED = ("errors", "common")
# A command whose work is partly that of others says what they say.
_OTHERS = {"train": ("evaluate",), "demo": ("train", "prepare", "tokenizer"), "adapt": ("train", "evaluate")}
# What the studio says too, in forms that it has: refusals to every command, and a room's words to one command.
_OF_THE_STUDIO = {"plan": "plan", "inside": "heads"}
_NAME = re.compile(r"\{(\w+)\}")
# What may be a sentence within the sentence; everything else that is filled in is a name, and names stay.
_PHRASES = {"nearest", "advice", "what", "why", "where", "kind", "rest"}
_LISTS = {"figures"}  # such phrases, with commas between
_UNCOUNTED = re.compile("(কোটি|লাখ)টি")  # a large count takes no ending of its own
_LARGE = {"million": 1e6, "billion": 1e9}
# A number, by itself or of something: 8,192, 3.2 GB, 41 minutes, 58 %.
_COUNT = r"[-−+]?\d[\d,.]*(?:e[-+]?\d+)?(?: ?%| [A-Za-z]+)?"
_FIGURE = re.compile(r"[-−+]?\d[\d,]*(?:\.\d+)?(?: ?%)?")


class _Form(NamedTuple):
    """A sentence of the catalogue."""

    english: str
    bangla: str
    of_the_studio: bool = False

    @property
    def parts(self) -> list[str]:
        return _NAME.split(self.english)[::2]


class _Speech:
    """In which language the command at work speaks, and whose words it has."""

    language: Language = "en"
    command: str = ""


def asked_language(words: Sequence[str]) -> Language:
    """The language of a command line; a wrong one is for the command to refuse.

    >>> asked_language(["plan", "--language", "bn"]), asked_language(["plan", "--language=bn"])
    ('bn', 'bn')
    """
    asked = os.environ.get(VARIABLE, "")
    words = () if list(words[:2]) == ["corpus", "inspect"] else words  # there the flag names the corpus's language
    for word, following in pairwise([*words, ""]):
        name, equals, value = word.partition("=")
        if name == _FLAG:
            asked = value if equals else following
    return next((language for language in LANGUAGES if language == asked), "en")


@contextmanager
def speaking(words: Sequence[str]) -> Iterator[None]:
    """While a command line is at work: its language, and the words of its command."""
    before = _Speech.language, _Speech.command
    _Speech.language = asked_language(words)
    _Speech.command = next((word for word in words if not word.startswith("-")), "")
    try:
        yield
    finally:
        _Speech.language, _Speech.command = before


def spoken_language() -> Language:
    """The language of the command at work."""
    return _Speech.language


def said(text: str) -> str:
    """A sentence in the reader's language; one that has no form there stays as it came.

    >>> said("there is no command 'trian'; did you mean 'train'?")
    "there is no command 'trian'; did you mean 'train'?"
    """
    if _Speech.language == "en" or not text.strip():
        return text
    found = _marked(text, _rooms(_Speech.command))
    return text if found is None else _UNCOUNTED.sub(r"\1", settled(found))


def tell(text: str) -> None:
    """A remark on stderr, in the reader's language."""
    print(f"kotha: {said(text)}", file=sys.stderr, flush=True)


def _marked(text: str, rooms: tuple[str, ...]) -> str | None:
    """The Bangla of a sentence, its numbers still marked; None where the catalogue has no form for it."""
    body = text.strip()
    for form in _forms(rooms):
        if all(part in body for part in form.parts) and (found := _pattern(form.english).fullmatch(body)):
            values = {name: _value(form, name, part, rooms) for name, part in found.groupdict().items()}
            start = text[: len(text) - len(text.lstrip())]
            return start + marked(form.bangla, values) + text[len(text.rstrip()) :]
    return None


def _value(form: _Form, name: str, text: str, rooms: tuple[str, ...]) -> "str | WrittenNumber":
    """What was filled in: a number where its name begins with n, a sentence within the sentence, or a name.

    The studio takes for a number whatever looks like one; where its sentences are said, so is it here.
    """
    counts = _counts(name) or (form.of_the_studio and text[:1].isdigit())
    if counts and _FIGURE.fullmatch(text):
        return WrittenNumber(text)
    if name in _LISTS:
        return ", ".join(_marked(each, rooms) or each for each in text.split(", "))
    number, _, unit = text.partition(" ")
    if counts and unit in _LARGE:
        return _by_crore(float(number) * _LARGE[unit])
    if not counts and name not in _PHRASES:
        return named(text)
    found = _marked(text, rooms) if text.strip() else None
    return text if found is None else found


def _by_crore(value: float) -> str:
    """A large count as Bangla says it, its number still marked: 24,600,000 is ২.৪৬ কোটি."""
    unit, name = (1e7, "কোটি") if value >= 1e7 else (1e5, "লাখ")
    amount = f"{value / unit:.3g}" if value < 1000 * unit else f"{value / unit:,.0f}"
    return marked(f"{{n}} {name}", {"n": WrittenNumber(amount)})


def _counts(name: str) -> bool:
    return name == "n" or name.startswith("n_")


@cache
def _rooms(command: str) -> tuple[str, ...]:
    wanted = (command, *_OTHERS.get(command, ()))
    return (*(room for room in wanted if (FOLDER / f"{room}.json").is_file()), *_SHARED)


def large(text: str) -> str:
    """A large count of a table, as the reader's language says it; its digits stay, and so does any other cell."""
    number, _, unit = text.partition(" ")
    if _Speech.language == "en" or unit not in _LARGE:
        return text
    return plain(_by_crore(float(number) * _LARGE[unit]))


@cache
def _forms(rooms: tuple[str, ...]) -> list[_Form]:
    """The forms of some files: what is added to a sentence first, then those that say most of one."""
    entries: dict[str, dict[str, str]] = {}
    for room in rooms:
        found = json.loads((FOLDER / f"{room}.json").read_text(encoding="utf-8"))
        entries |= {f"{room}.{key}": entry for key, entry in found.items()}
    forms = [_Form(entry["en"], entry["bn"]) for entry in entries.values()]
    from kotha.studio.files import words as studio_words

    for room in ("told", *(_OF_THE_STUDIO[command] for command in rooms if command in _OF_THE_STUDIO)):
        forms += [_Form(entry["en"], entry["bn"], of_the_studio=True) for entry in studio_words(room).values()]
    return sorted(forms, key=lambda form: (not form.english.startswith("{rest}"), -sum(map(len, form.parts))))


@cache
def _pattern(english: str) -> re.Pattern[str]:
    pieces = _NAME.split(english)
    known: set[str] = set()
    for place in range(1, len(pieces), 2):
        name = pieces[place]
        one = _COUNT if _counts(name) else ".*?"
        pieces[place] = f"(?P={name})" if name in known else f"(?P<{name}>{one})"
        known.add(name)
    pieces[::2] = map(re.escape, pieces[::2])
    return re.compile("".join(pieces), re.DOTALL)
