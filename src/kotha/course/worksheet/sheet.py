"""One attention head as a sheet: matrices one after the other, each worked out from those before it.

``Head`` is what goes in: the vectors, the head's slices of the weights, and what else its model does to queries and
keys (biases, norms, turning by place). ``lay_out`` makes the steps. Everything is computed here, in double precision,
by the operations' own few lines; ``model.py`` holds the result against what torch computed.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from kotha.course.worksheet import operations
from kotha.course.worksheet.operations import Array, Operation, Product, Turned
from kotha.errors import UsageError
from kotha.i18n.numbers import Language


@dataclass(frozen=True)
class Projection:
    """How vectors become queries, keys or values in one head."""

    weight: Array  # (C, D)
    bias: Array | None = None  # (1, D)
    gain: Array | None = None  # the norm's learned weights, (1, D), where the model norms queries and keys


@dataclass(frozen=True)
class Head:
    """What one head is given."""

    x: Array  # the vectors that ask, (T, C)
    query: Projection
    key: Projection
    value: Projection
    memory: Array | None = None  # the vectors that are looked at, (S, C), where they are not x itself
    mask: Array | None = None  # 1 where a row may look, 0 where not, (T, S)
    speeds: Array | None = None  # how fast each pair of a head's numbers turns from place to place, (1, D/2)
    eps: float = 0.0  # what the norms add under their root


@dataclass(frozen=True)
class SheetStep:
    """A matrix of the sheet with its labels and how it came about."""

    name: str
    title: str
    rows: tuple[str, ...]
    columns: tuple[str, ...]
    values: Array
    operation: Operation | None = None  # none for what is given


@dataclass(frozen=True)
class Sheet:
    """The steps in order, and where they come from."""

    steps: dict[str, SheetStep]
    tokens: tuple[str, ...]
    key_tokens: tuple[str, ...]
    text: str
    place: str  # which attention, such as blocks.0.attention; empty for the workshop's
    layer: int
    head: int
    target: str | None = None
    remarks: tuple[str, ...] = ()
    heading: str = ""  # of a sheet that is not one attention head
    lead: str = ""  # what such a sheet shows
    language: Language = "en"  # of all that is said on it

    @property
    def title(self) -> str:
        """What it is of, in a line."""
        if self.heading:
            return self.heading
        return f"Worksheet: {self.place}, head {self.head}" if self.place else "Self-attention by hand"

    @property
    def matrices(self) -> dict[str, Array]:
        """Every matrix by its name."""
        return {name: step.values for name, step in self.steps.items()}

    @property
    def masked(self) -> Array:
        """The scores that softmax reads: masked, or as they are where nothing is hidden."""
        return self.steps["masked" if "masked" in self.steps else "scores"].values


@dataclass
class GrowingSheet:
    """The sheet while it grows."""

    tokens: tuple[str, ...]
    key_tokens: tuple[str, ...]
    made: dict[str, SheetStep] = field(default_factory=dict)

    def give(
        self,
        name: str,
        title: str,
        values: Array,
        rows: Sequence[str] = (),
        columns: Sequence[str] = (),
        operation: Operation | None = None,
    ) -> str:
        """Put in a matrix; rows and columns without labels are counted."""
        assert name not in self.made, f"two steps are called {name}"
        down, across = (
            tuple(given) or tuple(str(number) for number in range(1, size + 1))
            for given, size in zip((rows, columns), values.shape, strict=True)
        )
        assert (len(down), len(across)) == values.shape, f"{name} has as many labels as rows and columns"
        self.made[name] = SheetStep(name, title, down, across, values.astype(np.float64), operation)
        return name

    def work_out(
        self, name: str, title: str, operation: Operation, rows: Sequence[str], columns: Sequence[str] = ()
    ) -> str:
        """Put in a matrix that an operation makes from earlier ones."""
        assert all(operand in self.made for operand in operation.operands), f"{name} reads what is not there yet"
        values = operation.compute({each: self.made[each].values for each in operation.operands})
        return self.give(name, title, values, rows, columns, operation)


def recomputed(sheet: Sheet, given: Mapping[str, Array]) -> Sheet:
    """The sheet with other numbers given, each matrix in its shape; what is worked out is worked out anew."""
    made: dict[str, Array] = {}
    steps = {}
    for name, step in sheet.steps.items():
        if step.operation is not None:
            values = step.operation.compute(made)
        else:
            values = np.asarray(given.get(name, step.values), dtype=np.float64)
            if values.shape != step.values.shape:
                raise UsageError(f"{name} has shape {values.shape}, and the sheet's is {step.values.shape}")
        made[name] = values
        steps[name] = replace(step, values=values)
    return replace(sheet, steps=steps)


def lay_out(
    head: Head, tokens: Sequence[str], key_tokens: Sequence[str] | None = None, shifted: bool = True
) -> dict[str, SheetStep]:
    """The steps of a head; ``shifted`` takes each row's largest score off before e to it, as machines do."""
    asking, looked_at = tuple(tokens), tuple(tokens if key_tokens is None else key_tokens)
    steps = GrowingSheet(asking, looked_at)
    x = steps.give("X", "X, the vectors that enter", head.x, rows=asking)
    memory = x
    if head.memory is not None:
        memory = steps.give("M", "M, the source as the encoder left it", head.memory, rows=looked_at)
    for letter, projection in (("Q", head.query), ("K", head.key), ("V", head.value)):
        steps.give(f"W_{letter}", f"W_{letter}, this head's part", projection.weight)
    if head.speeds is not None:
        steps.give("places", "places, counted from 0", np.arange(len(asking), dtype=np.float64)[:, None], asking)
        steps.give("speeds", "speeds, by which each pair of numbers turns", head.speeds)
        steps.work_out("angles", "angles = places × speeds", Product(("places", "speeds")), asking)
    _project(steps, "Q", x, head.query, asking, head)
    _project(steps, "K", memory, head.key, looked_at, head)
    _project(steps, "V", memory, head.value, looked_at, head)
    _weigh(steps, head, shifted)
    steps.work_out("output", "output = weights × V", Product(("weights", "V")), asking)
    return steps.made


def _project(
    steps: GrowingSheet, letter: str, source: str, projection: Projection, rows: tuple[str, ...], head: Head
) -> None:
    """From vectors to queries, keys or values: one step for each thing that the model does; the last has the letter."""
    turns = head.speeds is not None and letter != "V"
    n_left = 1 + (projection.bias is not None) + (projection.gain is not None) + turns
    names = [*(f"{letter}{number}" for number in range(n_left - 1)), letter]
    name = names.pop(0)
    steps.work_out(name, f"{name} = {source} × W_{letter}", Product((source, f"W_{letter}")), rows)
    if projection.bias is not None:
        before, name = name, names.pop(0)
        bias = steps.give(f"b_{letter}", f"b_{letter}, the bias", projection.bias)
        steps.work_out(name, f"{name} = {before} + {bias}", operations.add_row(before, bias), rows)
    if projection.gain is not None:
        before, name = name, names.pop(0)
        if "eps" not in steps.made:
            steps.give("eps", "ε, which keeps the norm's root above zero", np.array([[head.eps]]))
        gain = steps.give(f"g_{letter}", f"g_{letter}, the norm's gains", projection.gain)
        title = f"size of {before} = √(mean of squares + ε)"
        size = steps.work_out(f"size_{letter}", title, operations.root_mean_square(before, "eps"), rows)
        steps.work_out(name, f"{name} = {before} / size × {gain}", operations.normed(before, size, gain), rows)
    if turns:
        before, name = name, names.pop(0)
        steps.work_out(name, f"{name} = {before}, each pair turned by its angle", Turned((before, "angles")), rows)


def _weigh(steps: GrowingSheet, head: Head, shifted: bool) -> None:
    """From queries and keys to weights."""
    rows, columns = steps.tokens, steps.key_tokens
    steps.give("d_k", "d_k, the head's width", np.array([[float(head.query.weight.shape[1])]]))
    steps.work_out("products", "products = Q × Kᵀ", Product(("Q", "K"), by_rows=True), rows, columns)
    read = steps.work_out("scores", "scores = products / √d_k", operations.over_root("products", "d_k"), rows, columns)
    if head.mask is not None:
        steps.give("mask", "mask: 1 may be looked at, 0 may not", head.mask, rows, columns)
        title = "masked = scores, −∞ where the mask is 0"
        read = steps.work_out("masked", title, operations.masked_scores("scores", "mask"), rows, columns)
    if shifted:
        steps.work_out("largest", f"largest of each row of {read}", operations.largest(read), rows)
        title = f"powers = e^({read} − largest)"
        steps.work_out("powers", title, operations.shifted_powers(read, "largest"), rows, columns)
    else:
        steps.work_out("powers", f"powers = e^{read}", operations.powers(read), rows, columns)
    steps.work_out("sums", "sums of each row of powers", operations.row_sums("powers"), rows)
    steps.work_out("weights", "weights = powers / sums", operations.shares("powers", "sums"), rows, columns)
