"""``kotha inside exercise``: the tutor at the terminal, or from a pipe; sheets for paper, and their answer keys."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from kotha.cli.flags import InLanguage, flag, written
from kotha.cli.terminal import print_json
from kotha.errors import UsageError
from kotha.i18n.catalogue import translate
from kotha.i18n.message import Message
from kotha.storage.status import is_there

if TYPE_CHECKING:
    from kotha.course.exercises.record import AnswerFile
    from kotha.course.exercises.sets import QuestionChoice
    from kotha.i18n.numbers import Language


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
    progress: Annotated[
        Path | None, written("Keep the answers in this file and go on from it; it is what one hands in.", ".json")
    ] = None,
    name: Annotated[str | None, flag("Whose answers these are, in the file.")] = None,
    key_file: Annotated[Path | None, flag("Sign the file with the teacher's key.")] = None,
    key: Annotated[bool, flag("Print the answer key instead of asking.")] = False,
    paper: Annotated[bool, flag("Print the questions instead of asking, for paper.")] = False,
    as_json: Annotated[bool, flag("The summary on stdout; the talk goes to stderr.", name="--json")] = False,
) -> None:
    """Ask questions, grade the answers and say which mistake it was; an empty line passes one over, ? gives a hint."""
    from kotha.course.exercises.sets import QuestionChoice

    choice = QuestionChoice(set, wanted, preset, batch_size, steps, size, seed)
    if key or paper:
        if progress is not None or key_file is not None:
            raise UsageError("--key and --paper ask nothing; leave --progress and --key-file out")
        _print(choice, language, key, as_json)
        return
    if progress is None and (name is not None or key_file is not None):
        raise UsageError("--name and --key-file are for the file of answers; name one with --progress")
    n_tries = tries or (2 if sys.stdin.isatty() else 1)
    _ask(choice, language, n_tries, (progress, name, key_file), as_json)


def _print(choice: "QuestionChoice", language: "Language", key: bool, as_json: bool) -> None:
    from kotha.course.exercises.key import key_dict, paper_lines

    setting, questions = choice.prepare()
    if as_json:
        print_json({"choice": choice.to_dict(), "questions": key_dict(questions, language, key)})
        return
    for line in paper_lines(questions, setting.sheet, language, key):
        print(line)


def _ask(
    choice: "QuestionChoice",
    language: "Language",
    tries: int,
    kept: tuple[Path | None, str | None, Path | None],
    as_json: bool,
) -> None:
    from kotha.course.exercises.outcome import Outcome
    from kotha.course.exercises.quiz import RULES, Quiz
    from kotha.course.exercises.record import save

    path, name, key_file = kept
    secret = b""
    if key_file is not None:
        from kotha.course.exercises.record import read_key

        secret = read_key(key_file)
    record = _begin(choice, language, path, name, secret)
    setting, questions = record.choice.prepare()
    out = sys.stderr if as_json else sys.stdout

    def tell(line: str) -> None:
        print(line, file=out, flush=True)

    def keep(outcome: Outcome) -> None:
        nonlocal record
        record = record.with_answer(outcome)
        if path is not None:
            save(record, path, secret)

    tell(translate(RULES, language))
    summary = Quiz(setting.sheet, language, _read, tell, tries, keep).ask_all(questions, record.outcomes())
    if path is not None:
        save(record, path, secret)
    if as_json:
        steps = {"max_iters": setting.course.steps, "preset": record.choice.preset}
        print_json({"language": language, **steps, "choice": record.choice.to_dict(), **summary.to_dict()})


def _begin(
    choice: "QuestionChoice", language: "Language", path: Path | None, name: str | None, secret: bytes
) -> "AnswerFile":
    """What was kept, to go on from; or a beginning."""
    from kotha.course.exercises.record import AnswerFile, is_sound, parse, read_json
    from kotha.course.exercises.sets import QuestionChoice

    if path is None or not is_there(path):
        return AnswerFile(name or "", language, choice)
    told = read_json(path)
    record = parse(told)
    if told.get("signed") is True and not secret:
        raise UsageError("{path} is signed; name the key with --key-file, or another file with --progress", path=path)
    if not is_sound(told, secret if told.get("signed") is True else b""):
        raise UsageError(
            "{path} was changed after it was saved, or signed with another key; begin a new file", path=path
        )
    if choice != QuestionChoice() and choice != record.choice:
        raise UsageError(
            "{path} has other questions ({sheet}, {wanted}); begin a new file",
            path=path,
            sheet=record.choice.sheet,
            wanted=record.choice.wanted,
        )
    if name is not None and name != record.name:
        raise UsageError(
            "{path} is {owner}'s, not {name}'s; begin a new file",
            path=path,
            owner=record.name or Message("nobody"),
            name=name,
        )
    return record


def _read(prompt: str) -> str | None:
    """A line of the student's; the prompt only where somebody sees it."""
    if sys.stdin.isatty():
        try:
            return input(prompt)
        except EOFError:
            print()
            return None
    line = sys.stdin.readline()
    return line if line else None
