"""``kotha inside exercise``: the workshop's questions at the terminal, or from a pipe."""

import sys
from typing import Annotated, Literal

from kotha.cli.flags import flag
from kotha.cli.terminal import print_json


def exercise(
    wanted: Annotated[str, flag("all, a question such as 7, or a part such as 7c.")] = "all",
    /,
    *,
    language: Annotated[Literal["en", "bn"], flag("Of the questions.")] = "en",
    preset: Annotated[str, flag("Whose sizes questions 6 to 11 are about.")] = "bangla-58m",
    batch_size: Annotated[int, flag("Sequences a step, in the questions.")] = 64,
    steps: Annotated[int | None, flag("max_iters of question 7c; left out: the course recipe's.")] = None,
    size: Annotated[str | None, flag("Questions 1 to 5 of a drawn sheet instead: TOKENSxWIDTHxHEAD, 4x6x3.")] = None,
    seed: Annotated[int, flag("Which numbers --size draws.")] = 0,
    as_json: Annotated[bool, flag("The summary on stdout; the talk goes to stderr.", name="--json")] = False,
) -> None:
    """Ask the workshop's questions and grade the answers; an empty line passes one over."""
    from kotha.inside.exercises.quiz import Quiz, all_questions, choose
    from kotha.inside.exercises.setting import make_setting

    setting = make_setting(preset, batch_size, steps, size, seed)
    questions = choose(all_questions(setting), wanted)
    out = sys.stderr if as_json else sys.stdout
    quiz = Quiz(setting.sheet, language, _read, lambda line: print(line, file=out, flush=True), sys.stdin.isatty())
    summary = quiz.ask_all(questions)
    if as_json:
        print_json({"language": language, "preset": preset, "max_iters": setting.course.steps, **summary.to_dict()})


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
