"""``kotha inside worksheet``: one attention head as arithmetic, and the workshop's questions as a quiz."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from cyclopts import Parameter

from kotha.cli.inside.exercise import practise, sheet_by_hand
from kotha.cli.inside.opening import open_model
from kotha.cli.terminal import notes, print_json, results, table
from kotha.errors import UsageError

if TYPE_CHECKING:
    from kotha.inside.worksheet.sheet import Sheet
    from kotha.inside.worksheet.shown import Look

# A sheet of a model has more numbers than the workshop's, and each needs less room.
_DECIMALS = {"workshop": 6, "model": 4}


# What the flags say when nobody gave them, and all that the workshop's sheet has.
_THE_ONLY_HEAD = {"layer": 0, "head": 0, "stack": None, "part": "attention"}


def worksheet(
    *,
    run: Annotated[Path | None, Parameter(help="A run or model folder; left out: the workshop's sheet.")] = None,
    text: Annotated[str | None, Parameter(help="What the model reads.")] = None,
    target: Annotated[str | None, Parameter(help="What a Seq2Seq has written to it.")] = None,
    layer: Annotated[int, Parameter(help="Which layer, counted from 0.")] = 0,
    head: Annotated[int, Parameter(help="Which head, counted from 0.")] = 0,
    stack: Annotated[Literal["encoder", "decoder"] | None, Parameter(help="Of a Seq2Seq; left out: decoder.")] = None,
    part: Annotated[Literal["attention", "cross"], Parameter(help="cross looks at the source.")] = "attention",
    rows: Annotated[int | None, Parameter(help="Rows whose arithmetic is written out, from the last.")] = None,
    precision: Annotated[int | None, Parameter(help="Decimals that are shown, at most.")] = None,
    html: Annotated[Path | None, Parameter(help="Write one offline page to this file.")] = None,
    xlsx: Annotated[Path | None, Parameter(help="Write a spreadsheet of live formulas to this file.")] = None,
    exercise: Annotated[
        list[str] | None,
        Parameter(
            consume_multiple=(0, 1), negative="", help="Ask the workshop's questions instead: all, or one such as 7."
        ),
    ] = None,
    language: Annotated[Literal["en", "bn"], Parameter(help="Of the questions.")] = "en",
    preset: Annotated[str, Parameter(help="Whose sizes questions 6 to 11 are about.")] = "bangla-58m",
    batch_size: Annotated[int, Parameter(help="Sequences a step, in the questions.")] = 64,
    steps: Annotated[int | None, Parameter(help="max_iters of question 7c; left out: the course recipe's.")] = None,
    size: Annotated[
        str | None, Parameter(help="A drawn sheet of other sizes instead: TOKENSxWIDTHxHEAD, 4x6x3.")
    ] = None,
    seed: Annotated[int, Parameter(help="Which numbers --size draws.")] = 0,
    as_json: Annotated[
        bool, Parameter(name="--json", negative="", help="One JSON object on stdout; −∞ is null.")
    ] = False,
) -> None:
    """Lay out one attention head step by step: products, sums, scaling, mask, exponentials, weights, output."""
    if exercise is not None:
        if run is not None or html is not None or xlsx is not None:
            raise UsageError("--exercise asks the workshop's questions; leave --run, --html and --xlsx out")
        practise(exercise[0] if exercise else None, language, preset, batch_size, steps, size, seed, as_json)
        return
    sheet = _sheet(run, text, target, size, seed, layer=layer, head=head, stack=stack, part=part)
    look = _look(rows, precision, "workshop" if run is None else "model")
    for file, write in ((html, _write_page), (xlsx, _write_spreadsheet)):
        if file is not None:
            write(file, sheet, look)
            notes().print(f"kotha: wrote {file}", markup=False)
    if as_json:
        from kotha.inside.worksheet.shown import as_json as plain

        print_json(plain(sheet))
    elif html is None and xlsx is None:
        _print(sheet, look)


def _sheet(
    run: Path | None, text: str | None, target: str | None, size: str | None, seed: int, **which: Any
) -> "Sheet":
    if run is None:
        if text is not None or target is not None:
            raise UsageError("--text is read by a model: name one with --run, or leave --text out for the workshop's")
        if which != _THE_ONLY_HEAD:
            raise UsageError("--layer, --head, --stack and --part choose in a model: name one with --run")
        return sheet_by_hand(size, seed)
    if size is not None:
        raise UsageError("--size draws a sheet to compute by hand; leave --run out for it")
    if text is None:
        raise UsageError('give the model something to read: --text "…"')
    from kotha.inside.worksheet.model import model_sheet

    return model_sheet(open_model(run), text, target=target, **which)


def _look(rows: int | None, precision: int | None, kind: str) -> "Look":
    from kotha.inside.worksheet.shown import Look

    if rows is not None and rows < 0:
        raise UsageError(f"--rows {rows} is less than none; use 0 or more")
    if precision is not None and not 0 <= precision <= 15:
        raise UsageError(f"--precision {precision} cannot be shown; use 0 to 15 decimals")
    return Look(_DECIMALS[kind] if precision is None else precision, rows)


def _print(sheet: "Sheet", look: "Look") -> None:
    from kotha.inside.worksheet.page import sheet_title
    from kotha.inside.worksheet.shown import show

    console = results()
    console.print(sheet_title(sheet), style="bold", markup=False)
    console.print(sheet.text if sheet.target is None else f"{sheet.text} → {sheet.target}", markup=False)
    for remark in sheet.remarks:
        console.print(remark, markup=False)
    for number, step in enumerate(show(sheet, look), 1):
        console.print()
        console.print(table(f"{number}. {step.title}", step.header, step.rows))
        if step.remark:
            console.print(step.remark, markup=False, style="dim")
        for line in step.sums:
            console.print(f"  {line}", markup=False)


def _write_page(file: Path, sheet: "Sheet", look: "Look") -> None:
    from kotha.files import write_whole
    from kotha.inside.worksheet.page import worksheet_page

    write_whole(file, worksheet_page(sheet, look))


def _write_spreadsheet(file: Path, sheet: "Sheet", look: "Look") -> None:
    from kotha.files import whole_file
    from kotha.inside.worksheet.spreadsheet import spreadsheet

    made = spreadsheet(sheet)
    with whole_file(file) as stream:
        stream.buffer.write(made)
