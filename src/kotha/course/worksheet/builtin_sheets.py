"""Built-in sheets that need no model: the workshop's head, a transformer block, examples from the notes, positions.

``sheets.json`` holds the given numbers, texts and steps of each sheet. Everything else is computed without torch, so a
sheet is available immediately. The block is post-norm, as in “Attention Is All You Need” (2017) and in chapter 5 of the
book. Tests compare every matrix with torch.
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
# Size limits for a sheet that is computed by hand.
_FEWEST, _MOST = 2, 12
# Limits on work by hand: terms per cell, columns of values, tokens.
MOST_TERMS, MOST_COLUMNS, MOST_TOKENS = 12, 6, 12
_PICTURE = (20, 512)


def workshop_matrices() -> dict[str, Array]:
    """Return the matrices from the workshop: X, and W_Q, W_K and W_V of the first head."""
    return {name: np.array(data_file(FILE)["workshop"][name]) for name in ("X", *WEIGHTS)}


def workshop_sheet(given: Matrices | None = None, tokens: Sequence[Text] | None = None) -> Sheet:
    """Return the sheet for a causal head with these matrices (default: the workshop's, as in questions 1 to 5).

    >>> workshop_sheet().steps["Q"].values.round(2).tolist()
    [[0.37, 0.57], [0.39, 0.34], [0.3, 0.55]]
    """
    given, names = given or workshop_matrices(), tuple(tokens or data_file(FILE)["workshop"]["tokens"])
    steps = head_steps({**given, "mask": np.tri(len(names))}, names, shifted=False)
    return Sheet(steps, names, names, text=" ".join(map(str, names)), called="workshop")


def student_sheet(size: str | None = None, seed: int | None = None) -> Sheet:
    """Return the workshop's sheet; ``seed`` draws other numbers, and ``size`` (such as 4x6x3) changes its shape.

    >>> student_sheet("4x6x3", 1).steps["W_Q"].values.shape
    (6, 3)
    """
    if size is None and seed is None:
        return workshop_sheet()
    n_tokens, width, head_width = (3, 4, 2) if size is None else _sizes(size)
    random = np.random.default_rng(seed or 0)

    def draw(height: int, across: int) -> Array:
        numbers: Array = random.integers(1, 10, (height, across)) / 10  # one decimal each, for use on paper
        return numbers

    x = draw(n_tokens, width)
    given = {"X": x, **{name: draw(width, head_width) for name in WEIGHTS}}
    sheet = workshop_sheet(given, None if size is None else token_names(n_tokens))
    return replace(sheet, called=f"{size or 'workshop'}, seed {seed or 0}")


def _sizes(text: str) -> list[int]:
    """Parse tokens, width and head width."""
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
    """Return a built-in sheet; ``seed`` draws other numbers for the block, ``language`` chooses the example's words.

    >>> paper_sheet("thinking").steps["scores"].values.tolist()
    [[14.0, 12.0]]
    """
    if seed is not None and name != "block":
        raise UsageError("the sheet {name!r} has fixed numbers; omit the seed", name=name)
    if name == "attention":
        return replace(workshop_sheet(), called=name)
    entry = data_file(FILE)[name]
    words = entry.get("words", {}).get(language, {})

    def text_of(text: Any) -> Text:
        return text.format(**words) if isinstance(text, str) else bilingual(text, words)

    def labels(key: Any) -> Labels:
        return tuple(map(text_of, entry[key] if isinstance(key, str) else key))

    given = {each: np.array(rows, dtype=np.float64) for each, rows in entry["given"].items()}
    rows, columns = ({each: labels(key) for each, key in entry.get(axis, {}).items()} for axis in ("rows", "columns"))
    titles = {each: text_of(title) for each, title in entry["titles"].items()}
    sheet = Sheet(
        make_steps(entry["steps"], given, rows, columns, titles),
        labels("tokens"),
        labels("key_tokens" if "key_tokens" in entry else "tokens"),
        text_of(entry["text"]),
        remarks=tuple(map(text_of, entry.get("remarks", ()))),
        heading=text_of(entry["title"]),
        lead=text_of(entry["lead"]),
        called=name,
    )
    return sheet if seed is None else _drawn(sheet, seed)


def _drawn(block: Sheet, seed: int) -> Sheet:
    """Return a sheet of the same sizes with other numbers, one decimal each."""
    random = np.random.default_rng(seed)
    given = {
        name: random.integers(1 if name == "X" else -9, 10, matrix.shape) / 10
        for name, matrix in block.matrices.items()
        if name == "X" or name.startswith("W_")
    }
    return replace(recomputed(block, given), called=f"block, seed {seed}")


def positions_picture() -> Picture:
    """Draw sinusoidal position encodings, one row per position: green above zero, brown below.

    All sines are to the left of all cosines, as in the notes; a sheet shows them in pairs, as in the paper.
    """
    n_places, width = _PICTURE
    pairs = positions(n_places, width)
    halves = np.concatenate((pairs[:, 0::2], pairs[:, 1::2]), axis=1)
    names = [str(number) for number in range(n_places)]
    return grid(halves, names, title=f"{n_places} × {width}", digits=None, cell=3)


def positions(n_places: int, width: int) -> Array:
    """Return sinusoidal position encodings with sines and cosines in pairs: (n_places, width)."""
    speeds = COMPUTE["speeds"](np.arange(width // 2, dtype=np.float64)[None], np.array([[float(width)]]))
    return COMPUTE["waves"](np.arange(n_places, dtype=np.float64)[:, None] * speeds)


def for_paper(sheet: Sheet) -> Sheet:
    """Reduce a model's sheet to what can be computed by hand.

    Products with too many terms become given matrices, and steps needed only for them are dropped. If the value matrix
    is wide, only its first columns are kept.
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
    if steps["V"].operation is None:  # in that case only the output uses V, column by column
        for name in ("V", "output"):
            columns, values = steps[name].columns[:MOST_COLUMNS], steps[name].values[:, :MOST_COLUMNS]
            steps[name] = replace(steps[name], columns=columns, values=values)
    return replace(sheet, steps=steps)


def _is_wide(sheet: Sheet, step: SheetStep) -> bool:
    operation = step.operation
    terms = sheet.steps[operation.operands[0]].values.shape[1] if operation and operation.is_product else 0
    return terms > MOST_TERMS or (step.name not in ("weights", "output") and step.values.shape[1] > MOST_TERMS)
