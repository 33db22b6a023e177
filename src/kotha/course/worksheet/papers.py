"""The sheets by name: one head, a whole block, the notes' examples, positions; and the reader's own matrices."""

from collections.abc import Callable
from pathlib import Path
from typing import Literal, get_args

from kotha.course.worksheet.block import BLOCK, block_sheet, drawn_block
from kotha.course.worksheet.examples import bank_sheet, robot_sheet, thinking_sheet
from kotha.course.worksheet.own import sheet_of_file
from kotha.course.worksheet.page import SheetView, sheet_view
from kotha.course.worksheet.places import positions_sheet
from kotha.course.worksheet.sheet import Sheet
from kotha.course.worksheet.showing import Look
from kotha.course.worksheet.workshop import workshop_sheet
from kotha.errors import UsageError
from kotha.i18n.numbers import Language

Paper = Literal["attention", "block", "thinking", "robot", "bank", "positions"]
PAPERS: tuple[Paper, ...] = get_args(Paper)
# A word with two meanings: the notes' in English; in Bangla তীর is a shore and an arrow.
_TWO_MEANINGS = {"en": ("bank", "account", "river"), "bn": ("তীর", "ধনুক", "নদী")}


def paper_view(
    name: Paper,
    *,
    seed: int | None = None,
    language: Language = "en",
    rows: int | None = None,
    precision: int | None = None,
) -> SheetView:
    """A sheet other than the workshop's own, to look at; a ``seed`` draws other numbers for the block."""
    called = name if seed is None else f"{name}, seed {seed}"
    look = Look(4 if precision is None else precision, rows)
    return sheet_view(paper_sheet(name, seed, language), look, language, called)


def paper_sheet(name: Paper, seed: int | None = None, language: Language = "en") -> Sheet:
    """A sheet by its name; a ``seed`` draws other numbers for the block.

    >>> paper_sheet("thinking").steps["scores"].values.tolist()
    [[14.0, 12.0]]
    """
    if seed is not None and name != "block":
        raise UsageError("the numbers of the sheet {name!r} are given and are not drawn; leave the seed out", name=name)
    made: dict[str, Callable[[], Sheet]] = {
        "attention": workshop_sheet,
        "block": lambda: block_sheet(BLOCK if seed is None else drawn_block(seed)),
        "thinking": thinking_sheet,
        "robot": robot_sheet,
        "bank": lambda: bank_sheet(_TWO_MEANINGS[language]),
        "positions": positions_sheet,
    }
    return made[name]()


def own_view(
    path: Path, *, language: Language = "en", rows: int | None = None, precision: int | None = None
) -> SheetView:
    """The sheet of the reader's own matrices, to look at."""
    return sheet_view(sheet_of_file(path), Look(6 if precision is None else precision, rows), language, "own")
