"""Positions on paper: sines and cosines of slower and slower waves, four numbers a place; and 512 as a picture."""

import numpy as np

from kotha.course.worksheet import operations
from kotha.course.worksheet.operations import Array, Product, Waves
from kotha.course.worksheet.sheet import GrowingSheet, Sheet
from kotha.errors import UsageError
from kotha.i18n.message import Message
from kotha.report.drawing import Picture, grid

_MOST_PLACES, _MOST_WIDTH = 64, 1024
PICTURE = (20, 512)


def positions_sheet(n_places: int = 6, width: int = 4) -> Sheet:
    """The sheet of some places.

    >>> positions_sheet().steps["positions"].values[1].round(4).tolist()
    [0.8415, 0.5403, 0.01, 1.0]
    """
    _check(n_places, width)
    names = tuple(Message("place {n}", n=number) for number in range(n_places))
    steps = GrowingSheet(names, names)
    steps.give("places", Message("places, counted from 0"), np.arange(n_places, dtype=np.float64)[:, None], names)
    steps.give("pairs", Message("pairs of columns, counted from 0"), np.arange(width // 2, dtype=np.float64)[None])
    steps.give("width", Message("width of a vector, d"), np.array([[float(width)]]))
    title = Message("speeds = 1 / 10000^(2 × pair / d)")
    steps.work_out("speeds", title, operations.speeds_of_pairs("pairs", "width"), (Message("speed"),))
    steps.work_out("angles", "angles = places × speeds", Product(("places", "speeds")), names)
    title = Message("positions: the sine and the cosine of each angle")
    steps.work_out("positions", title, Waves(("angles",)), names)
    return Sheet(
        steps.made,
        names,
        names,
        text=Message("{n} places, {width} numbers each", n=n_places, width=width),
        heading=Message("Positions by hand"),
        lead=Message("What tells a place: sines and cosines, each pair of columns slower than the one before."),
        remarks=(Message("These rows are added to the tokens' vectors, not joined to them."),),
    )


def positions_picture(n_places: int = PICTURE[0], width: int = PICTURE[1]) -> Picture:
    """The same as a picture, a row for each place: green above zero, brown below.

    All sines stand left of all cosines, as in the notes; a sheet has them in pairs, as the paper prints them.
    """
    _check(n_places, width)
    names = [str(number) for number in range(n_places)]
    return grid(
        in_halves(waves(n_places, width)),
        names,
        title=f"{n_places} × {width}",
        digits=None,
        cell=3 if width > 64 else 24,
    )


def waves(n_places: int, width: int) -> Array:
    """All positions: (n_places, width)."""
    return positions_sheet(n_places, width).steps["positions"].values


def in_halves(pairs: Array) -> Array:
    """Columns in another order: all sines, then all cosines.

    >>> in_halves(np.array([[0.0, 1.0, 2.0, 3.0]])).tolist()
    [[0.0, 2.0, 1.0, 3.0]]
    """
    return np.concatenate((pairs[:, 0::2], pairs[:, 1::2]), axis=1)


def _check(n_places: int, width: int) -> None:
    if not 1 <= n_places <= _MOST_PLACES:
        raise UsageError("{n} places make no sheet; use 1 to {most}", n=n_places, most=_MOST_PLACES)
    if width % 2 or not 2 <= width <= _MOST_WIDTH:
        raise UsageError(
            "a width of {width} has no pairs of sine and cosine; use an even number, 2 to {most}",
            width=width,
            most=_MOST_WIDTH,
        )
