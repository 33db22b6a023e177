"""Small sheets from the course's notes: 112 and 96, the robot's table, a word with two meanings.

What is given is the notes'; where they give nothing, as for the word with two meanings, the numbers are chosen to show
it.
"""

import math

import numpy as np

from kotha.course.worksheet import operations
from kotha.course.worksheet.operations import Array, Product
from kotha.course.worksheet.sheet import GrowingSheet, Sheet, hide, softmax
from kotha.i18n.message import Message, Text

_ROBOT = ("robot", "must", "obey", "orders")
_ROBOT_SCORES = np.array(
    [[0.11, 0.00, 0.81, 0.79], [0.19, 0.50, 0.30, 0.48], [0.53, 0.98, 0.95, 0.14], [0.81, 0.86, 0.38, 0.90]]
)


def _sheet(steps: GrowingSheet, text: str, heading: Text, lead: Message, *remarks: Message) -> Sheet:
    return Sheet(steps.made, steps.tokens, steps.key_tokens, text, remarks=remarks, heading=heading, lead=lead)


def thinking_sheet() -> Sheet:
    """Thinking looks at Thinking and Machines: 112 and 96, divided by 8, and softmax.

    >>> thinking_sheet().steps["weights"].values.round(2).tolist()
    [[0.88, 0.12]]
    """
    steps = GrowingSheet(("Thinking",), ("Thinking", "Machines"))
    title = Message("products = q₁·k₁ and q₁·k₂")
    steps.give("products", title, np.array([[112.0, 96.0]]), steps.tokens, steps.key_tokens)
    steps.give("d_k", Message("d_k, the head's width"), np.array([[64.0]]))
    scaled = operations.over_root("products", "d_k")
    steps.work_out("scores", "scores = products / √d_k", scaled, steps.tokens, steps.key_tokens)
    softmax(steps, "scores")
    unscaled = 1 / (1 + math.exp(96 - 112))
    return _sheet(
        steps,
        "Thinking Machines",
        Message("112 and 96, divided by 8"),
        Message("From two products to two weights, as in the notes."),
        Message(
            "Without the division the weights are {first} and {second}: the second word is gone.",
            first=f"{unscaled:.7f}",
            second=f"{1 - unscaled:.1g}",
        ),
    )


def robot_sheet() -> Sheet:
    """The notes' table of scores, its upper half hidden, and softmax.

    >>> robot_sheet().steps["weights"].values[0].tolist()
    [1.0, 0.0, 0.0, 0.0]
    """
    steps = GrowingSheet(_ROBOT, _ROBOT)
    steps.give("scores", Message("scores, before softmax"), _ROBOT_SCORES, _ROBOT, _ROBOT)
    steps.give("mask", Message("mask: 1 may be looked at, 0 may not"), np.tri(len(_ROBOT)), _ROBOT, _ROBOT)
    softmax(steps, hide(steps, "masked", "scores", "mask"))
    return _sheet(
        steps,
        " ".join(_ROBOT),
        "robot must obey orders",
        Message("Masked self-attention: what comes later is hidden before softmax."),
        Message("The notes say that a hidden score becomes 0; it must become −∞: e^0 is 1 and would get a weight."),
    )


def bank_sheet(words: tuple[str, str, str] = ("bank", "account", "river")) -> Sheet:
    """One word beside two others: its vector leans to the one that is there.

    >>> sheet = bank_sheet()
    >>> [sheet.steps[name].values.round(2).tolist()[0] for name in ("output_1", "output_2")]
    [[1.5, 0.5], [0.5, 1.5]]
    """
    word, first, second = words
    steps = GrowingSheet((word,), words)
    title = Message("X: how much of {first} and of {second} is in each word", first=first, second=second)
    steps.give("X", title, _BANK, words, (first, second))
    title = Message("asks: what {word} looks for, its row of X three times as large", word=word)
    steps.give("asks", title, 3 * _BANK[:1], (word,), (first, second))
    steps.give("d_k", Message("d_k, the width"), np.array([[2.0]]))
    steps.work_out("products", "products = asks × Xᵀ", Product(("asks", "X"), by_rows=True), (word,), words)
    steps.work_out("scores", "scores = products / √d_k", operations.over_root("products", "d_k"), (word,), words)
    for number, (there, gone) in enumerate(((first, second), (second, first)), 1):
        mask = np.array([[float(each != gone) for each in words]])
        hidden = f"mask_{number}"
        title = Message("{name}: in a text with {there}, {gone} is not there", name=hidden, there=there, gone=gone)
        steps.give(hidden, title, mask, (word,), words)
        weights = softmax(steps, hide(steps, f"masked_{number}", "scores", hidden), f"_{number}")
        name = f"output_{number}"
        title = Message(
            "{name} = {weights} × X: {word} beside {there}", name=name, weights=weights, word=word, there=there
        )
        steps.work_out(name, title, Product((weights, "X")), (word,), (first, second))
    return _sheet(
        steps,
        f"{word} … {first} · {word} … {second}",
        Message("{word}: {first} or {second}?", word=word, first=first, second=second),
        Message("One word, two texts: attention mixes in what stands beside it. Numbers are chosen, not learned."),
    )


# The word itself is as near to one meaning as to the other.
_BANK: Array = np.array([[1.0, 1.0], [2.0, 0.0], [0.0, 2.0]])
