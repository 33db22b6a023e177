"""Which mistake was it? The wrong ways are computed for these very numbers; the one that fits what was typed is named.

The twin of ``web/src/math/diagnosis.ts``, for a whole matrix at once: a way that explains many wrong cells is likelier
than one that explains a single one. Both twins speak with the same words (the studio's catalogue, ``wrong.…``), and one
list of cases (``web/tests/data/mistakes.json``) holds both.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from kotha.course.exercises.grading import Expected, Typed, Verdict, compare
from kotha.course.worksheet.operations import Array
from kotha.course.worksheet.sheet import Sheet, SheetStep
from kotha.i18n.message import Bilingual
from kotha.report.built import words

_MOST_NAMED = 2
_SAME = 1e-9


@dataclass(frozen=True)
class Way:
    """A wrong way to a cell, and where it leads."""

    name: str  # its words in the catalogue, behind ``wrong.``
    value: float
    filling: dict[str, Any]

    @property
    def words(self) -> Bilingual:
        """What is said of it."""
        return told(self.name).fill(**self.filling)


def told(name: str) -> Bilingual:
    """The catalogue's words for a mistake."""
    entry = words("hand")[f"wrong.{name}"]
    return Bilingual(entry["en"], entry["bn"])


def diagnose(
    sheet: Sheet, step: SheetStep, typed: Sequence[Typed], cells: Sequence[tuple[int, int]], slack: float = 0.0
) -> list[Way]:
    """The mistakes that fit the numbers typed for some wrong cells, the one that explains most first; two at most."""
    found: dict[str, list[tuple[int, Way]]] = {}
    for place, (number, (row, column)) in enumerate(zip(typed, cells, strict=True)):
        named: set[str] = set()
        for way in ways(sheet, step, row, column):
            if way.name not in named and _fits(number, way.value, slack):
                named.add(way.name)
                found.setdefault(way.name, []).append((place, way))
    chosen: list[Way] = []
    explained: set[int] = set()
    for fits in sorted(found.values(), key=lambda each: -len(each)):
        places = {place for place, _ in fits}
        if len(chosen) < _MOST_NAMED and places - explained:
            chosen.append(fits[0][1])
            explained |= places
    return chosen


def _fits(typed: Typed, value: float, slack: float) -> bool:
    """Whether the number that was typed is this one, as exactly as it was given."""
    return not math.isnan(value) and compare(typed, value, Expected((value,), slack=slack)) is Verdict.RIGHT


def ways(sheet: Sheet, step: SheetStep, row: int, column: int) -> list[Way]:
    """Every wrong way to a cell that people take, likeliest first."""
    truth = float(step.values[row, column])
    operation = step.operation
    assert operation is not None, f"{step.name} is given, not worked out"
    own = _of_product if operation.is_product else _of_cell
    found = [*own(sheet, step, row, column), *_of_every(step, row, column)]
    return [way for way in found if not _is_same(way.value, truth)]


def _is_same(value: float, truth: float) -> bool:
    return value == truth or (math.isfinite(value) and math.isfinite(truth) and abs(value - truth) <= _SAME)


def _of_product(sheet: Sheet, step: SheetStep, row: int, column: int) -> Iterator[Way]:
    operation = step.operation
    assert operation is not None and operation.is_product, "a product has factors"
    left_name, right_name = operation.operands
    left, right = (sheet.matrices[name] for name in operation.operands)
    a, b = operation.factors(sheet.matrices, row, column)
    products = a * b
    truth = float(products.sum())
    names = {"left": left_name, "right": right_name, "row": row + 1, "column": column + 1}

    def way(name: str, value: float, **more: Any) -> Way:
        return Way(name, float(value), {**names, **more})

    for other in _others(sheet, right_name):
        swapped = replace(operation, operands=(left_name, other)).compute(sheet.matrices)
        yield way("otherMatrix", swapped[row, column], used=other)
    if operation.kind == "product_by_rows":
        yield way("notTurned", _along(a, right[:, column]) if column < right.shape[1] else math.nan)
    else:
        yield way("rowForColumn", _along(a, right[column]) if column < len(right) else math.nan)
    yield way("columnForRow", _along(left[:, row], b) if row < left.shape[1] else math.nan)
    yield way("summedColumn", b.sum())
    yield way("summedRow", a.sum())
    yield way("added", (a + b).sum())
    yield way("missing", truth - products[0], n=1)
    for k in range(1, len(products)):
        yield way("stopped", products[:k].sum(), n=k)
    for k in range(1, len(products) - 1):
        yield way("missing", truth - products[k], n=k + 1)
    for k, product in enumerate(products):
        yield way("signOfTerm", truth - 2 * product, n=k + 1)
    for decimals in (2, 1):
        yield way("early", sum(_rounded(product, decimals) for product in products), n=decimals)
    if left_name == "weights":
        open_weights = _softmax(sheet.matrices["scores"][row])
        yield way("maskForgotten", (open_weights * right[:, column]).sum())


def _along(line: Array, other: Array) -> float:
    """Two lines multiplied as far as the shorter goes, as somebody does who has taken the wrong one."""
    length = min(len(line), len(other))
    return float((line[:length] * other[:length]).sum())


def _rounded(value: float, decimals: int) -> float:
    return float(f"{value:.{decimals}f}")


def _others(sheet: Sheet, wanted: str) -> list[str]:
    """Matrices of the same shape that could have been taken for the right factor."""
    family = [name for name in sheet.steps if name.startswith("W_")] if wanted.startswith("W_") else ["Q", "K", "V"]
    shape = sheet.matrices[wanted].shape
    return [name for name in family if name != wanted and sheet.matrices[name].shape == shape]


def _of_cell(sheet: Sheet, step: SheetStep, row: int, column: int) -> Iterator[Way]:
    operation = step.operation
    assert operation is not None, f"{step.name} is given, not worked out"
    given = sheet.matrices
    left, *more = (given[name] for name in operation.operands)
    read = float(left[row, min(column, left.shape[1] - 1)])
    filling = {"row": row + 1, "column": column + 1}

    def way(name: str, value: float, **extra: Any) -> Way:
        return Way(name, float(value), {**filling, **extra})

    if operation.kind == "over_root":
        width = float(more[0][0, 0])
        yield from (way("noRoot", read), way("widthForRoot", read / width), way("timesRoot", read * math.sqrt(width)))
    elif operation.kind == "masked":
        seen = more[0][row, column] == 1
        yield way("maskedTooMuch", -math.inf) if seen else way("maskForgotten", read)
        yield way("maskZero", 0.0)
    elif operation.kind == "powers":
        yield from (way(*each) for each in _of_power(float(given["scores"][row, column]), read))
    elif operation.kind == "row_sums":
        yield from (way(*each) for each in _of_sum(given, left, row))
    elif operation.kind == "shares":
        for name, value, extra in _of_softmax(given, row, column):
            yield way(name, value, **extra)


def _of_power(score: float, read: float) -> list[tuple[str, float]]:
    """Wrong ways to e to a score; ``read`` is the score behind the mask."""
    if read == -math.inf:
        return [("maskForgotten", math.exp(score)), ("hiddenOne", 1.0), ("hiddenStays", -math.inf)]
    return [
        ("noE", read),
        ("minusPower", math.exp(-read)),
        ("two", 2.0**read),
        ("ten", 10.0**read),
        ("timesE", math.e * read),
    ]


def _of_sum(given: dict[str, Array], powers: Array, row: int) -> list[tuple[str, float]]:
    """Wrong ways to the sum of a row of powers."""
    scores = given["scores"][row]
    masked = given.get("masked", given["scores"])[row]
    return [
        ("maskForgotten", float(np.exp(scores).sum())),
        ("columnSum", float(powers[:, row].sum())),
        ("noE", float(masked[~np.isneginf(masked)].sum())),
        ("hiddenOne", float(np.where(powers[row] == 0, 1.0, powers[row]).sum())),
    ]


def _softmax(scores: Array) -> Array:
    powers = np.exp(scores)
    shares: Array = powers / powers.sum()
    return shares


def _of_softmax(given: dict[str, Array], row: int, column: int) -> Iterator[tuple[str, float, dict[str, int]]]:
    """Wrong ways through the whole softmax, from the scores on."""
    scores, powers = given["scores"][row], given["powers"]
    masked = given.get("masked", given["scores"])[row]
    hidden = np.isneginf(masked)
    seen, power = masked[~hidden], float(powers[row, column])
    products = np.where(hidden, -math.inf, given["products"][row])
    rounded = {
        n: np.array([score if math.isinf(score) else _rounded(score, n) for score in masked.tolist()]) for n in (2, 1)
    }
    found = [
        ("maskForgotten", _softmax(scores)[column]),
        ("softmaxDown", power / powers[:, column].sum()),
        ("noE", 0.0 if hidden[column] else masked[column] / seen.sum()),
        ("notDivided", power),
        ("noRoot", _softmax(products)[column]),
        ("widthForRoot", _softmax(products / given["d_k"][0, 0])[column]),
        ("hiddenStays", -math.inf if hidden[column] else math.nan),
        ("upsideDown", powers[row].sum() / power if power else math.nan),
        ("evenly", 1 / len(seen)),
    ]
    for name, value in found:
        yield name, float(value), {}
    for decimals, line in rounded.items():
        yield "earlyScores", float(_softmax(line)[column]), {"n": decimals}


def _of_every(step: SheetStep, row: int, column: int) -> Iterator[Way]:
    """Slips that can happen anywhere: sides swapped, the cell beside, the sign, the point."""
    values = step.values
    height, width = values.shape
    truth = float(values[row, column])
    if math.isfinite(truth):
        yield Way("sign", -truth, {})
    if row != column and column < height and row < width:
        yield Way("swapped", float(values[column, row]), {"row": row + 1, "column": column + 1})
    for other in range(height):
        if other != row:
            yield Way("otherRow", float(values[other, column]), {"n": other + 1, "row": row + 1})
    for other in range(width):
        if other != column:
            yield Way("otherColumn", float(values[row, other]), {"n": other + 1, "column": column + 1})
    for power in (10, 0.1, 100, 0.01):
        yield Way("point", truth * power, {})
