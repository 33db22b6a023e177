"""The tutor, sheets for paper with their keys, and a class in one table: ``kotha inside exercise`` and ``score``."""

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

from kotha.cli.flags import InLanguage, flag, group, written
from kotha.cli.spoken import tell
from kotha.cli.stopping import read_line
from kotha.cli.terminal import print_json, show
from kotha.errors import UsageError
from kotha.i18n.message import Message


@group
@dataclass(frozen=True, kw_only=True)
class Kept:
    """The file of answers: one flag for each field."""

    progress: Annotated[
        Path | None, written("Keep the answers in this file and go on from it; it is what one hands in.", ".json")
    ] = None
    name: Annotated[str | None, flag("Whose answers these are, in the file.")] = None
    key_file: Annotated[Path | None, flag("Sign the file with the teacher's key.")] = None


def exercise(
    wanted: Annotated[str, flag("all, a question such as 7, or a part such as 7c.")] = "all",
    /,
    *,
    set: Annotated[Literal["workshop", "assessment"], flag("The workshop's twelve, or the course's six.")] = "workshop",
    language: InLanguage = "en",
    preset: Annotated[str, flag("Whose sizes questions 6 to 11 are about.")] = "bangla-58m",
    batch_size: Annotated[int | None, flag("Sequences a step, in the questions; left out: 64, or drawn.")] = None,
    steps: Annotated[int | None, flag("max_iters of question 7c; left out: the course recipe's.")] = None,
    size: Annotated[str | None, flag("Questions 1 to 5 of a drawn sheet instead: TOKENSxWIDTHxHEAD, 4x6x3.")] = None,
    seed: Annotated[
        int | None, flag("Draw the numbers anew: one seed, one sheet, say a student's roll number.")
    ] = None,
    tries: Annotated[Literal[1, 2] | None, flag("Left out: 2 at a terminal, 1 from a pipe.")] = None,
    kept: Kept = Kept(),  # noqa: B008 - frozen
    key: Annotated[bool, flag("Print the answer key instead of asking.")] = False,
    paper: Annotated[bool, flag("Print the questions instead of asking, for paper.")] = False,
    as_json: Annotated[bool, flag("The summary on stdout; the talk goes to stderr.", name="--json")] = False,
) -> None:
    """Ask questions, grade the answers and say which mistake it was; an empty line passes one over, ? gives a hint."""
    from kotha.api.exercises import QuestionChoice, on_paper, practise

    choice = QuestionChoice(set, wanted, preset, batch_size, steps, size, seed)
    if key or paper:
        if kept.progress is not None or kept.key_file is not None:
            raise UsageError("--key and --paper ask nothing; leave --progress and --key-file out")
        told, lines = on_paper(choice, language, key=key)
        if as_json:
            print_json(told)
        else:
            print(*lines, sep="\n")
        return

    def tell(line: str) -> None:
        print(line, file=sys.stderr if as_json else sys.stdout, flush=True)

    n_tries = tries or (2 if sys.stdin.isatty() else 1)
    found = practise(choice, language, read_line, tell, tries=n_tries, **vars(kept))
    if as_json:
        print_json(found)


def score(
    *files: Annotated[Path, flag("Files of answers, as the tutor or the page By hand saves them.")],
    key_file: Annotated[Path | None, flag("The key that the tutor's files were signed with.")] = None,
    csv: Annotated[Path | None, written("Write the table to this file, for a spreadsheet.", ".csv")] = None,
    language: InLanguage = "en",
    as_json: Annotated[bool, flag("As JSON.", name="--json")] = False,
) -> None:
    """Mark score files again, from the answers up, and say whether each signature fits."""
    from kotha.api.exercises import class_table, mark_class

    if not files:
        raise UsageError("name score files, as the tutor or the page By hand saves them")
    rows = mark_class(files, key_file, csv)
    if csv is not None:
        tell(Message("wrote {path}", path=csv))
    show([row.to_dict() for row in rows], as_json, *class_table(rows, language))
