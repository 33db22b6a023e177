"""Arithmetic that is read: formulas of the question file, and the sums that a student types instead of a result.

``1.0×0.2 + 0.5×0.1``, ``0.37/1.414``, ``e^0.5 / (e^0.5 + 1)``: whoever types the way has given the number exactly. What
is no sum, or only half of one, is not guessed at: None. The page reads the same by ``web/src/math/sums.ts``; one list
of cases holds both.
"""

import ast
import json
import math
import operator
import re
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from kotha.i18n.numbers import ascii_digits

_OPERATORS: dict[type[ast.operator | ast.cmpop | ast.unaryop], Callable[..., Any]] = {
    **{ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.Div: operator.truediv},
    **{ast.Lt: operator.lt, ast.LtE: operator.le, ast.Gt: operator.gt, ast.GtE: operator.ge, ast.Pow: operator.pow},
    **{ast.Eq: operator.eq, ast.NotEq: operator.ne},
    **{ast.Not: operator.not_, ast.USub: operator.neg, ast.UAdd: operator.pos},
}
_FUNCTIONS: dict[str, Callable[[Any], Any]] = {
    **{"cos": math.cos, "radians": math.radians, "sqrt": math.sqrt, "exp": math.exp},
    **{"all": np.all, "mean": np.mean, "max": np.max, "min": np.min},
}
_CONSTANTS = {"pi": math.pi, "e": math.e}
FILE = Path(__file__).with_name("questions.json")
_NUMBER = r"\d+\.?\d*|\.\d+"
_PIECE = re.compile(rf"\s*({_NUMBER}|[-+*/^()√e])")
_SPELLED = ((re.compile(r"\bexp\s*(?=\()"), "e^"), (re.compile(r"\bsqrt\b"), "√"), (re.compile(r"\*\*"), "^"))
_SIGNS = str.maketrans({"−": "-", "–": "-", "×": "*", "·": "*", "x": "*", "÷": "/", "[": "(", "]": ")"})
# A number, or one with a power of ten: its digits say how exactly it is meant, so it is read as a number.
_BARE = re.compile(rf"[-+]?\s*(?:{_NUMBER})(?:\s*\*\s*10\s*\^\s*\(?[-+]?\d+\)?)?")
_ROOTS = re.compile(r"((?:√ )+)(e|[\d.e+-]+)")
_LONGEST, _TOO_DEEP = 400, re.compile(r"(?:[-+(√]\s*){41}")


@cache
def question_file() -> dict[str, Any]:
    """The questions, the values that they name, and the words for units."""
    told: dict[str, Any] = json.loads(FILE.read_text(encoding="utf-8"))
    return told


def calculate(formula: str, values: Mapping[str, Any]) -> Any:
    """What a formula comes to; a name by itself may stand for anything.

    >>> calculate("2 * width + 1", {"width": 4}), calculate("not width > 3", {"width": 4})
    (9, False)
    """

    def of(node: ast.expr) -> Any:
        match node:
            case ast.Constant(value=int() | float() as number):
                return number
            case ast.Name(id=name):
                return values[name] if name in values else _CONSTANTS[name]
            case ast.BinOp(left=left, op=does, right=right) | ast.Compare(left=left, ops=[does], comparators=[right]):
                return _OPERATORS[type(does)](of(left), of(right))
            case ast.UnaryOp(op=does, operand=operand):
                return _OPERATORS[type(does)](of(operand))
            case ast.Attribute(value=value, attr=name):
                return getattr(of(value), name)
            case ast.Call(func=ast.Name(id=name), args=[argument]):
                return _FUNCTIONS[name](of(argument))
        raise ValueError(f"{formula!r} is no formula")

    return of(ast.parse(formula, mode="eval").body)


def worked_sum(text: str) -> float | None:
    """What a typed sum comes to; None for a bare number and for what is no sum.

    >>> worked_sum("১.০×০.২ + ০.৫×০.১"), worked_sum("√2 + e^0"), worked_sum("0.25"), worked_sum("2 +")
    (0.25, 2.414213562373095, None, None)
    """
    plain = ascii_digits(text).lower().rpartition("=")[2]
    for spelled, sign in _SPELLED:
        plain = spelled.sub(sign, plain)
    plain = plain.translate(_SIGNS).strip()
    pieces = _PIECE.findall(plain)
    if len(plain) > _LONGEST or not pieces or _BARE.fullmatch(plain) or _PIECE.sub("", plain).strip():
        return None
    if _TOO_DEEP.search(plain):
        return None
    # Spaces keep what is not written together apart: 2e5 is no sum.
    spaced = " ".join(piece if len(piece) == 1 and not piece.isdigit() else repr(float(piece)) for piece in pieces)
    spaced = _ROOTS.sub(lambda found: f"{found[1].replace('√', 'sqrt(')}{found[2]}{')' * found[1].count('√')}", spaced)
    try:
        value = calculate(spaced.replace("√", "sqrt").replace("^", "**"), {})
        return float(value) if math.isfinite(value) else None
    except (ArithmeticError, LookupError, ValueError, TypeError, SyntaxError):  # TypeError: a root of less than 0
        return None
