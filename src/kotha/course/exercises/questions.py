"""The quiz questions, read from ``questions.json``.

A teacher can read and change this file. The file holds texts in both languages, hints and rubrics, and formulas that
compute right answers and common mistakes from the values of a ``QuestionChoice``. An entry with ``when`` applies only
if that formula is true. A question is answered with numbers (``answer``), a matrix on the sheet (``step``), an order of
pieces (``order``) or words (``rubric``).
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import permutations
from typing import Any, Literal

from kotha.course.data import bilingual, calculate, data_file
from kotha.course.exercises.number_comparison import FILE, Expected, Slip
from kotha.course.exercises.rubric import Flowchart, Rubric, shuffled
from kotha.course.worksheet.sheet import Sheet
from kotha.i18n.message import Bilingual

SetName = Literal["workshop", "assessment"]
Values = Mapping[str, Any]
# Error allowed for intermediate results with three decimals, or 1.414 for √2.
_CARRIED = "0.0005"
_DECIMALS = 6
_MOST_AXES = 4  # the maximum number of dimensions in a shape
_POWERS = (10.0, 0.1, 100.0, 0.01, 1e3, 1e-3, 1e6, 1e-6)


@dataclass(frozen=True)
class Question:
    """A question, answered with numbers (``expected``), an order of pieces (``order``) or words (``rubric``)."""

    id: str  # number in the workshop and part: 2c, 9a-2
    sheet: Sheet  # the sheet with its matrices
    text: Bilingual
    worked: tuple[Bilingual, ...]  # the solution, line by line; for an open question, a model answer
    expected: Expected | None = None
    shows: tuple[str, ...] = ()  # matrices of the sheet that the answer needs
    lines: tuple[str, ...] = ()  # for a matrix, the arithmetic of each cell
    step: str = ""  # the step of the sheet to compute, and the row if only one is required
    row: int | None = None
    slips: tuple[Slip, ...] = ()
    hints: tuple[Bilingual, ...] = ()
    rubric: Rubric | None = None
    order: Flowchart | None = None
    points: int = 0
    bonus: bool = False  # whether it earns bonus points

    @property
    def number(self) -> int:
        """The question's number in the workshop."""
        return int("".join(character for character in self.id[:2] if character.isdigit()))

    @property
    def weight(self) -> int:
        """The amount of work, relative to the other parts of the same question."""
        return 3 if self.step or self.order else 2 if self.rubric else 1


def all_questions(set: SetName, sheet: Sheet, values: Values) -> list[Question]:
    """Return the questions in a set, in order, with the answers for these values."""
    entry = data_file(FILE)["sets"][set]
    found = [question for each in entry["questions"] for question in _made(each, sheet, values)]
    points: dict[str, int] = {}
    for number, total in entry["points"].items():
        parts = [each for each in found if each.number == int(number)]
        points |= dict(zip((each.id for each in parts), share_out(total, [each.weight for each in parts]), strict=True))
    return [replace(each, points=points[each.id], bonus=each.number in entry["bonus"]) for each in found]


def share_out(points: int, weights: Sequence[int]) -> list[int]:
    """Split points into integers by weight; the remainder goes to the parts that lost most by rounding down.

    >>> share_out(25, [1, 1, 3, 3])
    [3, 3, 10, 9]
    """
    exact = [points * weight / sum(weights) for weight in weights]
    whole = [math.floor(each) for each in exact]
    most_cut = sorted(range(len(exact)), key=lambda place: whole[place] - exact[place])
    for place in most_cut[: points - sum(whole)]:
        whole[place] += 1
    return whole


def _made(entry: Values, sheet: Sheet, values: Values) -> Iterator[Question]:
    if entry.get("by_row"):  # 4a, 4b, 4c, … one for each token
        for row, token in enumerate(sheet.steps[entry["step"]].rows):
            id = f"{entry['id']}{chr(ord('a') + row)}"
            yield _of_step({**entry, "id": id}, sheet, {**values, "row": row + 1, "token": token}, row)
    elif "step" in entry:
        yield _of_step(entry, sheet, values)
    else:
        yield _of_words(entry, sheet, values)


def _of_words(entry: Values, sheet: Sheet, values: Values) -> Question:
    """Build a question whose answer is not a matrix on the sheet."""
    rubric = Rubric(entry["rubric"]) if "rubric" in entry else None
    expected = _expected(entry, values) if "answer" in entry else None
    if expected is not None:
        values = {**values, "answer": expected.values[0]}
    hints = _texts(entry.get("hints", ()), values)
    if rubric is not None:
        hints = (bilingual(data_file(FILE)["hints"]["rubric"], {"needed": rubric.needed}), rubric.lead)
    return Question(
        entry["id"],
        sheet,
        _texts(entry["text"] if isinstance(entry["text"], list) else [entry["text"]], values)[0],
        _texts(entry["worked"], values),
        expected,
        slips=() if expected is None else tuple(_slips(entry.get("slips", {}), expected, values)),
        hints=hints,
        rubric=rubric,
        order=shuffled(_texts(entry["order"], values), values["seed"] or 0) if "order" in entry else None,
    )


def _of_step(entry: Values, sheet: Sheet, values: Values, row: int | None = None) -> Question:
    """Build a question whose answer is a matrix on the sheet, or one of its rows."""
    step, hints = sheet.steps[entry["step"]], data_file(FILE)["hints"]
    height, width = step.values.shape
    cells = [(down, across) for down in (range(height) if row is None else [row]) for across in range(width)]

    work = partial(sheet.arithmetic, precision=_DECIMALS)
    lines = [work(step.name, *cell) for cell in cells]
    worked = [] if row is None else [*(work("powers", row, column) for column in range(width)), work("sums", row, 0)]
    operands = () if step.operation is None else step.operation.operands
    return Question(
        entry["id"],
        sheet,
        bilingual(entry["text"], values),
        tuple(map(bilingual, worked)),
        Expected(
            tuple(float(step.values[cell]) for cell in cells),
            columns=width,
            slack=calculate(entry.get("slack", _CARRIED), values),
        ),
        shows=tuple(entry["shows"]),
        lines=tuple(lines),
        step=step.name,
        row=row,
        hints=(
            bilingual(hints.get(step.name, hints["other"]), {"left": operands[0], "right": operands[-1]}),
            bilingual(hints["begin"], {"line": worked[0] if worked else lines[0].rpartition(" = ")[0]}),
            bilingual(hints["worked"], {"line": (worked or lines)[-1]}),
        ),
    )


def _expected(entry: Values, values: Values) -> Expected:
    right = _numbers(entry["answer"], values)
    columns = (
        len(entry["answer"]) if isinstance(entry["answer"], list) else calculate(entry.get("columns", "1"), values)
    )
    others = [each if isinstance(each, dict) else {"is": each} for each in entry.get("others", ())]
    return Expected(
        right,
        columns,
        exact=entry.get("exact", False),
        slack=calculate(entry.get("slack", "0"), values),
        others=tuple(_numbers(each["is"], values) for each in others if _holds(each, values)),
        bytes=float(calculate(entry["bytes"], values)) if "bytes" in entry else None,
    )


def _slips(entry: Values, expected: Expected, values: Values) -> Iterator[Slip]:
    """Yield the common mistakes for a question, starting with those from its own entry."""
    texts = data_file(FILE)["slips"]
    for name, where in entry.items():
        if _holds(where, values):
            formula = where["is"] if isinstance(where, dict) else where
            yield Slip(name, bilingual(texts[name], values), _numbers(formula, values))
    for name, numbers in _any_slips(expected):
        yield Slip(name, bilingual(texts[name], values), numbers)


def _any_slips(expected: Expected) -> Iterator[tuple[str, tuple[float, ...]]]:
    """Yield mistakes possible in any answer: sizes in another order, an inverted fraction, a wrong decimal point."""
    if len(expected.values) == 1:
        (value,) = expected.values
        if not expected.exact and value:
            yield "upsideDown", (1 / value,)
        yield from (("point", (value * power,)) for power in _POWERS)
    elif len(expected.values) <= _MOST_AXES:
        yield from (("order", way) for way in dict.fromkeys(permutations(expected.values)) if way != expected.values)


def _numbers(formula: str | list[str], values: Values) -> tuple[float, ...]:
    found = [calculate(each, values) for each in ([formula] if isinstance(formula, str) else formula)]
    return tuple(map(float, found[0] if isinstance(found[0], tuple) else found))


def _texts(entries: Sequence[Any], values: Values) -> tuple[Bilingual, ...]:
    return tuple(bilingual(each, values) for each in entries if _holds(each, values))


def _holds(entry: Any, values: Values) -> bool:
    return not isinstance(entry, dict) or "when" not in entry or bool(calculate(entry["when"], values))
