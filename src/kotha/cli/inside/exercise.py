"""``kotha inside worksheet --exercise``: the workshop's questions at the terminal, or from a pipe."""

import sys
from typing import TYPE_CHECKING, Any

from kotha.cli.terminal import print_json
from kotha.errors import UsageError

if TYPE_CHECKING:
    from kotha.inside.exercises.question import Setting
    from kotha.inside.worksheet.sheet import Sheet
    from kotha.wording import Language

# What training took where the workshop measured it.
_MEASURED_GIGABYTES = {"bangla-58m": 4.33}


def practise(
    wanted: str | None,
    language: "Language",
    preset: str,
    batch_size: int,
    steps: int | None,
    size: str | None,
    seed: int,
    as_json: bool,
) -> None:
    """Ask all questions or those of a number; with --json the talk goes to stderr and the summary to stdout."""
    from kotha.inside.exercises.quiz import Quiz, all_questions, choose

    setting = make_setting(preset, batch_size, steps, size, seed)
    questions = all_questions(setting)
    if wanted is not None:
        questions = choose(questions, wanted)
    out = sys.stderr if as_json else sys.stdout
    quiz = Quiz(setting.sheet, language, _read, lambda line: print(line, file=out, flush=True), sys.stdin.isatty())
    summary = quiz.ask_all(questions)
    if as_json:
        print_json({"language": language, "preset": preset, "max_iters": setting.steps, **summary.to_dict()})


def make_setting(preset: str, batch_size: int, steps: int | None, size: str | None, seed: int) -> "Setting":
    """What the questions are about: a preset's sizes, the course's recipe, and a sheet."""
    from kotha.inside.exercises.question import Setting
    from kotha.model.config import GPTConfig
    from kotha.model.presets import preset as config_of
    from kotha.train.optimize.schedule import learning_rate_share
    from kotha.train.recipes import recipe

    config = config_of(preset)
    if not isinstance(config, GPTConfig):
        raise UsageError(f"the questions are about a GPT, and {preset} is a {config.family}; try --preset gpt2")
    if batch_size < 1:
        raise UsageError(f"--batch-size {batch_size} is no batch; use 1 or more")
    changes: dict[str, Any] = {} if steps is None else {"steps": steps}
    course = recipe("course", **changes)
    return Setting(
        sheet=sheet_by_hand(size, seed),
        config=config,
        batch_size=batch_size,
        learning_rate=course.learning_rate,
        warmup_steps=course.warmup_steps,
        steps=course.steps,
        rate_at=lambda step: course.learning_rate * learning_rate_share(step, course),
        measured_gigabytes=_MEASURED_GIGABYTES.get(preset),
    )


def sheet_by_hand(size: str | None, seed: int) -> "Sheet":
    """The workshop's sheet, or one of another size with numbers that are drawn."""
    from kotha.inside.worksheet.workshop import WORKSHOP, drawn, workshop_sheet

    return workshop_sheet(WORKSHOP if size is None else drawn(*_sizes(size), seed=seed))


def _sizes(text: str) -> tuple[int, int, int]:
    parts = text.lower().replace("×", "x").split("x")
    if len(parts) != 3 or not all(part.isdecimal() for part in parts):
        raise UsageError(f"--size {text!r} is not TOKENSxWIDTHxHEAD; try 4x6x3")
    n_tokens, width, head_width = map(int, parts)
    return n_tokens, width, head_width


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
