"""Small sheets from the course's notes: 112 and 96, the robot's table, a word with two meanings.

What is given is the notes'; where they give nothing, as for the word with two meanings, the numbers are chosen to show
it.
"""

import math

import numpy as np

from kotha.course.worksheet import operations
from kotha.course.worksheet.operations import Array, Product
from kotha.course.worksheet.sheet import GrowingSheet, Sheet

_ROBOT = ("robot", "must", "obey", "orders")
_ROBOT_SCORES = np.array(
    [[0.11, 0.00, 0.81, 0.79], [0.19, 0.50, 0.30, 0.48], [0.53, 0.98, 0.95, 0.14], [0.81, 0.86, 0.38, 0.90]]
)


def softmax_steps(steps: GrowingSheet, read: str, end: str = "", rows: tuple[str, ...] | None = None) -> str:
    """Largest, powers, sums and weights of some scores; ``end`` is put behind every name."""
    down, across = rows or steps.tokens, steps.key_tokens
    largest, powers, sums, weights = (f"{name}{end}" for name in ("largest", "powers", "sums", "weights"))
    steps.work_out(largest, f"{largest} of each row of {read}", operations.largest(read), down)
    title = f"{powers} = e^({read} − {largest})"
    steps.work_out(powers, title, operations.shifted_powers(read, largest), down, across)
    steps.work_out(sums, f"{sums} of each row of {powers}", operations.row_sums(powers), down)
    return steps.work_out(weights, f"{weights} = {powers} / {sums}", operations.shares(powers, sums), down, across)


def _sheet(steps: GrowingSheet, text: str, heading: str, lead: str, *remarks: str) -> Sheet:
    return Sheet(
        steps.made,
        steps.tokens,
        steps.key_tokens,
        text,
        place="",
        layer=0,
        head=0,
        remarks=remarks,
        heading=heading,
        lead=lead,
    )


def thinking_sheet() -> Sheet:
    """Thinking looks at Thinking and Machines: 112 and 96, divided by 8, and softmax.

    >>> thinking_sheet().steps["weights"].values.round(2).tolist()
    [[0.88, 0.12]]
    """
    steps = GrowingSheet(("Thinking",), ("Thinking", "Machines"))
    steps.give("products", "products = q₁·k₁ and q₁·k₂", np.array([[112.0, 96.0]]), steps.tokens, steps.key_tokens)
    steps.give("d_k", "d_k, the head's width", np.array([[64.0]]))
    title = "scores = products / √d_k"
    steps.work_out("scores", title, operations.over_root("products", "d_k"), steps.tokens, steps.key_tokens)
    softmax_steps(steps, "scores")
    unscaled = 1 / (1 + math.exp(96 - 112))
    return _sheet(
        steps,
        "Thinking Machines",
        "112 and 96, divided by 8",
        "From two products to two weights, as in the notes.",
        f"Without the division the weights are {unscaled:.7f} and {1 - unscaled:.1g}: the second word is gone.",
    )


def robot_sheet() -> Sheet:
    """The notes' table of scores, its upper half hidden, and softmax.

    >>> robot_sheet().steps["weights"].values[0].tolist()
    [1.0, 0.0, 0.0, 0.0]
    """
    steps = GrowingSheet(_ROBOT, _ROBOT)
    steps.give("scores", "scores, before softmax", _ROBOT_SCORES, _ROBOT, _ROBOT)
    steps.give("mask", "mask: 1 may be looked at, 0 may not", np.tri(len(_ROBOT)), _ROBOT, _ROBOT)
    title = "masked = scores, −∞ where the mask is 0"
    steps.work_out("masked", title, operations.masked_scores("scores", "mask"), _ROBOT, _ROBOT)
    softmax_steps(steps, "masked")
    return _sheet(
        steps,
        " ".join(_ROBOT),
        "robot must obey orders",
        "Masked self-attention: what comes later is hidden before softmax.",
        "The notes say that a hidden score becomes 0; it must become −∞: e^0 is 1 and would get a weight.",
    )


def bank_sheet(words: tuple[str, str, str] = ("bank", "account", "river")) -> Sheet:
    """One word beside two others: its vector leans to the one that is there.

    >>> sheet = bank_sheet()
    >>> [sheet.steps[name].values.round(2).tolist()[0] for name in ("output_1", "output_2")]
    [[1.5, 0.5], [0.5, 1.5]]
    """
    word, first, second = words
    steps = GrowingSheet((word,), words)
    steps.give("X", f"X: how much of {first} and of {second} is in each word", _BANK, words, (first, second))
    steps.give(
        "asks",
        f"asks: what {word} looks for, its row of X three times as large",
        3 * _BANK[:1],
        (word,),
        (first, second),
    )
    steps.give("d_k", "d_k, the width", np.array([[2.0]]))
    steps.work_out("products", "products = asks × Xᵀ", Product(("asks", "X"), by_rows=True), (word,), words)
    steps.work_out("scores", "scores = products / √d_k", operations.over_root("products", "d_k"), (word,), words)
    for number, (there, gone) in enumerate(((first, second), (second, first)), 1):
        mask = np.array([[float(each != gone) for each in words]])
        steps.give(
            f"mask_{number}", f"mask_{number}: in a text with {there}, {gone} is not there", mask, (word,), words
        )
        name = f"masked_{number}"
        steps.work_out(
            name,
            f"{name} = scores, −∞ where the mask is 0",
            operations.masked_scores("scores", f"mask_{number}"),
            (word,),
            words,
        )
        weights = softmax_steps(steps, name, f"_{number}")
        title = f"output_{number} = {weights} × X: {word} beside {there}"
        steps.work_out(f"output_{number}", title, Product((weights, "X")), (word,), (first, second))
    return _sheet(
        steps,
        f"{word} … {first} · {word} … {second}",
        f"{word}: {first} or {second}?",
        "One word, two texts: attention mixes in what stands beside it. Numbers are chosen, not learned.",
    )


# The word itself is as near to one meaning as to the other.
_BANK: Array = np.array([[1.0, 1.0], [2.0, 0.0], [0.0, 2.0]])
