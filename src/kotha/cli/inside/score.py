"""``kotha inside score``: score files of the tutor and of the page By hand, marked anew, a class in one table."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from kotha.cli.flags import InLanguage, flag, written
from kotha.cli.spoken import tell
from kotha.cli.terminal import print_json, results, table
from kotha.i18n.catalogue import translate
from kotha.i18n.message import Message

if TYPE_CHECKING:
    from kotha.course.exercises.score import FileScore
    from kotha.i18n.numbers import Language


def score(
    *files: Annotated[Path, flag("Files of answers, as the tutor or the page By hand saves them.")],
    key_file: Annotated[Path | None, flag("The key that the tutor's files were signed with.")] = None,
    csv: Annotated[Path | None, written("Write the table to this file, for a spreadsheet.", ".csv")] = None,
    language: InLanguage = "en",
    as_json: Annotated[bool, flag("As JSON.", name="--json")] = False,
) -> None:
    """Mark score files again, from the answers up, and say whether each signature fits."""
    from kotha.course.exercises.classroom import PROOF, as_csv, read_class
    from kotha.course.exercises.record import read_key
    from kotha.errors import DataError, UsageError
    from kotha.storage.atomic import write_whole

    if not files:
        raise UsageError("name score files, as the tutor or the page By hand saves them")
    rows = read_class(files, b"" if key_file is None else read_key(key_file))
    if len(rows) == 1 and rows[0].state == "unreadable":
        raise DataError(rows[0].notes[0].template, **rows[0].notes[0].values)
    if csv is not None:
        write_whole(csv, as_csv(rows), ".csv")
        tell(Message("wrote {path}", path=csv))
    if as_json:
        print_json([row.to_dict() for row in rows])
        return
    _print(rows, language)
    results().print(translate(PROOF, language), markup=False)


def _print(rows: "list[FileScore]", language: "Language") -> None:
    from kotha.course.exercises.classroom import HEADINGS, STATES

    header = [translate(heading, language) for heading in HEADINGS]
    lines = [
        [
            row.name or "–",
            row.sheet,
            f"{row.points:g} / {row.possible:g}",
            f"{row.percent:g}%",
            f"{row.right} / {row.asked}",
            translate(STATES[row.state], language),
            row.noted(language),
        ]
        for row in rows
    ]
    console = results()
    console.print(table("", header, lines))
    if len(rows) == 1:
        for part in rows[0].parts(language):
            console.print(f"  {part}", markup=False)
