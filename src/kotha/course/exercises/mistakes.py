"""Diagnosis of mistakes: compute the results of common mistakes, and find the one that gives the typed number.

This module is the counterpart to ``web/src/math/diagnosis.ts`` for a full matrix: a mistake that explains many wrong
cells is more likely than one that explains a single cell. Both modules use the same messages (``wrong.…`` in the
studio's catalogue) and are tested against the same cases (``web/tests/data/mistakes.json``).
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from kotha.course.data import bilingual
from kotha.course.exercises.number_comparison import Expected, Slip, Typed
from kotha.course.worksheet.operations import Array, Matrices, Operation
from kotha.course.worksheet.sheet import Sheet, SheetStep
from kotha.report.built import words

_MOST_NAMED = 2
_SAME = 1e-9
# A mistake: its name, the number it leads to, and further values for its text.
_Way = tuple[str, float] | tuple[str, float, dict[str, Any]]


def diagnose(
    sheet: Sheet, step: SheetStep, typed: Sequence[Typed], cells: Sequence[tuple[int, int]], slack: float = 0.0
) -> list[Slip]:
    """Return at most two mistakes that explain the wrong numbers, best explanation first."""
    found: dict[str, dict[int, Slip]] = {}
    for place, (number, (row, column)) in enumerate(zip(typed, cells, strict=True)):
        for slip in slips_of(sheet, step, row, column):
            if slip.led_to([number], Expected((), slack=slack)):
                found.setdefault(slip.name, {}).setdefault(place, slip)
    chosen: list[Slip] = []
    explained: set[int] = set()
    for fits in sorted(found.values(), key=lambda each: -len(each)):
        if len(chosen) < _MOST_NAMED and fits.keys() - explained:
            chosen.append(next(iter(fits.values())))
            explained |= fits.keys()
    return chosen


def slips_of(sheet: Sheet, step: SheetStep, row: int, column: int) -> list[Slip]:
    """Return the common mistakes for a cell, most likely first, with their texts (``wrong.…``) from the catalogue."""
    operation, truth = step.operation, float(step.values[row, column])
    assert operation is not None, f"{step.name} is given, not worked out"
    cell = {"left": operation.operands[0], "right": operation.operands[-1], "row": row + 1, "column": column + 1}
    own = _of_product if operation.is_product else _of_cell
    ways = (*own(sheet.matrices, operation, row, column), *_of_every(step.values, row, column))
    # Mistakes that lead to the right number are dropped.
    return [
        Slip(name, bilingual(words("hand")[f"wrong.{name}"], {**cell, **(more[0] if more else {})}), (float(value),))
        for name, value, *more in ways
        if not math.isnan(value) and not math.isclose(value, truth, rel_tol=0, abs_tol=_SAME)
    ]


def _of_product(given: Matrices, operation: Operation, row: int, column: int) -> Iterator[_Way]:
    left_name, right_name = operation.operands
    left, right = given[left_name], given[right_name]
    a, b = operation.factors(given, row, column)
    products = a * b
    truth = products.sum()
    for other in _others(given, right_name):
        swapped = replace(operation, operands=(left_name, other)).compute(given)
        yield "otherMatrix", swapped[row, column], {"used": other}
    if operation.kind == "product_by_rows":
        yield "notTurned", _along(a, right[:, column]) if column < right.shape[1] else math.nan
    else:
        yield "rowForColumn", _along(a, right[column]) if column < len(right) else math.nan
    yield "columnForRow", _along(left[:, row], b) if row < left.shape[1] else math.nan
    yield from (("summedColumn", b.sum()), ("summedRow", a.sum()), ("added", (a + b).sum()))
    yield "missing", truth - products[0], {"n": 1}
    yield from (("stopped", products[:k].sum(), {"n": k}) for k in range(1, len(products)))
    yield from (("missing", truth - products[k], {"n": k + 1}) for k in range(1, len(products) - 1))
    yield from (("signOfTerm", truth - 2 * product, {"n": k}) for k, product in enumerate(products, 1))
    yield from (("early", sum(_rounded(product, n) for product in products), {"n": n}) for n in (2, 1))
    if left_name == "weights":
        yield "maskForgotten", (_softmax(given["scores"][row]) * right[:, column]).sum()


def _along(line: Array, other: Array) -> float:
    """Return the product of two lines up to the shorter length, as a student who picked the wrong line would."""
    length = min(len(line), len(other))
    return float((line[:length] * other[:length]).sum())


def _rounded(value: float, decimals: int) -> float:
    return float(f"{value:.{decimals}f}")


def _others(given: Matrices, wanted: str) -> list[str]:
    """Return matrices of the same shape that could be mistaken for the right factor."""
    family = [name for name in given if name.startswith("W_")] if wanted.startswith("W_") else ["Q", "K", "V"]
    return [name for name in family if name != wanted and given[name].shape == given[wanted].shape]


def _of_cell(given: Matrices, operation: Operation, row: int, column: int) -> Iterator[_Way]:
    left, *more = (given[name] for name in operation.operands)
    read = float(left[row, min(column, left.shape[1] - 1)])
    if operation.kind == "over_root":
        width = float(more[0][0, 0])
        yield from (("noRoot", read), ("widthForRoot", read / width), ("timesRoot", read * math.sqrt(width)))
    elif operation.kind == "masked":
        yield ("maskedTooMuch", -math.inf) if more[0][row, column] == 1 else ("maskForgotten", read)
        yield "maskZero", 0.0
    elif operation.kind == "powers" and read == -math.inf:
        score = float(given["scores"][row, column])
        yield from (("maskForgotten", math.exp(score)), ("hiddenOne", 1.0), ("hiddenStays", -math.inf))
    elif operation.kind == "powers":
        yield from (("noE", read), ("minusPower", math.exp(-read)), ("two", 2.0**read), ("ten", 10.0**read))
        yield "timesE", math.e * read
    elif operation.kind == "row_sums":
        masked = given.get("masked", given["scores"])[row]
        yield "maskForgotten", np.exp(given["scores"][row]).sum()
        yield "columnSum", left[:, row].sum()
        yield "noE", masked[~np.isneginf(masked)].sum()
        yield "hiddenOne", np.where(left[row] == 0, 1.0, left[row]).sum()
    elif operation.kind == "shares":
        yield from _of_softmax(given, row, column)


def _softmax(scores: Array) -> Array:
    powers = np.exp(scores)
    shares: Array = powers / powers.sum()
    return shares


def _of_softmax(given: Matrices, row: int, column: int) -> Iterator[_Way]:
    """Yield the mistakes that can occur between the scores and the result of the softmax."""
    powers, masked = given["powers"], given.get("masked", given["scores"])[row]
    hidden = np.isneginf(masked)
    seen, power = masked[~hidden], float(powers[row, column])
    products = np.where(hidden, -math.inf, given["products"][row])
    yield "maskForgotten", _softmax(given["scores"][row])[column]
    yield "softmaxDown", power / powers[:, column].sum()
    yield "noE", 0.0 if hidden[column] else masked[column] / seen.sum()
    yield "notDivided", power
    yield "noRoot", _softmax(products)[column]
    yield "widthForRoot", _softmax(products / given["d_k"][0, 0])[column]
    yield "hiddenStays", -math.inf if hidden[column] else math.nan
    yield "upsideDown", powers[row].sum() / power if power else math.nan
    yield "evenly", 1 / len(seen)
    for n in (2, 1):
        rounded = np.array([score if math.isinf(score) else _rounded(score, n) for score in masked.tolist()])
        yield "earlyScores", _softmax(rounded)[column], {"n": n}


def _of_every(values: Array, row: int, column: int) -> Iterator[_Way]:
    """Yield mistakes possible in any step: sign, row and column swapped, a neighbouring cell, decimal point."""
    height, width = values.shape
    truth = float(values[row, column])
    if math.isfinite(truth):
        yield "sign", -truth
    if row != column and column < height and row < width:
        yield "swapped", values[column, row]
    yield from (("otherRow", values[n, column], {"n": n + 1}) for n in range(height) if n != row)
    yield from (("otherColumn", values[row, n], {"n": n + 1}) for n in range(width) if n != column)
    yield from (("point", truth * power) for power in (10, 0.1, 100, 0.01))
