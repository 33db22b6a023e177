"""Translate messages with the catalogues in ``bn/``, which map English templates to Bangla templates.

There is one JSON file per package, shared by the terminal, the server, the pages and the studio. A template without an
entry stays in English. Numbers in Bangla templates are written in Bangla digits, unless the sentence contains a
formula, a shape or code.
"""

import json
import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from string import Formatter
from typing import Any, Protocol

from kotha.i18n.message import Bilingual, Option, Plural, english
from kotha.i18n.numbers import Amount, Language, in_words, number

FOLDER = Path(__file__).parent
# A sentence ends at a punctuation mark or at the end of the line. Marks inside a field (``{name!r}``) do not count, and
# a part of a sentence may begin with a mark.
_SENTENCE = re.compile(r"(?:\{\{|\{[^{}]*\}|[^।?!\n{])*[।?!\n]+\s*|(?:\{\{|\{[^{}]*\}|[^।?!\n{])+")
# Matches in a sentence that contains code, an operator, a shape or a power of ten.
_FORMULA = re.compile(r"[`=×/^√→[\]]|\(\{\w+[^}]*\}, |\(\d[\d,]*, |\de[-+]?\d")


class Messenger(Protocol):
    """A template with its values: a `Message` or a `KothaError`."""

    @property
    def template(self) -> str:
        """The English template, with the names of the values in braces."""

    @property
    def values(self) -> Mapping[str, Any]:
        """The values by name."""


def translate(message: "Messenger | str", language: Language = "en", *, flags: bool = False) -> str:
    """Translate a message and fill in its values; ``flags`` names arguments as command-line options.

    >>> from kotha.i18n.message import Message
    >>> translate(Message("replace it with {overwrite}", overwrite=Option("overwrite", True)), flags=True)
    'replace it with --overwrite'
    """
    if isinstance(message, str):
        return catalogue(language).get(message, message)
    template, values = message.template, message.values
    if isinstance(message, Plural) and language == "en" and values["n"] == 1:
        template = message.one
    if language == "bn" and isinstance(message, Bilingual):
        template = message.bangla
    else:
        template = catalogue(language).get(template, template)
    if not values:
        return template
    if language == "en" and not flags:
        return english(template, values)
    if language == "en":
        return _Filling(language, flags, formula=True).vformat(template, (), values)
    parts = (found[0] for found in _SENTENCE.finditer(template))
    return "".join(
        _Filling(language, flags, formula=bool(_FORMULA.search(part))).vformat(part, (), values) for part in parts
    )


@cache
def catalogue(language: Language) -> dict[str, str]:
    """Return the templates of a language, keyed by the English template; empty for English."""
    found: dict[str, str] = {}
    if language != "en":
        for file in sorted(file for file in (FOLDER / language).iterdir() if file.suffix == ".json"):
            found |= json.loads(file.read_text(encoding="utf-8"))
    return found


class _Filling(Formatter):
    """Formats values in a language."""

    def __init__(self, language: Language, flags: bool, formula: bool) -> None:
        self.language, self.flags, self.formula = language, flags, formula

    def format_field(self, value: Any, spec: str) -> str:
        if isinstance(value, list | tuple):
            return ", ".join(self.format_field(each, spec) for each in value)
        if hasattr(value, "template"):
            return format(translate(value, self.language, flags=self.flags), spec)
        if isinstance(value, Option):
            return value.flag if self.flags else str(value)
        if isinstance(value, Amount):
            return in_words(value, self.language)
        if isinstance(value, int | float) and not isinstance(value, bool):
            return number(value, spec, "en" if self.formula else self.language)
        return str(super().format_field(value, spec))


def to_json(message: "Messenger | str") -> dict[str, Any]:
    """Convert a message for other programs, such as the studio: the English text, the template and the values.

    >>> from kotha.i18n.message import Message
    >>> to_json(Message("{n} of {what}", n=3, what=Option("steps")))["values"]
    {'n': 3, 'what': {'option': 'steps', 'value': None}}
    """
    if isinstance(message, str):
        return {"text": message, "template": message, "values": {}}
    values = {name: _value_to_json(value) for name, value in message.values.items()}
    found = {"text": str(message), "template": message.template, "values": values}
    if isinstance(message, Bilingual):
        return {**found, "bn": message.bangla}
    return {**found, "one": message.one} if isinstance(message, Plural) else found


def _value_to_json(value: Any) -> Any:
    if isinstance(value, list | tuple):
        return [_value_to_json(each) for each in value]
    if hasattr(value, "template"):
        return to_json(value)
    if isinstance(value, Option):
        return {"option": value.name, "value": None if value.value is ... else value.value}
    if isinstance(value, Amount):
        return {type(value).__name__.lower(): value.value}
    return value if isinstance(value, int | float | bool | None | str) else str(value)
