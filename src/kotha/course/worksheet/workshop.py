"""The workshop's sheet, questions 1 to 5: three tokens of width 4, and the first of two heads.

Only what the workshop gives is written here; the rest is worked out, without torch, so that the sheet is there at once.
A test holds every number of it against a model that has these weights.
"""

from dataclasses import dataclass, replace

import numpy as np

from kotha.course.worksheet.operations import Array
from kotha.course.worksheet.page import SheetView, sheet_view
from kotha.course.worksheet.sheet import Head, Projection, Sheet, lay_out, token_names
from kotha.course.worksheet.showing import Look
from kotha.errors import UsageError
from kotha.i18n.message import Option, Text
from kotha.i18n.numbers import Language

# Sizes that one can compute by hand, and that still have something to compute.
_FEWEST, _MOST = 2, 12


@dataclass(frozen=True)
class Given:
    """What a sheet is computed from."""

    tokens: tuple[Text, ...]
    x: Array  # (T, C)
    w_q: Array  # (C, D), and so are the other two
    w_k: Array
    w_v: Array

    def head(self, mask: Array | None) -> Head:
        """The head that has these weights."""
        query, key, value = (Projection(matrix) for matrix in (self.w_q, self.w_k, self.w_v))
        return Head(self.x, query, key, value, mask=mask)


WORKSHOP = Given(
    tokens=("বাংলাদেশ", "ব্যাংক", "সুদ"),
    x=np.array([[1.0, 0.5, 0.2, 0.8], [0.3, 0.9, 0.4, 0.1], [0.7, 0.2, 0.6, 0.5]]),
    w_q=np.array([[0.1, 0.2], [0.3, 0.1], [0.2, 0.4], [0.1, 0.3]]),
    w_k=np.array([[0.2, 0.1], [0.1, 0.3], [0.4, 0.2], [0.3, 0.1]]),
    w_v=np.array([[0.3, 0.2], [0.2, 0.4], [0.1, 0.3], [0.4, 0.1]]),
)


def drawn(n_tokens: int, width: int, head_width: int, seed: int) -> Given:
    """A sheet of other sizes and numbers, drawn: one decimal each, as on paper.

    >>> drawn(4, 6, 3, seed=1).w_q.shape
    (6, 3)
    """
    for name, size in (("tokens", n_tokens), ("width", width), ("head width", head_width)):
        if not _FEWEST <= size <= _MOST:
            raise UsageError(
                "{name} {size} makes no sheet for paper; use {fewest} to {most}",
                name=name,
                size=size,
                fewest=_FEWEST,
                most=_MOST,
            )
    random = np.random.default_rng(seed)

    def draw(height: int, size: int) -> Array:
        numbers: Array = random.integers(1, 10, (height, size)) / 10
        return numbers

    matrices = (draw(width, head_width) for _ in range(3))
    return Given(token_names(n_tokens), draw(n_tokens, width), *matrices)


def sizes_of(text: str) -> tuple[int, int, int]:
    """Tokens, width and head width, as one writes them.

    >>> sizes_of("4x6x3")
    (4, 6, 3)
    """
    parts = text.lower().replace("×", "x").split("x")
    if len(parts) != 3 or not all(part.isdecimal() for part in parts):
        raise UsageError("{size} is not TOKENSxWIDTHxHEAD; try 4x6x3", size=Option("size", text))
    n_tokens, width, head_width = map(int, parts)
    return n_tokens, width, head_width


def workshop_sheet(given: Given = WORKSHOP) -> Sheet:
    """The sheet of what is given, in plain numbers.

    >>> workshop_sheet().steps["Q"].values.round(2).tolist()
    [[0.37, 0.57], [0.39, 0.34], [0.3, 0.55]]
    """
    steps = lay_out(given.head(np.tri(len(given.tokens))), given.tokens, shifted=False)  # the causal mask, (T, T)
    return Sheet(steps, given.tokens, given.tokens, text=" ".join(map(str, given.tokens)))


def workshop_view(
    size: str | None = None,
    seed: int | None = None,
    *,
    language: Language = "en",
    rows: int | None = None,
    precision: int | None = None,
) -> SheetView:
    """The workshop's sheet to look at, or one of another ``size`` such as ``4x6x3``, or with numbers that are drawn."""
    called = "workshop" if size is None and seed is None else f"{size or 'workshop'}, seed {seed or 0}"
    return sheet_view(sheet_of_student(size, seed), Look(6 if precision is None else precision, rows), language, called)


def sheet_by_hand(size: str | None = None, seed: int = 0) -> Sheet:
    """The workshop's sheet, or one of another size with numbers that are drawn."""
    return workshop_sheet(WORKSHOP if size is None else drawn(*sizes_of(size), seed=seed))


def sheet_of_student(size: str | None = None, seed: int | None = None) -> Sheet:
    """The workshop's sheet; with a ``seed`` other numbers in it, with a ``size`` as ``sheet_by_hand`` draws it."""
    if seed is None or size is not None:
        return sheet_by_hand(size, seed or 0)
    (n_tokens, width), head_width = WORKSHOP.x.shape, WORKSHOP.w_q.shape[1]
    return workshop_sheet(replace(drawn(n_tokens, width, head_width, seed), tokens=WORKSHOP.tokens))
