"""A short repr for the dataclasses that the public API returns."""

import reprlib
from collections.abc import Collection
from dataclasses import MISSING, fields
from typing import Any

_MOST_CHARACTERS = 120
_MOST_ITEMS = 3
_VALUES = reprlib.Repr()
_VALUES.maxstring = _VALUES.maxother = 60


class ShortRepr:
    """The base class of dataclasses, defined with ``repr=False``, whose repr is one short line.

    Fields with their default values and counts of 0 are omitted, long values are shortened, and the first fields are
    shown.

    >>> from dataclasses import dataclass
    >>> @dataclass(repr=False)
    ... class Score(ShortRepr):
    ...     bits: float
    ...     hits: list[int]
    ...     problems: int = 0
    >>> Score(1.8352941, [1, 2, 3, 4])
    Score(bits=1.835, hits=<4 items>)
    """

    def __repr__(self) -> str:
        parts: list[str] = []
        for each in fields(self):  # type: ignore[arg-type]
            value = getattr(self, each.name)
            if not each.repr or _is_default(value, each):
                continue
            if sum(map(len, parts)) > _MOST_CHARACTERS:
                parts.append("…")
                break
            parts.append(f"{each.name}={_shown(value)}")
        return f"{type(self).__name__}({', '.join(parts)})"


def _is_default(value: Any, field: Any) -> bool:
    if field.default_factory is not MISSING:
        return bool(value == field.default_factory())
    return value is field.default or (type(value) is int and value == 0) or value in (None, "")


def _shown(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.4g}"
    text = " ".join(_VALUES.repr(str(value) if hasattr(value, "template") else value).split())
    if not isinstance(value, Collection) or isinstance(value, str):
        return text
    return f"<{len(value)} items>" if len(value) > _MOST_ITEMS or len(text) > _VALUES.maxstring else text
