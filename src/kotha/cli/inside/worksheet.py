"""``kotha inside worksheet``: one attention head, or a whole block, as arithmetic."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from kotha.cli.flags import InLanguage, flag, written
from kotha.cli.inside.opening import Html, RunOrNone, open_model
from kotha.cli.spoken import tell
from kotha.cli.terminal import print_json, results, table
from kotha.errors import UsageError
from kotha.i18n.catalogue import translate
from kotha.i18n.message import Message
from kotha.storage import bundled

if TYPE_CHECKING:
    from kotha.course.worksheet.page import SheetView


def worksheet(
    *,
    sheet: Annotated[
        Literal["attention", "block", "thinking", "robot", "bank", "positions"],
        flag("Which: one head; a whole block to the guess; the notes' 112 and 96, robot, bank; positions."),
    ] = "attention",
    given: Annotated[Path | None, flag("Your own X, W_Q, W_K and W_V: a .json or .csv file.")] = None,
    run: RunOrNone = None,
    text: Annotated[str | None, flag("What the model reads; without it and without --run: the workshop's.")] = None,
    target: Annotated[str | None, flag("What a Seq2Seq has written to it.")] = None,
    layer: Annotated[int, flag("Which layer, counted from 0.")] = 0,
    head: Annotated[int, flag("Which head, counted from 0.")] = 0,
    stack: Annotated[Literal["encoder", "decoder"] | None, flag("Of a Seq2Seq; left out: decoder.")] = None,
    part: Annotated[Literal["attention", "cross"], flag("cross looks at the source.")] = "attention",
    rows: Annotated[int | None, flag("Rows whose arithmetic is written out, from the last.")] = None,
    precision: Annotated[
        int | None, flag("Decimals that are shown; of small numbers as many digits that count.")
    ] = None,
    html: Html = None,
    picture: Annotated[Path | None, written("Write 20 × 512 positions as a picture to this file.", ".svg")] = None,
    xlsx: Annotated[Path | None, written("Write a spreadsheet of live formulas to this file.", ".xlsx")] = None,
    exercise: Annotated[
        list[str] | None,
        flag("As `kotha inside exercise`: all, or one such as 7.", consume_multiple=(0, 1)),
    ] = None,
    language: InLanguage = "en",
    size: Annotated[str | None, flag("A drawn sheet of other sizes instead: TOKENSxWIDTHxHEAD, 4x6x3.")] = None,
    seed: Annotated[
        int | None, flag("Draw other numbers: the sheet of `kotha inside exercise` with this seed.")
    ] = None,
    as_json: Annotated[bool, flag("One JSON object on stdout; −∞ is null.", name="--json")] = False,
) -> None:
    """Lay out one attention head step by step: products, sums, scaling, mask, exponentials, weights, output."""
    which: dict[str, Any] = {"layer": layer, "head": head, "stack": stack, "part": part}
    if exercise is not None:
        from kotha.cli.inside.exercise import exercise as practise

        if run is not None or html is not None or xlsx is not None:
            raise UsageError("--exercise asks the workshop's questions; leave --run, --html and --xlsx out")
        practise(*exercise, language=language, size=size, seed=seed, as_json=as_json)
        return
    if picture is not None:
        from kotha.course.worksheet.papers import positions_picture

        positions_picture().save(picture)
        tell(Message("wrote {path}", path=picture))
        if sheet == "attention":
            return
    if sheet != "attention" or given is not None:
        from kotha.course.worksheet.own import sheet_of_file
        from kotha.course.worksheet.papers import paper_sheet

        if run is not None or text is not None or size is not None or (given is not None and sheet != "attention"):
            raise UsageError("--sheet and --given each stand alone: leave --run, --text and --size out")
        made = sheet_of_file(given) if given else paper_sheet(sheet, seed, language)
    elif run is None and text is None:
        from kotha.course.worksheet.papers import student_sheet

        if target is not None:
            raise UsageError("--target is read by a Seq2Seq: name one with --run, and give it --text")
        if which != {"layer": 0, "head": 0, "stack": None, "part": "attention"}:
            raise UsageError("--layer, --head, --stack and --part choose in a model: give it --text to read")
        made = student_sheet(size, seed)
    else:
        from kotha.course.worksheet.model import model_sheet

        if size is not None:
            raise UsageError("--size draws a sheet to compute by hand; leave --run and --text out for it")
        if text is None:
            raise UsageError('give the model something to read: --text "…"')
        made = model_sheet(open_model(run or bundled.FOLDER), text, target=target, **which)
    from kotha.course.worksheet.page import sheet_view

    view = sheet_view(made, language=language, rows=rows, precision=precision)
    for file, write in ((html, view.save), (xlsx, view.save_spreadsheet)):
        if file is not None:
            tell(Message("wrote {path}", path=write(file)))
    if as_json:
        print_json(view.to_dict())
    elif html is None and xlsx is None:
        _print(view)


def _print(view: "SheetView") -> None:
    console, sheet = results(), view.found
    console.print(view.title, style="bold", markup=False)
    text = translate(sheet.text, view.language)
    console.print(text if sheet.target is None else f"{text} → {sheet.target}", markup=False)
    for remark in view.remarks:
        console.print(remark, markup=False)
    for number, step in enumerate(view.steps, 1):
        console.print()
        console.print(table(f"{number}. {step.title}", step.header, step.rows))
        if step.remark:
            console.print(step.remark, markup=False, style="dim")
        for line in step.sums:
            console.print(f"  {line}", markup=False)
