"""Attention as arithmetic: ``kotha inside worksheet``, a tutor (``exercise``), and scores for a class (``score``)."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from cyclopts import Parameter
from rich.text import Text

from kotha.api.options import SheetOptions
from kotha.cli.inside.views import Html
from kotha.cli.interrupts import read_line
from kotha.cli.language import current_language, log, translate
from kotha.cli.options import Flat, group, written
from kotha.cli.terminal import Output, Table
from kotha.errors import UsageError
from kotha.i18n.message import Message

if TYPE_CHECKING:
    from kotha.api.worksheet import SheetView


def worksheet(
    *,
    sheet: Annotated[SheetOptions, Flat] = SheetOptions(),  # noqa: B008 - frozen
    html: Html = None,
    picture: Annotated[Path | None, written(".svg")] = None,
    xlsx: Annotated[Path | None, written(".xlsx")] = None,
) -> Output | None:
    """Write out the arithmetic of an attention head or a block, for the course's example or for your own model.

    Examples: `kotha inside worksheet --html sheet.html`, `kotha inside worksheet --run run --text 'নদীর ধারে' --layer 1
    --head 2`.

    Args:
        picture: Output .svg file for a picture of the position vectors (20 positions, 512 dimensions).
        xlsx: Output .xlsx file for a spreadsheet with live formulas.
    """
    from kotha.api.worksheet import positions_picture
    from kotha.api.worksheet import worksheet as lay_out

    if picture is not None:
        positions_picture().save(picture)
        log(Message("wrote {path}", path=picture))
        if sheet.sheet == "attention":
            return None
    view = lay_out(sheet, current_language())
    for file, write in ((html, view.save), (xlsx, view.save_spreadsheet)):
        if file is not None:
            log(Message("wrote {path}", path=write(file)))
    return Output(view, *(_steps(view) if html is None and xlsx is None else ()))


def _steps(view: "SheetView") -> list[Any]:
    arrow = "" if view.found.target is None else f" → {view.found.target}"
    parts: list[Any] = [Text(translate(view.title), "bold"), f"{view.found.text}{arrow}", *view.remarks]
    for number, step in enumerate(view.steps, 1):
        parts += ["", Table(f"{number}. {translate(step.title)}", step.header, step.rows)]
        parts += [Text(translate(step.remark), "dim")] if step.remark else []
        parts += [f"  {line}" for line in step.sums]
    return parts


@group
class QuestionOptions:
    """Options that select the questions to ask."""

    set: Literal["workshop", "assessment"] = "workshop"
    """Question set: workshop (twelve questions) or assessment (six)."""
    preset: str = "bangla-58m"
    """Preset whose sizes are used in questions 6 to 11."""
    size: str | None = None
    """Sizes of a generated sheet for questions 1 to 5, as TOKENSxWIDTHxHEAD, such as 4x6x3."""
    seed: int | None = None
    """Random seed for the numbers, such as a student's roll number; the same seed gives the same sheet."""


@group
class AnswerFileOptions:
    """Options for the answer file."""

    progress: Annotated[Path | None, written(".json")] = None
    """Answer file to save to and to resume from; the student hands it in."""
    name: str | None = None
    """Name of the student in the answer file."""


def exercise(
    questions: str = "all",
    /,
    *,
    options: QuestionOptions = QuestionOptions(),  # noqa: B008 - frozen
    tries: Literal[1, 2] | None = None,
    answers: AnswerFileOptions = AnswerFileOptions(),  # noqa: B008
    key: bool = False,
    paper: bool = False,
    as_json: Annotated[bool, Parameter(name="--json")] = False,
) -> Output | None:
    """Practise with a bilingual tutor that asks questions, gives hints, recognises common mistakes and awards points.

    Example: `kotha inside exercise 2 --seed 17 --name Rahim --progress rahim.json`

    Args:
        questions: Questions to ask: all, a question such as 7, or a part such as 7c.
        tries: Attempts per question (default: 2 at a terminal, 1 if the input is piped).
        key: Print the answer key instead of asking the questions.
        paper: Print the questions for use on paper instead of asking them.
        as_json: Print the summary as JSON on stdout, and the dialogue on stderr.
    """
    from kotha.api.exercises import QuestionChoice, on_paper, practise

    choice, language = QuestionChoice(questions=questions, **vars(options)), current_language()
    if key or paper:
        if answers.progress is not None:
            raise UsageError("--key and --paper do not ask questions; omit --progress")
        found, lines = on_paper(choice, language, key=key)
        return Output(found, *lines)

    def print_line(line: str) -> None:
        print(line, file=sys.stderr if as_json else sys.stdout, flush=True)

    n_tries = tries or (2 if sys.stdin.isatty() else 1)
    return Output(practise(choice, language, read_line, print_line, tries=n_tries, **vars(answers)))


def score(*files: Path, csv: Annotated[Path | None, written(".csv")] = None) -> Output:
    """Regrade a class's answer files, and show the results in one table.

    Example: `kotha inside score rahim.json karim.json --csv class.csv`

    Args:
        files: Answer files saved by `kotha inside exercise`.
        csv: Output .csv file for the table.
    """
    from kotha.api.exercises import class_table, mark_class

    if not files:
        raise UsageError("specify at least one answer file saved by kotha inside exercise")
    rows = mark_class(files, csv)
    if csv is not None:
        log(Message("wrote {path}", path=csv))
    return Output([row.to_dict() for row in rows], *class_table(rows))
