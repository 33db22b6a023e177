"""The sheets that need no model: the workshop's head, a whole block, the notes' examples, positions.

``sheets.json`` holds what each gives and says, and its steps; everything else is worked out, without torch, so that a
sheet is there at once. The block has its norms last, as in the paper of 2017 and in the book's chapter 5. Tests hold
every matrix against torch.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Literal, get_args

import numpy as np

from kotha.course.data import bilingual, data_file
from kotha.course.worksheet.operations import COMPUTE, FILE, Array, Matrices
from kotha.course.worksheet.sheet import (
    Labels,
    Sheet,
    SheetStep,
    head_steps,
    make_steps,
    recomputed,
    token_names,
)
from kotha.errors import UsageError
from kotha.i18n.message import Option, Text
from kotha.i18n.numbers import Language
from kotha.report.drawing import Picture, grid

Paper = Literal["attention", "block", "thinking", "robot", "bank", "positions"]
PAPERS: tuple[Paper, ...] = get_args(Paper)
WEIGHTS = ("W_Q", "W_K", "W_V")
# Sizes that one can compute by hand, and that still have something to compute.
_FEWEST, _MOST = 2, 12
# Products that one adds up for a cell, columns of values, and tokens: more is no work for a pencil.
MOST_TERMS, MOST_COLUMNS, MOST_TOKENS = 12, 6, 12
_PICTURE = (20, 512)


def workshop_matrices() -> dict[str, Array]:
    """What the workshop gives: X and the first head's W_Q, W_K and W_V."""
    return {name: np.array(data_file(FILE)["workshop"][name]) for name in ("X", *WEIGHTS)}


def workshop_sheet(given: Matrices | None = None, tokens: Sequence[Text] | None = None) -> Sheet:
    """A causal head over some matrices, in plain numbers: the workshop's, questions 1 to 5, unless others are given.

    >>> workshop_sheet().steps["Q"].values.round(2).tolist()
    [[0.37, 0.57], [0.39, 0.34], [0.3, 0.55]]
    """
    given, names = given or workshop_matrices(), tuple(tokens or data_file(FILE)["workshop"]["tokens"])
    steps = head_steps({**given, "mask": np.tri(len(names))}, names, shifted=False)
    return Sheet(steps, names, names, text=" ".join(map(str, names)), called="workshop")


def student_sheet(size: str | None = None, seed: int | None = None) -> Sheet:
    """The workshop's sheet; with a ``seed`` other numbers in it, with a ``size`` such as 4x6x3 another sheet.

    >>> student_sheet("4x6x3", 1).steps["W_Q"].values.shape
    (6, 3)
    """
    if size is None and seed is None:
        return workshop_sheet()
    n_tokens, width, head_width = (3, 4, 2) if size is None else _sizes(size)
    random = np.random.default_rng(seed or 0)

    def draw(height: int, across: int) -> Array:
        numbers: Array = random.integers(1, 10, (height, across)) / 10  # one decimal each, as on paper
        return numbers

    x = draw(n_tokens, width)
    given = {"X": x, **{name: draw(width, head_width) for name in WEIGHTS}}
    sheet = workshop_sheet(given, None if size is None else token_names(n_tokens))
    return replace(sheet, called=f"{size or 'workshop'}, seed {seed or 0}")


def _sizes(text: str) -> list[int]:
    """Tokens, width and head width."""
    sizes = [int(part) if part.isdecimal() else 0 for part in text.lower().replace("×", "x").split("x")]
    if len(sizes) != 3 or not all(_FEWEST <= size <= _MOST for size in sizes):
        raise UsageError(
            "{size} is not TOKENSxWIDTHxHEAD with each number from {fewest} to {most}; try 4x6x3",
            size=Option("size", text),
            fewest=_FEWEST,
            most=_MOST,
        )
    return sizes


def paper_sheet(name: Paper, seed: int | None = None, language: Language = "en") -> Sheet:
    """A sheet by its name; a ``seed`` draws other numbers for the block, ``language`` chooses the example's words.

    >>> paper_sheet("thinking").steps["scores"].values.tolist()
    [[14.0, 12.0]]
    """
    if seed is not None and name != "block":
        raise UsageError("the sheet {name!r} has fixed numbers; omit the seed", name=name)
    if name == "attention":
        return replace(workshop_sheet(), called=name)
    told = data_file(FILE)[name]
    words = told.get("words", {}).get(language, {})

    def text_of(text: Any) -> Text:
        return text.format(**words) if isinstance(text, str) else bilingual(text, words)

    def labels(entry: Any) -> Labels:
        return tuple(map(text_of, told[entry] if isinstance(entry, str) else entry))

    given = {each: np.array(rows, dtype=np.float64) for each, rows in told["given"].items()}
    rows, columns = ({each: labels(entry) for each, entry in told.get(key, {}).items()} for key in ("rows", "columns"))
    titles = {each: text_of(title) for each, title in told["titles"].items()}
    sheet = Sheet(
        make_steps(told["steps"], given, rows, columns, titles),
        labels("tokens"),
        labels("key_tokens" if "key_tokens" in told else "tokens"),
        text_of(told["text"]),
        remarks=tuple(map(text_of, told.get("remarks", ()))),
        heading=text_of(told["title"]),
        lead=text_of(told["lead"]),
        called=name,
    )
    return sheet if seed is None else _drawn(sheet, seed)


def _drawn(block: Sheet, seed: int) -> Sheet:
    """The same sizes with other numbers, one decimal each."""
    random = np.random.default_rng(seed)
    given = {
        name: random.integers(1 if name == "X" else -9, 10, matrix.shape) / 10
        for name, matrix in block.matrices.items()
        if name == "X" or name.startswith("W_")
    }
    return replace(recomputed(block, given), called=f"block, seed {seed}")


def positions_picture() -> Picture:
    """Sinusoidal positions as a picture, a row for each place: green above zero, brown below.

    All sines stand left of all cosines, as in the notes; a sheet has them in pairs, as the paper prints them.
    """
    n_places, width = _PICTURE
    pairs = positions(n_places, width)
    halves = np.concatenate((pairs[:, 0::2], pairs[:, 1::2]), axis=1)
    names = [str(number) for number in range(n_places)]
    return grid(halves, names, title=f"{n_places} × {width}", digits=None, cell=3)


def positions(n_places: int, width: int) -> Array:
    """Sines and cosines in pairs: (n_places, width)."""
    speeds = COMPUTE["speeds"](np.arange(width // 2, dtype=np.float64)[None], np.array([[float(width)]]))
    return COMPUTE["waves"](np.arange(n_places, dtype=np.float64)[:, None] * speeds)


def for_paper(sheet: Sheet) -> Sheet:
    """The part of a model's sheet that a person can work out: what is too wide for a pencil is taken as given.

    Products of long rows are the machine's, and what only they read falls away; of wide values the first columns do.
    """
    n_tokens = max(len(sheet.tokens), len(sheet.key_tokens))
    if n_tokens > MOST_TOKENS:
        raise UsageError(
            "a worksheet of {n} tokens is too large to do by hand (at most {most}); shorten the text",
            n=n_tokens,
            most=MOST_TOKENS,
        )
    needed, kept = {"output"}, {}
    for name, step in reversed(sheet.steps.items()):
        if name not in needed:
            continue
        kept[name] = replace(step, operation=None) if _is_wide(sheet, step) else step
        needed.update(getattr(kept[name].operation, "operands", ()))
    steps = {name: kept[name] for name in sheet.steps if name in kept}
    if steps["V"].operation is None:  # then only the output reads it, column by column
        for name in ("V", "output"):
            columns, values = steps[name].columns[:MOST_COLUMNS], steps[name].values[:, :MOST_COLUMNS]
            steps[name] = replace(steps[name], columns=columns, values=values)
    return replace(sheet, steps=steps)


def _is_wide(sheet: Sheet, step: SheetStep) -> bool:
    operation = step.operation
    terms = sheet.steps[operation.operands[0]].values.shape[1] if operation and operation.is_product else 0
    return terms > MOST_TERMS or (step.name not in ("weights", "output") and step.values.shape[1] > MOST_TERMS)
