"""The questions: ``questions.json`` asks them, says how each is answered, and which slips lead where.

The file is content, to be read and changed by a teacher: texts in both languages, hints, rubrics, and formulas for what
is right and what is nearly right, over the values of a `Setting`. What has a ``when`` is there only if that formula
holds. A question is answered by numbers (``answer``), by a matrix of the sheet (``step``), by an order of pieces
(``order``) or in one's own words (``rubric``).
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import permutations
from typing import Any, Literal

from kotha.course.data import said
from kotha.course.exercises.formula import calculate, question_file
from kotha.course.exercises.grading import Expected
from kotha.course.exercises.rubric import Flowchart, Rubric, shuffled
from kotha.course.exercises.setting import Setting
from kotha.course.worksheet.showing import arithmetic
from kotha.i18n.message import Bilingual

SetName = Literal["workshop", "assessment"]
# Whoever carries three decimals along, or 1.414 for a root, stays within this.
_CARRIED = "0.0005"
_DECIMALS = 6
_MOST_AXES = 4  # what has more numbers is no shape
_POWERS = (10.0, 0.1, 100.0, 0.01, 1e3, 1e-3, 1e6, 1e-6)


@dataclass(frozen=True)
class Slip:
    """A wrong way that people take to a number, with where it leads, and what to say of it."""

    name: str
    words: Bilingual
    values: tuple[float, ...]


@dataclass(frozen=True)
class Question:
    """One thing to answer: numbers (``expected``), an order of pieces (``order``), or one's own words (``rubric``)."""

    id: str  # its number in the workshop, and which part of it: 2c, 9a-2
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


def all_questions(setting: Setting, set: SetName = "workshop") -> list[Question]:
    """A set's questions in order, with answers for these sizes."""
    told = question_file()["sets"][set]
    found = [question for each in told["questions"] for question in _made(each, setting)]
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


def _made(told: Mapping[str, Any], setting: Setting) -> Iterator[Question]:
    if told.get("by_row"):  # 4a, 4b, 4c, and on where there are more tokens
        for row, token in enumerate(setting.sheet.steps[told["step"]].rows):
            values = {**setting.values, "row": row + 1, "token": token}
            yield _of_step(told, setting, values, f"{told['id']}{chr(ord('a') + row)}", row)
    elif "step" in told:
        yield _of_step(told, setting, setting.values, told["id"])
    else:
        yield _of_words(told, setting)


def _of_words(told: Mapping[str, Any], setting: Setting) -> Question:
    """A question that no matrix of the sheet answers."""
    values, rubric = dict(setting.values), Rubric.from_dict(told["rubric"]) if "rubric" in told else None
    expected = _expected(told, values) if "answer" in told else None
    if expected is not None:
        values["answer"] = expected.values[0]
    hints = _texts(told.get("hints", ()), values)
    if rubric is not None:
        hints = (said(question_file()["hints"]["rubric"], {"needed": rubric.needed}), rubric.lead)
    return Question(
        told["id"],
        _texts(told["text"] if isinstance(told["text"], list) else [told["text"]], values)[0],
        _texts(told["worked"], values),
        expected,
        slips=() if expected is None else tuple(_slips(told.get("slips", {}), expected, values)),
        hints=hints,
        rubric=rubric,
        order=shuffled(_texts(told["order"], values), setting.seed or 0) if "order" in told else None,
    )


def _of_step(
    told: Mapping[str, Any], setting: Setting, values: Mapping[str, Any], id: str, row: int | None = None
) -> Question:
    """A question that a matrix of the sheet answers, or a row of it."""
    steps, step = setting.sheet.steps, setting.sheet.steps[told["step"]]
    height, width = step.values.shape
    cells = [(down, across) for down in (range(height) if row is None else [row]) for across in range(width)]

    def work(name: str, down: int, across: int) -> str:
        return arithmetic(setting.sheet, steps[name], down, across, _DECIMALS)

    lines = [work(step.name, *cell) for cell in cells]
    worked = [] if row is None else [*(work("powers", row, column) for column in range(width)), work("sums", row, 0)]
    hints, operands = question_file()["hints"], () if step.operation is None else step.operation.operands
    return Question(
        id,
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


def _expected(told: Mapping[str, Any], values: Mapping[str, Any]) -> Expected:
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


def _slips(told: Mapping[str, Any], expected: Expected, values: Mapping[str, Any]) -> Iterator[Slip]:
    """The slips that a question invites, those of its own first."""
    texts = question_file()["slips"]
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


def _numbers(formula: str | list[str], values: Mapping[str, Any]) -> tuple[float, ...]:
    found = [calculate(each, values) for each in ([formula] if isinstance(formula, str) else formula)]
    return tuple(map(float, found[0] if isinstance(found[0], tuple) else found))


def _texts(told: Sequence[Any], values: Mapping[str, Any]) -> tuple[Bilingual, ...]:
    return tuple(said(each, values) for each in told if _holds(each, values))


def _holds(told: Any, values: Mapping[str, Any]) -> bool:
    return not isinstance(told, dict) or "when" not in told or bool(calculate(told["when"], values))
