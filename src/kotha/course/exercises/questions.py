"""The questions: ``questions.json`` asks them, says how each is answered, and which slips lead where.

The file is content, to be read and changed by a teacher: texts in both languages, hints, rubrics, and formulas for what
is right and what is nearly right, over the values of a ``QuestionChoice``. What has a ``when`` is there only if that
formula holds. A question is answered by numbers (``answer``), by a matrix of the sheet (``step``), by an order of
pieces (``order``) or in one's own words (``rubric``).
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import permutations
from typing import Any, Literal

from kotha.course.data import calculate, data_file, said
from kotha.course.exercises.grading import FILE, Expected, Slip
from kotha.course.exercises.rubric import Flowchart, Rubric, shuffled
from kotha.course.worksheet.sheet import Sheet
from kotha.i18n.message import Bilingual

SetName = Literal["workshop", "assessment"]
Values = Mapping[str, Any]
# Whoever carries three decimals along, or 1.414 for a root, stays within this.
_CARRIED = "0.0005"
_DECIMALS = 6
_MOST_AXES = 4  # what has more numbers is no shape
_POWERS = (10.0, 0.1, 100.0, 0.01, 1e3, 1e-3, 1e6, 1e-6)


@dataclass(frozen=True)
class Question:
    """One thing to answer: numbers (``expected``), an order of pieces (``order``), or one's own words (``rubric``)."""

    id: str  # its number in the workshop, and which part of it: 2c, 9a-2
    sheet: Sheet  # of which its matrices are
    text: Bilingual
    worked: tuple[Bilingual, ...]  # how one gets there, line by line; of an open question, a model answer
    expected: Expected | None = None
    shows: tuple[str, ...] = ()  # matrices of the sheet that one needs to answer
    lines: tuple[str, ...] = ()  # for a matrix, the arithmetic of each cell, to show the one that went wrong
    step: str = ""  # which step of the sheet is asked for, and which row, where it is not all
    row: int | None = None
    slips: tuple[Slip, ...] = ()
    hints: tuple[Bilingual, ...] = ()
    rubric: Rubric | None = None
    order: Flowchart | None = None
    points: int = 0
    bonus: bool = False  # its points are not among those that make the whole

    @property
    def number(self) -> int:
        """The workshop's number of it."""
        return int("".join(character for character in self.id[:2] if character.isdigit()))

    @property
    def weight(self) -> int:
        """How much work it is beside the other parts of its number."""
        return 3 if self.step or self.order else 2 if self.rubric else 1


def all_questions(set: SetName, sheet: Sheet, values: Values) -> list[Question]:
    """A set's questions in order, with answers for these values."""
    told = data_file(FILE)["sets"][set]
    found = [question for each in told["questions"] for question in _made(each, sheet, values)]
    points: dict[str, int] = {}
    for number, whole in told["points"].items():
        parts = [each for each in found if each.number == int(number)]
        points |= dict(zip((each.id for each in parts), share_out(whole, [each.weight for each in parts]), strict=True))
    return [replace(each, points=points[each.id], bonus=each.number in told["bonus"]) for each in found]


def share_out(points: int, weights: Sequence[int]) -> list[int]:
    """Whole points by weight, none lost: what is left over goes to those who were cut most.

    >>> share_out(25, [1, 1, 3, 3])
    [3, 3, 10, 9]
    """
    exact = [points * weight / sum(weights) for weight in weights]
    whole = [math.floor(each) for each in exact]
    most_cut = sorted(range(len(exact)), key=lambda place: whole[place] - exact[place])
    for place in most_cut[: points - sum(whole)]:
        whole[place] += 1
    return whole


def _made(told: Values, sheet: Sheet, values: Values) -> Iterator[Question]:
    if told.get("by_row"):  # 4a, 4b, 4c, and on where there are more tokens
        for row, token in enumerate(sheet.steps[told["step"]].rows):
            id = f"{told['id']}{chr(ord('a') + row)}"
            yield _of_step({**told, "id": id}, sheet, {**values, "row": row + 1, "token": token}, row)
    elif "step" in told:
        yield _of_step(told, sheet, values)
    else:
        yield _of_words(told, sheet, values)


def _of_words(told: Values, sheet: Sheet, values: Values) -> Question:
    """A question that no matrix of the sheet answers."""
    rubric = Rubric(told["rubric"]) if "rubric" in told else None
    expected = _expected(told, values) if "answer" in told else None
    if expected is not None:
        values = {**values, "answer": expected.values[0]}
    hints = _texts(told.get("hints", ()), values)
    if rubric is not None:
        hints = (said(data_file(FILE)["hints"]["rubric"], {"needed": rubric.needed}), rubric.lead)
    return Question(
        told["id"],
        sheet,
        _texts(told["text"] if isinstance(told["text"], list) else [told["text"]], values)[0],
        _texts(told["worked"], values),
        expected,
        slips=() if expected is None else tuple(_slips(told.get("slips", {}), expected, values)),
        hints=hints,
        rubric=rubric,
        order=shuffled(_texts(told["order"], values), values["seed"] or 0) if "order" in told else None,
    )


def _of_step(told: Values, sheet: Sheet, values: Values, row: int | None = None) -> Question:
    """A question that a matrix of the sheet answers, or a row of it."""
    step, hints = sheet.steps[told["step"]], data_file(FILE)["hints"]
    height, width = step.values.shape
    cells = [(down, across) for down in (range(height) if row is None else [row]) for across in range(width)]

    work = partial(sheet.arithmetic, precision=_DECIMALS)
    lines = [work(step.name, *cell) for cell in cells]
    worked = [] if row is None else [*(work("powers", row, column) for column in range(width)), work("sums", row, 0)]
    operands = () if step.operation is None else step.operation.operands
    return Question(
        told["id"],
        sheet,
        said(told["text"], values),
        tuple(map(said, worked)),
        Expected(
            tuple(float(step.values[cell]) for cell in cells),
            columns=width,
            slack=calculate(told.get("slack", _CARRIED), values),
        ),
        shows=tuple(told["shows"]),
        lines=tuple(lines),
        step=step.name,
        row=row,
        hints=(
            said(hints.get(step.name, hints["other"]), {"left": operands[0], "right": operands[-1]}),
            said(hints["begin"], {"line": worked[0] if worked else lines[0].rpartition(" = ")[0]}),
            said(hints["worked"], {"line": (worked or lines)[-1]}),
        ),
    )


def _expected(told: Values, values: Values) -> Expected:
    right = _numbers(told["answer"], values)
    columns = len(told["answer"]) if isinstance(told["answer"], list) else calculate(told.get("columns", "1"), values)
    others = [each if isinstance(each, dict) else {"is": each} for each in told.get("others", ())]
    return Expected(
        right,
        columns,
        exact=told.get("exact", False),
        slack=calculate(told.get("slack", "0"), values),
        others=tuple(_numbers(each["is"], values) for each in others if _holds(each, values)),
        bytes=float(calculate(told["bytes"], values)) if "bytes" in told else None,
    )


def _slips(told: Values, expected: Expected, values: Values) -> Iterator[Slip]:
    """The slips that a question invites, those of its own first."""
    texts = data_file(FILE)["slips"]
    for name, where in told.items():
        if _holds(where, values):
            formula = where["is"] if isinstance(where, dict) else where
            yield Slip(name, said(texts[name], values), _numbers(formula, values))
    for name, numbers in _any_slips(expected):
        yield Slip(name, said(texts[name], values), numbers)


def _any_slips(expected: Expected) -> Iterator[tuple[str, tuple[float, ...]]]:
    """Slips that can happen anywhere: sizes in another order, a fraction upside down, the point."""
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


def _texts(told: Sequence[Any], values: Values) -> tuple[Bilingual, ...]:
    return tuple(said(each, values) for each in told if _holds(each, values))


def _holds(told: Any, values: Values) -> bool:
    return not isinstance(told, dict) or "when" not in told or bool(calculate(told["when"], values))
