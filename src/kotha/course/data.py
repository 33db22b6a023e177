"""The course's data files: formulas, and texts in both languages (a line of arithmetic is the same in both)."""

import ast
import json
import math
import operator
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from string import Formatter
from typing import Any

import numpy as np

from kotha.i18n.catalogue import translate
from kotha.i18n.message import Bilingual, Text
from kotha.i18n.numbers import LANGUAGES

_OPERATORS: dict[type[ast.operator | ast.cmpop | ast.unaryop], Callable[..., Any]] = {
    **{ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.Div: operator.truediv},
    **{ast.Lt: operator.lt, ast.LtE: operator.le, ast.Gt: operator.gt, ast.GtE: operator.ge, ast.Pow: operator.pow},
    **{ast.Eq: operator.eq, ast.NotEq: operator.ne, ast.FloorDiv: operator.floordiv},
    **{ast.Not: operator.not_, ast.USub: operator.neg, ast.UAdd: operator.pos},
}
_NAMES: dict[str, Any] = {
    **{"cos": math.cos, "radians": math.radians, "sqrt": math.sqrt, "exp": math.exp},
    **{"all": np.all, "mean": np.mean, "max": np.max, "min": np.min, "pi": math.pi, "e": math.e},
}


@cache
def data_file(path: Path) -> dict[str, Any]:
    """Return the contents of a JSON file in this package (cached)."""
    data: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return data


def bilingual(entry: str | Mapping[str, str], values: Mapping[str, Any] | None = None) -> Bilingual:
    """Return a text from a data file as a message, with the values that it uses.

    >>> str(bilingual({"en": "{n} rows", "bn": "{n}টি সারি"}, {"n": 3, "more": 4}))
    '3 rows'
    """
    if isinstance(entry, str):
        entry = {"line": entry}
    english, bangla = (entry.get(language, entry.get("line", "")) for language in ("en", "bn"))
    named = [name.partition(".")[0] for text in (english, bangla) for _, name, _, _ in Formatter().parse(text) if name]
    return Bilingual(english, bangla, **{name: (values or {})[name] for name in named})


def both(text: Text) -> dict[str, str]:
    """Return a text in each language, for JSON."""
    return {language: translate(text, language) for language in LANGUAGES}


def calculate(formula: str, values: Mapping[str, Any]) -> Any:
    """Evaluate a formula; if it is only a name, its value may be of any type.

    >>> calculate("2 * width + 1", {"width": 4}), calculate("not width > 3", {"width": 4})
    (9, False)
    """

    def of(node: ast.expr) -> Any:
        match node:
            case ast.Constant(value=int() | float() as number):
                return number
            case ast.Name(id=name):
                return values[name] if name in values else _NAMES[name]
            case ast.BinOp(left=left, op=op, right=right) | ast.Compare(left=left, ops=[op], comparators=[right]):
                return _OPERATORS[type(op)](of(left), of(right))
            case ast.UnaryOp(op=op, operand=operand):
                return _OPERATORS[type(op)](of(operand))
            case ast.Attribute(value=value, attr=name):
                return getattr(of(value), name)
            case ast.Call(func=ast.Name(id=name), args=[argument]):
                return _NAMES[name](of(argument))
        raise ValueError(f"{formula!r} is not a formula")

    return of(ast.parse(formula, mode="eval").body)
