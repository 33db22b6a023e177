"""A sheet: a sequence of matrices, each given or computed from earlier ones.

A step is written as a line: ``X`` is a given matrix, and ``Q = product X W_Q`` is computed by one of the
``operations``, in double precision. ``head_steps`` makes the lines for one attention head from its vectors, its slices
of the weights, and the model's other steps for queries and keys (biases, norms, rotary positions). ``model.py``
compares the result with torch.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from kotha.course.data import bilingual, data_file
from kotha.course.worksheet.operations import FILE, Array, Matrices, Operation, written
from kotha.errors import UsageError
from kotha.i18n.message import Message, Text

Labels = tuple[Text, ...]


@dataclass(frozen=True)
class SheetStep:
    """A matrix on the sheet with its labels and operation."""

    name: str
    title: Text
    rows: Labels
    columns: Labels
    values: Array
    operation: Operation | None = None  # None for given matrices


@dataclass(frozen=True)
class Sheet:
    """A worksheet: its steps in order, and their source."""

    steps: dict[str, SheetStep]
    tokens: Labels
    key_tokens: Labels
    text: Text
    place: str = ""  # name of the attention module, such as blocks.0.attention; empty for built-in sheets
    layer: int = 0
    head: int = 0
    target: str | None = None
    remarks: tuple[Text, ...] = ()
    heading: Text = ""  # title of a sheet that is not one attention head
    lead: Text = ""  # description of such a sheet
    called: str | None = None  # its name in a score file; None: no score file

    @property
    def title(self) -> Text:
        """Title of the sheet."""
        if self.heading:
            return self.heading
        if self.place:
            return Message("Worksheet: {place}, head {head}", place=self.place, head=self.head)
        return Message("Self-attention by hand")

    @property
    def matrices(self) -> dict[str, Array]:
        """Every matrix by name."""
        return {name: step.values for name, step in self.steps.items()}

    def arithmetic(self, name: str, row: int, column: int, precision: int) -> str:
        """Write the arithmetic for one cell: name, operation and result."""
        step = self.steps[name]
        assert step.operation is not None, f"{name} is given, not computed"
        place = f"{row + 1}" if step.values.shape[1] == 1 else f"{row + 1},{column + 1}"
        arithmetic = step.operation.arithmetic(self.matrices, row, column, precision)
        return f"{name}[{place}] = {arithmetic} = {written(step.values[row, column], precision)}"

    @property
    def masked(self) -> Array:
        """The input to the softmax: masked scores, or plain scores if there is no mask."""
        return self.steps["masked" if "masked" in self.steps else "scores"].values


def make_steps(
    lines: Iterable[str],
    given: Matrices,
    rows: Mapping[str, Labels],
    columns: Mapping[str, Labels],
    titles: Mapping[str, Text] | None = None,
) -> dict[str, SheetStep]:
    """Build the steps for some lines; missing labels are taken from the operands, or are numbers.

    >>> make_steps(["X", "A = product X X"], {"X": np.array([[2.0]])}, {"X": ("a",)}, {})["A"].rows
    ('a',)
    """
    made: dict[str, SheetStep] = {}
    for line in lines:
        head, _, step = line.rpartition(": ")
        name, _, how = step.partition(" = ")
        operation, values = None, given.get(name)
        labels: list[Labels] = [(), ()]
        if how:
            kind, *operands = how.split()
            operation = Operation(kind, tuple(operands))
            values = operation.compute({each: made[each].values for each in operands})
            first, last = made[operands[0]], made[operands[-1]]
            across = {"product": last.columns, "product_by_rows": last.rows}.get(kind, first.columns)
            labels = [first.rows, across if len(across) == values.shape[1] else ()]
        assert values is not None, f"{name} is neither given nor computed"
        down, across = (
            own.get(name) or found or tuple(map(str, range(1, size + 1)))
            for own, found, size in zip((rows, columns), labels, values.shape, strict=True)
        )
        title = (titles or {}).get(name) or _title(name, operation)
        if head:
            title = Message("head {n}: {title}", n=head.removeprefix("head "), title=title)
        made[name] = SheetStep(name, title, down, across, np.asarray(values, np.float64), operation)
    return made


def _title(name: str, operation: Operation | None) -> Text:
    if operation is None:
        given = data_file(FILE)["given"]
        return bilingual(given.get(name) or given[name[:2]], {"name": name})
    names = {"name": name, **dict(zip("abc", operation.operands, strict=False))}
    return bilingual(data_file(FILE)["operations"][operation.kind]["title"], names)


def recomputed(sheet: Sheet, given: Matrices) -> Sheet:
    """Return the sheet with different given matrices of the same shapes; all other matrices are recomputed."""
    made: dict[str, Array] = {}
    steps = {}
    for name, step in sheet.steps.items():
        if step.operation is not None:
            values = step.operation.compute(made)
        else:
            values = np.asarray(given.get(name, step.values), dtype=np.float64)
            if values.shape != step.values.shape:
                shapes = {"given": str(values.shape), "wanted": str(step.values.shape)}
                raise UsageError("{name} has shape {given}, but the sheet needs {wanted}", name=name, **shapes)
        made[name] = values
        steps[name] = replace(step, values=values)
    return replace(sheet, steps=steps)


def token_names(count: int) -> Labels:
    """Return labels for tokens without text."""
    return tuple(Message("token {n}", n=number) for number in range(1, count + 1))


def head_steps(
    given: Matrices, tokens: Sequence[Text], key_tokens: Sequence[Text] | None = None, shifted: bool = True
) -> dict[str, SheetStep]:
    """Build the steps for a head from its matrices; ``shifted`` subtracts each row's largest score before exp.

    Queries are computed from ``X`` (T, C), keys and values from ``M`` (S, C; default: X). Queries use the matrix
    ``W_Q`` (C, D), the bias ``b_Q`` and the norm gains ``g_Q`` (both 1, D); the names for K and V are analogous.
    ``mask`` (T, S) is 1 where a query may attend. ``speeds`` (1, D/2) are the rotation speeds of rotary positions.
    ``eps`` (1, 1) is added under the root in norms.
    """
    asking, looked_at = tuple(tokens), tuple(tokens if key_tokens is None else key_tokens)
    width = float(given["W_Q"].shape[1])
    places = np.arange(len(asking), dtype=np.float64)[:, None]
    return make_steps(
        _head_lines(given, shifted),
        {**given, "d_k": np.array([[width]]), "places": places},
        rows={**dict.fromkeys(("X", "mask", "places"), asking), "M": looked_at},
        columns={"mask": looked_at},
    )


def _head_lines(given: Matrices, shifted: bool) -> Iterator[str]:
    source = "M" if "M" in given else "X"
    yield from ("X", "M", "W_Q", "W_K", "W_V") if source == "M" else ("X", "W_Q", "W_K", "W_V")
    if "speeds" in given:
        yield from ("places", "speeds", "angles = product places speeds")
    yield from _projection_lines("Q", "X", given)
    yield from _projection_lines("K", source, given)
    yield from _projection_lines("V", source, given)
    yield from ("d_k", "products = product_by_rows Q K", "scores = over_root products d_k")
    read = "scores"
    if "mask" in given:
        yield from ("mask", "masked = masked scores mask")
        read = "masked"
    if shifted:
        yield from (f"largest = largest {read}", f"powers = shifted_powers {read} largest")
    else:
        yield f"powers = powers {read}"
    yield from ("sums = row_sums powers", "weights = shares powers sums", "output = product weights V")


def _projection_lines(letter: str, source: str, given: Matrices) -> Iterator[str]:
    """Yield the lines from vectors to Q, K or V, one for each step in the model; the last is named Q, K or V."""
    bias, gain, size = f"b_{letter}", f"g_{letter}", f"size_{letter}"
    done: list[tuple[list[str], str]] = [([], f"product {source} W_{letter}")]
    if bias in given:
        done.append(([bias], f"add_row {{}} {bias}"))
    if gain in given:
        eps = ["eps"] if letter == "Q" else []  # shared by all norms
        done.append(([*eps, gain, f"{size} = root_mean_square {{}} eps"], f"normed {{}} {size} {gain}"))
    if "speeds" in given and letter != "V":
        done.append(([], "turned {} angles"))
    for number, (before, how) in enumerate(done):
        read = f"{letter}{number - 1}"
        yield from (line.format(read) for line in before)
        yield f"{letter if number == len(done) - 1 else f'{letter}{number}'} = {how.format(read)}"
