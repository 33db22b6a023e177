"""The course's arithmetic: ``kotha inside worksheet``, a tutor that asks (``exercise``), and a class's ``score``."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from cyclopts import Parameter
from rich.text import Text

from kotha.api.options import SheetOptions
from kotha.cli.inside.views import Html
from kotha.cli.interrupts import read_line
from kotha.cli.language import log, spoken_language, translate
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
    """One attention head as arithmetic on paper; the workshop's, or your model's.

    Args:
        picture: Write 20 × 512 positions as a picture to this file.
        xlsx: Write a spreadsheet of live formulas to this file.
    """
    from kotha.api.worksheet import positions_picture
    from kotha.api.worksheet import worksheet as lay_out

    if picture is not None:
        positions_picture().save(picture)
        log(Message("wrote {path}", path=picture))
        if sheet.sheet == "attention":
            return None
    view = lay_out(sheet, spoken_language())
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
class Questions:
    """Which questions."""

    set: Literal["workshop", "assessment"] = "workshop"
    """The workshop's twelve, or the course's six."""
    preset: str = "bangla-58m"
    """Whose sizes questions 6 to 11 are about."""
    size: str | None = None
    """Questions 1 to 5 of a drawn sheet instead: TOKENSxWIDTHxHEAD, 4x6x3."""
    seed: int | None = None
    """Draw the numbers anew: one seed, one sheet, say a student's roll number."""


@group
class Kept:
    """The file of answers."""

    progress: Annotated[Path | None, written(".json")] = None
    """Keep the answers in this file and go on from it; it is what one hands in."""
    name: str | None = None
    """Whose answers these are, in the file."""


def exercise(
    wanted: str = "all",
    /,
    *,
    questions: Questions = Questions(),  # noqa: B008 - frozen
    tries: Literal[1, 2] | None = None,
    kept: Kept = Kept(),  # noqa: B008
    key: bool = False,
    paper: bool = False,
    as_json: Annotated[bool, Parameter(name="--json")] = False,
) -> Output | None:
    """A tutor in two languages: questions, hints, recognised mistakes, points.

    Args:
        wanted: all, a question such as 7, or a part such as 7c.
        tries: Left out: 2 at a terminal, 1 from a pipe.
        key: Print the answer key instead of asking.
        paper: Print the questions instead of asking, for paper.
        as_json: The summary on stdout; the talk goes to stderr.
    """
    from kotha.api.exercises import QuestionChoice, on_paper, practise

    choice, language = QuestionChoice(wanted=wanted, **vars(questions)), spoken_language()
    if key or paper:
        if kept.progress is not None:
            raise UsageError("--key and --paper ask nothing; leave --progress out")
        found, lines = on_paper(choice, language, key=key)
        return Output(found, *lines)

    def say(line: str) -> None:
        print(line, file=sys.stderr if as_json else sys.stdout, flush=True)

    n_tries = tries or (2 if sys.stdin.isatty() else 1)
    return Output(practise(choice, language, read_line, say, tries=n_tries, **vars(kept)))


def score(*files: Path, csv: Annotated[Path | None, written(".csv")] = None) -> Output:
    """Files of answers of a class, marked anew, in one table.

    Args:
        files: Files of answers, as the tutor saves them.
        csv: Write the table to this file, for a spreadsheet.
    """
    from kotha.api.exercises import class_table, mark_class

    if not files:
        raise UsageError("name files of answers, as the tutor saves them")
    rows = mark_class(files, csv)
    if csv is not None:
        log(Message("wrote {path}", path=csv))
    return Output([row.to_dict() for row in rows], *class_table(rows))
