"""``kotha lessons``: answer the course's questions by training and measuring small models."""

import shlex
from pathlib import Path

from rich.text import Text as Line

from kotha.cli.language import current_language, log, translate
from kotha.cli.terminal import Output, Table, progress
from kotha.i18n import catalogue
from kotha.i18n.message import Text
from kotha.i18n.numbers import LANGUAGES


def lessons() -> Output:
    """List the lessons with their questions and durations.

    `kotha lessons run NAME` answers a lesson's question by training and measuring small models.
    """
    from kotha.api.lessons import WORDS
    from kotha.api.lessons import lessons as all_lessons

    found = all_lessons()
    questions = {each.name: {key: catalogue.translate(each.question, key) for key in LANGUAGES} for each in found}
    listed = [{"name": each.name, "question": questions[each.name], "minutes": each.minutes} for each in found]
    rows: list[list[Text]] = [[each.name, each.question, f"{each.minutes:g}"] for each in found]
    return Output(listed, Table("", translate(WORDS["header"]).split(","), rows, [WORDS["minutes"]]))


def run(name: str, /, *, seeds: int = 3, steps: int | None = None, out: Path | None = None) -> Output:
    """Train and measure the models of a lesson, and explain the results in plain words.

    Example: `kotha lessons run mask --out results`

    Args:
        name: Name of a lesson; `kotha lessons` lists them.
        seeds: Number of models per kind, each with its own initial weights and data order.
        steps: Training steps per model, for a quicker result (default: set by the lesson).
        out: Output folder for NAME.json and NAME.svg.
    """
    from kotha.api.lessons import lesson, save_lesson, teach

    language = current_language()
    with progress() as advance:
        found = teach(name, seeds=seeds, steps=steps, on_progress=advance)
    command = ["kotha", "lessons", "run", name, "--seeds", str(seeds)]
    command += [] if steps is None else ["--steps", str(steps)]
    record = {"command": shlex.join(command), **found.plain}
    if out is not None:
        save_lesson(found, record, out, language)
        log(f"{out / name}.json, {out / name}.svg")
    parts = [Line(translate(lesson(name).question), "bold"), found.table(language)]
    parts += [sentence[language] for sentence in found.plain["reading"]]
    for sample in found.plain["samples"]:
        parts += [Line(f"\n{sample['title'][language]}", "bold"), sample["text"]]
    return Output(record, *parts)
