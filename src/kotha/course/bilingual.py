"""Texts of the course's data files: both languages side by side, or a line of arithmetic for both."""

from collections.abc import Mapping
from string import Formatter
from typing import Any

from kotha.i18n.message import Bilingual


def said(told: str | Mapping[str, str], values: Mapping[str, Any] | None = None) -> Bilingual:
    """A text of a file, with the values that it names.

    >>> str(said({"en": "{n} rows", "bn": "{n}টি সারি"}, {"n": 3, "more": 4}))
    '3 rows'
    """
    if isinstance(told, str):
        told = {"line": told}
    english, bangla = (told.get(language, told.get("line", "")) for language in ("en", "bn"))
    named = [name.partition(".")[0] for text in (english, bangla) for _, name, _, _ in Formatter().parse(text) if name]
    return Bilingual(english, bangla, **{name: (values or {})[name] for name in named})
