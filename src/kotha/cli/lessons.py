"""``kotha lessons``: the course's questions, each answered by small models that are trained and measured here."""

import shlex
import sys
from pathlib import Path
from typing import Annotated

from cyclopts import App

from kotha.cli.flags import InLanguage, Json, flag
from kotha.cli.terminal import print_json, print_table, progress, results, table
from kotha.i18n.catalogue import translate
from kotha.i18n.numbers import LANGUAGES
from kotha.storage.atomic import write_whole
from kotha.storage.json_files import as_json as to_json

app = App(name="lessons", help="The course's questions, answered by measuring.", help_format="plaintext")


@app.default
def listed(*, language: InLanguage = "en", as_json: Json = False) -> None:
    """List the lessons: what each asks, and how long it takes."""
    from kotha.course.lessons.catalogue import lessons, words

    found, common = lessons(), words("common")
    if as_json:
        asked = {each.name: {key: translate(each.question, key) for key in LANGUAGES} for each in found}
        print_json([{"name": each.name, "question": asked[each.name], "minutes": each.minutes} for each in found])
        return
    rows = [[each.name, translate(each.question, language), f"{each.minutes:g}"] for each in found]
    results().print(table("", translate(common["header"], language).split(","), rows))
    results().print(translate(common["minutes"], language), markup=False)


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
    from kotha.course.lessons.catalogue import lesson, words

    chosen, sizes = lesson(name), {} if steps is None else {"steps": steps}
    with progress() as advance:
        stage = words("common")["working"]
        found = chosen.teach(range(seeds), lambda done, total: advance(stage, done, total), **sizes)
    asked = [
        "kotha",
        "lessons",
        "run",
        name,
        "--seeds",
        f"{seeds}",
        *([] if steps is None else ["--steps", f"{steps}"]),
    ]
    record = {"command": shlex.join(asked), **found.plain}
    if out is not None:
        out.mkdir(parents=True, exist_ok=True)
        write_whole(out / f"{name}.json", to_json(record, 1) + "\n", ".json")
        write_whole(out / f"{name}.svg", found.svg(language), ".svg")
        print(f"kotha: {out / name}.json, {out / name}.svg", file=sys.stderr)
    if as_json:
        print_json(record)
        return
    console = results()
    console.print(translate(chosen.question, language), style="bold", markup=False)
    print_table(found.table(language))
    for sentence in found.plain["reading"]:
        console.print(sentence[language], markup=False)
    for sample in found.plain["samples"]:
        console.print(f"\n[bold]{sample['title'][language]}[/]")
        console.print(sample["text"], markup=False)
