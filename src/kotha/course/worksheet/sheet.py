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
from kotha.i18n.message import Message, Text

# Matrices that all heads of a block share; every other name has the head's number behind it.
_SHARED = ("X", "mask", "d_k")


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
    title: Text
    rows: tuple[Text, ...]
    columns: tuple[Text, ...]
    values: Array
    operation: Operation | None = None  # none for what is given


@dataclass(frozen=True)
class Sheet:
    """The steps in order, and where they come from."""

    steps: dict[str, SheetStep]
    tokens: tuple[Text, ...]
    key_tokens: tuple[Text, ...]
    text: Text
    place: str = ""  # which attention, such as blocks.0.attention; empty for the workshop's
    layer: int = 0
    head: int = 0
    target: str | None = None
    remarks: tuple[Text, ...] = ()
    heading: Text = ""  # of a sheet that is not one attention head
    lead: Text = ""  # what such a sheet shows

    @property
    def title(self) -> Text:
        """What it is of, in a line."""
        if self.heading:
            return self.heading
        if self.place:
            return Message("Worksheet: {place}, head {head}", place=self.place, head=self.head)
        return Message("Self-attention by hand")

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

    tokens: tuple[Text, ...]
    key_tokens: tuple[Text, ...]
    head: int | None = None  # of several, counted from 1
    made: dict[str, SheetStep] = field(default_factory=dict)

    def named(self, name: str) -> str:
        """A matrix's name, with the number of its head."""
        return name if self.head is None or name in _SHARED else f"{name}_{self.head}"

    def give(
        self,
        name: str,
        title: Text,
        values: Array,
        rows: Sequence[Text] = (),
        columns: Sequence[Text] = (),
        operation: Operation | None = None,
    ) -> str:
        """Put in a matrix by its whole name; rows and columns without labels are counted."""
        assert name not in self.made, f"two steps are called {name}"
        if self.head is not None and name not in _SHARED:
            title = Message("head {n}: {title}", n=str(self.head), title=title)
        down, across = (
            tuple(given) or tuple(str(number) for number in range(1, size + 1))
            for given, size in zip((rows, columns), values.shape, strict=True)
        )
        assert (len(down), len(across)) == values.shape, f"{name} has as many labels as rows and columns"
        self.made[name] = SheetStep(name, title, down, across, values.astype(np.float64), operation)
        return name

    def work_out(
        self, name: str, title: Text, operation: Operation, rows: Sequence[Text], columns: Sequence[Text] = ()
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
                shapes = {"given": str(values.shape), "wanted": str(step.values.shape)}
                raise UsageError("{name} has shape {given}, and the sheet's is {wanted}", name=name, **shapes)
        made[name] = values
        steps[name] = replace(step, values=values)
    return replace(sheet, steps=steps)


def token_names(count: int) -> tuple[Text, ...]:
    """Labels for tokens that have no text."""
    return tuple(Message("token {n}", n=number) for number in range(1, count + 1))


def lay_out(
    head: Head,
    tokens: Sequence[Text],
    key_tokens: Sequence[Text] | None = None,
    shifted: bool = True,
    number: int | None = None,
) -> dict[str, SheetStep]:
    """The steps of a head; ``shifted`` takes each row's largest score off before e to it, as machines do.

    One of several heads has a ``number``, which its matrices have behind their names.
    """
    asking, looked_at = tuple(tokens), tuple(tokens if key_tokens is None else key_tokens)
    steps = GrowingSheet(asking, looked_at, number)
    x = memory = steps.give("X", Message("X, the vectors that enter"), head.x, rows=asking)
    if head.memory is not None:
        memory = steps.give("M", Message("M, the source as the encoder left it"), head.memory, rows=looked_at)
    for letter, projection in (("Q", head.query), ("K", head.key), ("V", head.value)):
        name = steps.named(f"W_{letter}")
        steps.give(name, Message("{name}, this head's part", name=name), projection.weight)
    if head.speeds is not None:
        places = np.arange(len(asking), dtype=np.float64)[:, None]
        steps.give("places", Message("places, counted from 0"), places, asking)
        steps.give("speeds", Message("speeds, by which each pair of numbers turns"), head.speeds)
        steps.work_out("angles", "angles = places × speeds", Product(("places", "speeds")), asking)
    _project(steps, "Q", x, head.query, asking, head)
    _project(steps, "K", memory, head.key, looked_at, head)
    v = _project(steps, "V", memory, head.value, looked_at, head)
    weights = _weigh(steps, head, shifted)
    output = steps.named("output")
    steps.work_out(output, f"{output} = {weights} × {v}", Product((weights, v)), asking)
    return steps.made


def _project(
    steps: GrowingSheet, letter: str, source: str, projection: Projection, rows: tuple[Text, ...], head: Head
) -> str:
    """From vectors to queries, keys or values: one step for each thing that the model does; the last has the letter."""
    turns = head.speeds is not None and letter != "V"
    n_left = 1 + (projection.bias is not None) + (projection.gain is not None) + turns
    names = [steps.named(each) for each in (*(f"{letter}{number}" for number in range(n_left - 1)), letter)]
    name, weight = names.pop(0), steps.named(f"W_{letter}")
    steps.work_out(name, f"{name} = {source} × {weight}", Product((source, weight)), rows)
    if projection.bias is not None:
        before, name = name, names.pop(0)
        bias = f"b_{letter}"
        steps.give(bias, Message("{name}, the bias", name=bias), projection.bias)
        steps.work_out(name, f"{name} = {before} + {bias}", operations.add_row(before, bias), rows)
    if projection.gain is not None:
        before, name = name, names.pop(0)
        give_eps(steps, head.eps)
        gain = f"g_{letter}"
        steps.give(gain, Message("{name}, the norm's gains", name=gain), projection.gain)
        title = Message("size of {name} = √(mean of squares + ε)", name=before)
        size = steps.work_out(f"size_{letter}", title, operations.root_mean_square(before, "eps"), rows)
        title = Message("{name} = {left} / size × {gain}", name=name, left=before, gain=gain)
        steps.work_out(name, title, operations.normed(before, size, gain), rows)
    if turns:
        before, name = name, names.pop(0)
        title = Message("{name} = {left}, each pair turned by its angle", name=name, left=before)
        steps.work_out(name, title, Turned((before, "angles")), rows)
    return name


def give_eps(steps: GrowingSheet, eps: float) -> None:
    """What norms add under their root, once."""
    if "eps" not in steps.made:
        steps.give("eps", Message("ε, which keeps the norm's root above zero"), np.array([[eps]]))


def _weigh(steps: GrowingSheet, head: Head, shifted: bool) -> str:
    """From queries and keys to weights: their name."""
    rows, columns = steps.tokens, steps.key_tokens
    q, k, products, scores = (steps.named(name) for name in ("Q", "K", "products", "scores"))
    steps.give("d_k", Message("d_k, the head's width"), np.array([[float(head.query.weight.shape[1])]]))
    steps.work_out(products, f"{products} = {q} × {k}ᵀ", Product((q, k), by_rows=True), rows, columns)
    read = steps.work_out(scores, f"{scores} = {products} / √d_k", operations.over_root(products, "d_k"), rows, columns)
    if head.mask is not None:
        steps.give("mask", Message("mask: 1 may be looked at, 0 may not"), head.mask, rows, columns)
        read = hide(steps, steps.named("masked"), scores, "mask")
    return softmax(steps, read, shifted=shifted)


def hide(steps: GrowingSheet, name: str, scores: str, mask: str) -> str:
    """Scores behind a mask."""
    title = Message("{name} = {scores}, −∞ where the mask is 0", name=name, scores=scores)
    return steps.work_out(name, title, operations.masked_scores(scores, mask), steps.tokens, steps.key_tokens)


def softmax(steps: GrowingSheet, read: str, end: str = "", shifted: bool = True) -> str:
    """Largest, powers, sums and weights of some scores; ``end`` is put behind every name."""
    rows, columns = steps.tokens, steps.key_tokens
    largest, powers, sums, weights = (steps.named(f"{name}{end}") for name in ("largest", "powers", "sums", "weights"))
    if shifted:
        title = Message("{largest} of each row of {read}", largest=largest, read=read)
        steps.work_out(largest, title, operations.largest(read), rows)
        operation = operations.shifted_powers(read, largest)
        steps.work_out(powers, f"{powers} = e^({read} − {largest})", operation, rows, columns)
    else:
        steps.work_out(powers, f"{powers} = e^{read}", operations.powers(read), rows, columns)
    title = Message("{sums} of each row of {powers}", sums=sums, powers=powers)
    steps.work_out(sums, title, operations.row_sums(powers), rows)
    return steps.work_out(weights, f"{weights} = {powers} / {sums}", operations.shares(powers, sums), rows, columns)
