"""What a width costs: the course's table of embedding widths, for any vocabulary.

The table of tokens has a row for each token and a column for each dimension, so its cost grows with both. What a width
is good for is no formula: `near.py` measures it on trained models.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from kotha.errors import UsageError
from kotha.i18n.message import Message
from kotha.report.table import Table

# The course's own.
WIDTHS = (128, 256, 512, 1024)
_MIB = 1 << 20


@dataclass(frozen=True)
class WidthCost:
    """A table of tokens of one width."""

    width: int
    parameters: int
    float32_mib: float  # megabytes as the course counts them: 1,048,576 bytes each
    bfloat16_mib: float
    training_mib: float  # weights, gradients and AdamW's two memories in float32


def width_costs(vocab_size: int, widths: Sequence[int] = WIDTHS) -> list[WidthCost]:
    """Parameters and megabytes of a token table at each width.

    >>> cost = width_costs(32_100, [512])[0]
    >>> cost.parameters, round(cost.float32_mib, 2)
    (16435200, 62.7)
    """
    wrong = next((each for each in (vocab_size, *widths) if each < 1), None)
    if wrong is not None:
        raise UsageError("{n} is no size of a table; vocabulary and widths are whole numbers from 1", n=wrong)
    sizes = [(width, vocab_size * width) for width in widths]
    return [WidthCost(width, n, 4 * n / _MIB, 2 * n / _MIB, 4 * 4 * n / _MIB) for width, n in sizes]


def width_table(vocab_size: int, costs: Sequence[WidthCost]) -> Table:
    """What each width costs, to read."""
    header = [
        *(Message("width"), Message("parameters")),
        *(Message("MiB in float32"), Message("MiB in bfloat16"), Message("MiB to train with AdamW")),
    ]
    rows = []
    for each in costs:
        sizes = (each.float32_mib, each.bfloat16_mib, each.training_mib)
        rows.append([f"{each.width:,}", f"{each.parameters:,}", *(f"{size:,.2f}" for size in sizes)])
    return Table(Message("a table of {n:,} tokens", n=vocab_size), header, rows)
