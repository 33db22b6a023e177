"""Formulas of the question file: arithmetic and comparisons of a setting's named values, and nothing else."""

import ast
import math
import operator
from collections.abc import Callable, Mapping
from typing import Any

_OPERATORS: dict[type[ast.operator | ast.cmpop], Callable[[Any, Any], Any]] = {
    **{ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.Div: operator.truediv},
    **{ast.Lt: operator.lt, ast.LtE: operator.le, ast.Gt: operator.gt, ast.GtE: operator.ge},
    **{ast.Eq: operator.eq, ast.NotEq: operator.ne},
}
_FUNCTIONS = {"cos": math.cos, "radians": math.radians}


def calculate(formula: str, values: Mapping[str, Any]) -> Any:
    """What a formula comes to; a name by itself may stand for anything.

    >>> calculate("2 * width + 1", {"width": 4}), calculate("not width > 3", {"width": 4})
    (9, False)
    """

    def of(node: ast.expr) -> Any:
        match node:
            case ast.Constant(value=int() | float() as number):
                return number
            case ast.Name(id="pi"):
                return math.pi
            case ast.Name(id=name):
                return values[name]
            case ast.BinOp(left=left, op=does, right=right):
                return _OPERATORS[type(does)](of(left), of(right))
            case ast.Compare(left=left, ops=[compares], comparators=[right]):
                return _OPERATORS[type(compares)](of(left), of(right))
            case ast.UnaryOp(op=ast.Not(), operand=operand):
                return not of(operand)
            case ast.Call(func=ast.Name(id=name), args=[argument]):
                return _FUNCTIONS[name](of(argument))
        raise AssertionError(f"{formula!r} is no formula")

    return of(ast.parse(formula, mode="eval").body)
