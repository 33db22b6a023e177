"""Parse a document from its page: its blocks, and its complete text in either language."""

import json
import re
from collections.abc import Iterator
from typing import Any

from kotha.i18n.catalogue import translate
from kotha.i18n.message import Message, Option, Plural
from kotha.i18n.numbers import Count, Duration, Language, Size

AMOUNTS = {"size": Size, "duration": Duration, "count": Count}
_DATA = re.compile(r'<script type="application/json" id="data">(.*?)</script>', re.DOTALL)


class Shown:
    """A single-file page."""

    def __init__(self, html: str) -> None:
        self.html = html
        self.language = re.findall(r'<html lang="(..)">', html)
        result = json.loads(_DATA.findall(html)[0])
        self.data: dict[str, Any] = result["data"]
        self.bangla: dict[str, str] = result["bangla"]

    def blocks(self, kind: str) -> list[dict[str, Any]]:
        """All blocks of one kind, from top to bottom."""
        return [each for each in _dicts(self.data["blocks"]) if each.get("kind") == kind]

    def headings(self, language: Language = "en") -> list[str]:
        """The headings of the sections."""
        return [text(block["text"], language) for block in self.blocks("heading")]

    def table(self, place: int = 0, language: Language = "en") -> list[list[str]]:
        """The cells of a table."""
        return [[text(cell, language) for cell in row] for row in self.blocks("table")[place]["cells"]]

    def words(self, language: Language = "en") -> list[str]:
        """All messages, outermost first, with their values filled in."""
        return [text(each, language) for each in _messages(self.data)]


def text(told: Any, language: Language = "en") -> str:
    """Return a string, a message, or several sentences as the reader sees them."""
    if isinstance(told, list):
        return " ".join(text(each, language) for each in told)
    return told if isinstance(told, str) else translate(message(told), language)


def message(told: dict[str, Any]) -> Message:
    """Restore a message that ``to_json`` wrote."""
    values = {name: _value(each) for name, each in told["values"].items()}
    return Plural(told["one"], told["template"], **values) if "one" in told else Message(told["template"], **values)


def _value(told: Any) -> Any:
    if isinstance(told, list):
        return [_value(each) for each in told]
    if not isinstance(told, dict):
        return told
    if "template" in told:
        return message(told)
    if "option" in told:
        return Option(told["option"], told["value"])
    ((name, amount),) = told.items()
    return AMOUNTS[name](amount)


def _dicts(data: Any) -> Iterator[dict[str, Any]]:
    if isinstance(data, dict):
        yield data
    for each in data.values() if isinstance(data, dict) else data if isinstance(data, list) else ():
        yield from _dicts(each)


def _messages(data: Any) -> Iterator[dict[str, Any]]:
    if isinstance(data, dict) and "template" in data:
        yield data
        return
    for each in data.values() if isinstance(data, dict) else data if isinstance(data, list) else ():
        yield from _messages(each)
