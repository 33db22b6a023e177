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

from kotha.i18n.catalogue import Messenger, catalogue, translate
from kotha.i18n.numbers import LANGUAGES, Language
from kotha.i18n.wording import TIMES, WrittenNumber, marked, named, plain, settled
from kotha.report.page import pages_open_in
from kotha.storage.status import is_file

FOLDER = Path(__file__).parent / "words"
VARIABLE = "KOTHA_LANGUAGE"
_FLAG = "--language"
# What every command may have to say; beside it each has the words in the file of its own name.
_SHARED = ("errors", "common")
# A command whose work is partly that of others says what they say.
_OTHERS = {"train": ("evaluate",), "demo": ("train", "prepare", "tokenizer"), "adapt": ("train", "evaluate")}
# What a page may have to say, whichever command writes it.
PAGES = ("pages", "demo", "evaluate", "tokenizer", "prepare", "sweep", *_SHARED)
# What the studio says too, in forms that it has: refusals to every command, and a room's words to one command.
_OF_THE_STUDIO = {"plan": "plan", "inside": "heads"}
_NAME = re.compile(r"\{(\w+)\}")
# What may be a sentence within the sentence; everything else that is filled in is a name, and names stay.
_PHRASES = {"nearest", "advice", "what", "why", "where", "kind", "unit", "rest"}
_LISTS = {"figures"}  # such phrases, with commas between
_UNCOUNTED = re.compile("(কোটি|লাখ)টি")  # a large count takes no ending of its own
_LARGE = {"million": 1e6, "billion": 1e9}
_UNITS = {"byte": "বাইট", **{name: bangla for name, (bangla, *_) in TIMES.items()}}
_ON_AXES = {"k": 1e3, "M": 1e6, "G": 1e9}
# A number, by itself or of something: 8,192, 3.2 GB, 41 minutes, 58 %.
_COUNT = r"[-−+]?\d[\d,.]*(?:e[-+]?\d+)?(?: ?%| [A-Za-z]+)?"
_AXIS = r"[-−]?\d[\d,.]*(?:e[-+]?\d+)?[%kMG]?"  # as a chart has it
_ROUNDED = re.compile(r"\d(?:\.\d+)?e\+0[2-5]")  # a number that was rounded, though not too large to be read: 5.1e+02
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
        with pages_open_in(_Speech.language):
            yield
    finally:
        _Speech.language, _Speech.command = before


def spoken_language() -> Language:
    """The language of the command at work."""
    return _Speech.language


def said(text: "Messenger | str") -> str:
    """A message in the reader's language; a string that is not in the catalogue stays as it came.

    Finished English sentences are still recognised by their form here, until every one of them is a message.

    >>> said("there is no command 'trian'; did you mean 'train'?")
    "there is no command 'trian'; did you mean 'train'?"
    """
    if not isinstance(text, str):
        return translate(text, _Speech.language, flags=True)
    if _Speech.language == "en" or not text.strip():
        return text
    if text in catalogue(_Speech.language):
        return translate(text, _Speech.language)
    found = _marked(text, _rooms(_Speech.command))
    return text if found is None else _UNCOUNTED.sub(r"\1", settled(found))


def tell(text: "Messenger | str") -> None:
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
    if _on_axis(name):
        shortened = _ON_AXES.get(text[-1:])
        return _by_crore(float(text[:-1]) * shortened, digits=6) if shortened else WrittenNumber(text)
    if counts and _FIGURE.fullmatch(text):
        return WrittenNumber(text)
    if counts and _ROUNDED.fullmatch(text):
        return WrittenNumber(f"{float(text):,.0f}")
    if name in _LISTS:
        return ", ".join(_marked(each, rooms) or each for each in text.split(", "))
    number, _, unit = text.partition(" ")
    if counts and unit in _LARGE:
        return _by_crore(float(number) * _LARGE[unit])
    if not counts and name not in _PHRASES:
        return named(text)
    found = _marked(text, rooms) if text.strip() else None
    return text if found is None else found


def _by_crore(value: float, digits: int = 3) -> str:
    """A large count as Bangla says it, its number still marked: 24,600,000 is ২.৪৬ কোটি."""
    unit, name = (1e7, "কোটি") if value >= 1e7 else (1e5, "লাখ") if value >= 1e5 else (1e3, "হাজার")
    amount = f"{value / unit:.{digits}g}" if value < 1000 * unit else f"{value / unit:,.0f}"
    return marked(f"{{n}} {name}", {"n": WrittenNumber(amount)})


def _counts(name: str) -> bool:
    return name == "n" or name.startswith("n_")


def _on_axis(name: str) -> bool:
    return name in ("x", "y") or name.startswith(("x_", "y_"))


@cache
def _rooms(command: str) -> tuple[str, ...]:
    wanted = (command, *_OTHERS.get(command, ()))
    return (*(room for room in wanted if is_file(FOLDER / f"{room}.json")), *_SHARED)


def measured(text: str) -> str:
    """An amount in a table, a unit that is a word in the reader's language; its digits stay, as everywhere there."""
    number, _, unit = text.partition(" ")
    if _Speech.language == "en" or not _FIGURE.fullmatch(number):
        return text
    if unit in _LARGE:
        return plain(_by_crore(float(number.replace(",", "")) * _LARGE[unit]))
    one = unit.removesuffix("s")
    return f"{number} {_UNITS[one]}" if one in _UNITS else text


@cache
def _forms(rooms: tuple[str, ...]) -> list[_Form]:
    """The forms of some files: what is added to a sentence first, then those that say most of one."""
    entries: dict[str, dict[str, str]] = {}
    for room in rooms:
        found = json.loads((FOLDER / f"{room}.json").read_text(encoding="utf-8"))
        entries |= {f"{room}.{key}": entry for key, entry in found.items()}
    forms = [_Form(entry["en"], entry["bn"]) for entry in entries.values()]
    from kotha.report.built import words as studio_words

    for room in ("told", *(_OF_THE_STUDIO[command] for command in rooms if command in _OF_THE_STUDIO)):
        forms += [_Form(entry["en"], entry["bn"], of_the_studio=True) for entry in studio_words(room).values()]
    return sorted(forms, key=lambda form: (not form.english.startswith("{rest}"), -sum(map(len, form.parts))))


@cache
def _pattern(english: str) -> re.Pattern[str]:
    pieces = _NAME.split(english)
    known: set[str] = set()
    for place in range(1, len(pieces), 2):
        name = pieces[place]
        one = _COUNT if _counts(name) else _AXIS if _on_axis(name) else ".*?"
        pieces[place] = f"(?P={name})" if name in known else f"(?P<{name}>{one})"
        known.add(name)
    pieces[::2] = map(re.escape, pieces[::2])
    return re.compile("".join(pieces), re.DOTALL)
