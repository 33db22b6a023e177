"""``kotha inside worksheet``: one attention head, or a whole block, as arithmetic."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from kotha.cli.flags import InLanguage, flag, group, written
from kotha.cli.inside.opening import Html, RunOrNone
from kotha.cli.spoken import said, tell
from kotha.cli.terminal import Table, print_json, print_parts
from kotha.errors import UsageError
from kotha.i18n.message import Message

if TYPE_CHECKING:
    from kotha.api.worksheet import SheetView


@group
@dataclass(frozen=True, kw_only=True)
class OfSheet:
    """Which sheet, and how it is written: one flag for each field."""

    sheet: Annotated[
        Literal["attention", "block", "thinking", "robot", "bank", "positions"],
        flag("Which: one head; a whole block to the guess; the notes' 112 and 96, robot, bank; positions."),
    ] = "attention"
    given: Annotated[Path | None, flag("Your own X, W_Q, W_K and W_V: a .json or .csv file.")] = None
    run: RunOrNone = None
    text: Annotated[str | None, flag("What the model reads; without it and without --run: the workshop's.")] = None
    target: Annotated[str | None, flag("What a Seq2Seq has written to it.")] = None
    layer: Annotated[int, flag("Which layer, counted from 0.")] = 0
    head: Annotated[int, flag("Which head, counted from 0.")] = 0
    stack: Annotated[Literal["encoder", "decoder"] | None, flag("Of a Seq2Seq; left out: decoder.")] = None
    part: Annotated[Literal["attention", "cross"], flag("cross looks at the source.")] = "attention"
    rows: Annotated[int | None, flag("Rows whose arithmetic is written out, from the last.")] = None
    precision: Annotated[int | None, flag("Decimals that are shown; of small numbers as many digits that count.")] = (
        None
    )
    size: Annotated[str | None, flag("A drawn sheet of other sizes instead: TOKENSxWIDTHxHEAD, 4x6x3.")] = None
    seed: Annotated[int | None, flag("Draw other numbers: the sheet of `kotha inside exercise` with this seed.")] = None


def worksheet(
    *,
    asked: OfSheet = OfSheet(),  # noqa: B008 - frozen
    html: Html = None,
    picture: Annotated[Path | None, written("Write 20 × 512 positions as a picture to this file.", ".svg")] = None,
    xlsx: Annotated[Path | None, written("Write a spreadsheet of live formulas to this file.", ".xlsx")] = None,
    exercise: Annotated[
        list[str] | None,
        flag("As `kotha inside exercise`: all, or one such as 7.", consume_multiple=(0, 1)),
    ] = None,
    language: InLanguage = "en",
    as_json: Annotated[bool, flag("One JSON object on stdout; −∞ is null.", name="--json")] = False,
) -> None:
    """Lay out one attention head step by step: products, sums, scaling, mask, exponentials, weights, output."""
    if exercise is not None:
        from kotha.cli.inside.tutor import exercise as practise

        if asked.run is not None or html is not None or xlsx is not None:
            raise UsageError("--exercise asks the workshop's questions; leave --run, --html and --xlsx out")
        practise(*exercise, language=language, size=asked.size, seed=asked.seed, as_json=as_json)
        return
    from kotha.api.worksheet import positions_picture
    from kotha.api.worksheet import worksheet as lay_out

    if picture is not None:
        positions_picture().save(picture)
        tell(Message("wrote {path}", path=picture))
        if asked.sheet == "attention":
            return
    view = lay_out(**vars(asked), language=language)
    for file, write in ((html, view.save), (xlsx, view.save_spreadsheet)):
        if file is not None:
            tell(Message("wrote {path}", path=write(file)))
    if as_json:
        print_json(view)
    elif html is None and xlsx is None:
        _print(view)


def _print(view: "SheetView") -> None:

    print_parts(view.title, style="bold")
    arrow = "" if view.found.target is None else f" → {view.found.target}"
    print_parts(Message("{text}{arrow}", text=view.found.text, arrow=arrow), *view.remarks)
    for number, step in enumerate(view.steps, 1):
        print_parts("", Table(f"{number}. {said(step.title)}", step.header, step.rows))
        if step.remark:
            print_parts(step.remark, style="dim")
        print_parts(*(f"  {line}" for line in step.sums))
