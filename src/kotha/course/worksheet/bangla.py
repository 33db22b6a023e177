"""A sheet in Bangla: its titles, its remarks and what it shows, said again.

Names of matrices (Q, scores, weights) and formulas stay as they are: the cells of the arithmetic are called by them.
Titles are put together from few phrases, so each phrase is translated where it stands; a test finds whatever is left.
"""

import json
import re
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path

from kotha.course.worksheet.sheet import Sheet
from kotha.i18n.numbers import bangla_digits

_FILE = Path(__file__).with_name("phrases.json")
_NUMBERED = re.compile(r"^(token|place) (\d+)$")
_CALLED = {"token": "টোকেন", "place": "অবস্থান", "speed": "গতি"}


def in_bangla(sheet: Sheet) -> Sheet:
    """The same sheet for readers of Bangla."""
    steps = {
        name: replace(
            step,
            title=said(step.title),
            rows=tuple(map(_label, step.rows)),
            columns=tuple(map(_label, step.columns)),
        )
        for name, step in sheet.steps.items()
    }
    return replace(
        sheet,
        steps=steps,
        tokens=tuple(map(_label, sheet.tokens)),
        key_tokens=tuple(map(_label, sheet.key_tokens)),
        heading=said(sheet.title),
        lead=said(sheet.lead),
        remarks=tuple(map(said, sheet.remarks)),
        language="bn",
    )


def said(text: str) -> str:
    """A title, a remark or a lead in Bangla.

    >>> said("masked = scores, −∞ where the mask is 0")
    'masked = scores, মাস্কে 0 থাকলে −∞'
    """
    for pattern, spoken in _phrases():
        text = pattern.sub(spoken, text)
    return text


@cache
def _phrases() -> list[tuple[re.Pattern[str], str | Callable[[re.Match[str]], str]]]:
    found = json.loads(_FILE.read_text(encoding="utf-8"))
    return [(re.compile(pattern), spoken) for pattern, spoken in found]


def _label(text: str) -> str:
    """What a row or column is called; a word of the text stays."""
    if numbered := _NUMBERED.match(text):
        return f"{_CALLED[numbered[1]]} {bangla_digits(numbered[2])}"
    return _CALLED.get(text, text)
