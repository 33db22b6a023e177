"""``kotha lessons``: the course's questions, each answered by small models that are trained and measured here."""

import shlex
from pathlib import Path
from typing import Annotated

from cyclopts import App

from kotha.cli.flags import InLanguage, Json, flag
from kotha.cli.spoken import said, tell
from kotha.cli.terminal import Table, print_json, print_parts, progress, show
from kotha.i18n.catalogue import translate
from kotha.i18n.message import Text
from kotha.i18n.numbers import LANGUAGES

app = App(name="lessons", help="The course's questions, answered by measuring.", help_format="plaintext")


@app.default
def listed(*, language: InLanguage = "en", as_json: Json = False) -> None:
    """List the lessons: what each asks, and how long it takes."""
    from kotha.api.lessons import WORDS, lessons

    found = lessons()
    asked = {each.name: {key: translate(each.question, key) for key in LANGUAGES} for each in found}
    told = [{"name": each.name, "question": asked[each.name], "minutes": each.minutes} for each in found]
    rows: list[list[Text]] = [[each.name, each.question, f"{each.minutes:g}"] for each in found]
    show(told, as_json, Table("", said(WORDS["header"]).split(","), rows, [WORDS["minutes"]]))


@app.command
def run(
    name: Annotated[str, flag("Which lesson; `kotha lessons` lists them.")],
    /,
    *,
    seeds: Annotated[int, flag("Models of each kind: other first weights, another order of the text.")] = 3,
    steps: Annotated[int | None, flag("Steps of each training, for a quicker look; left out: enough.")] = None,
    out: Annotated[Path | None, flag("Folder for NAME.json and NAME.svg.")] = None,
    language: InLanguage = "en",
    as_json: Json = False,
) -> None:
    """Train the models of a lesson, measure them, and say in plain words what was seen."""
    from kotha.api.lessons import lesson, save_lesson, teach

    with progress() as advance:
        found = teach(name, seeds=seeds, steps=steps, on_progress=advance)
    asked = ["kotha", "lessons", "run", name, "--seeds", str(seeds)]
    asked += [] if steps is None else ["--steps", str(steps)]
    record = {"command": shlex.join(asked), **found.plain}
    if out is not None:
        save_lesson(found, record, out, language)
        tell(f"{out / name}.json, {out / name}.svg")
    if as_json:
        print_json(record)
        return
    print_parts(lesson(name).question, style="bold")
    print_parts(found.table(language), *(sentence[language] for sentence in found.plain["reading"]))
    for sample in found.plain["samples"]:
        print_parts(f"\n{sample['title'][language]}", style="bold")
        print_parts(sample["text"])
