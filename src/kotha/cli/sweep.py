"""``kotha sweep``: many short trainings in search of better settings, and the command that trains with the best."""

from pathlib import Path
from typing import Annotated, Any, Literal

from kotha.cli.flags import InLanguage, More, flag, from_words, page
from kotha.cli.stopping import StoppedError
from kotha.cli.terminal import print_commands, show
from kotha.cli.training_display import TrainingDisplay
from kotha.i18n.message import Message


def sweep(
    data: Annotated[Path, flag("A data folder, made by `kotha prepare`.")],
    /,
    *,
    out: Annotated[
        Path | None,
        flag("The sweep's folder, to make or to go on with, with a run for each trial; left out: DATA-sweep."),
    ] = None,
    trials: Annotated[int, flag("How many trials there shall be, of all processes together.")] = 20,
    minutes: Annotated[float | None, flag("How long each trial may take; 10 where nothing else says it.")] = None,
    steps: Annotated[int | None, flag("Or how many steps each has.")] = None,
    search: Annotated[
        tuple[str, ...],
        flag("What to search: NAME=FROM..TO, NAME=FROM..TO:log or NAME=A,B,C.", consume_multiple=True),
    ] = (),
    preset: Annotated[str | None, flag("Exact name of a preset; left out, the sizes are chosen and searched.")] = None,
    recipe: Annotated[str, flag("course, classic or modern: what the search starts from.")] = "modern",
    set_: More = (),
    prune: Annotated[
        Literal["median", "hyperband", "none"], flag("How a trial that falls behind is stopped early.")
    ] = "median",
    seed: Annotated[int, flag("Decides what is drawn; the trainings' own is --set seed=N.")] = 0,
    storage: Annotated[
        str | None, flag("A database by URL, for several machines; left out: a file in --out.", env_var="KOTHA_STORAGE")
    ] = None,
    study: Annotated[str, flag("The name of the study there.")] = "sweep",
    html: Annotated[Path | None, page("Also write what was found as a page.")] = None,
    language: InLanguage = "en",
    as_json: Annotated[bool, flag("What was found, as JSON on stdout.", name="--json")] = False,
) -> None:
    """Search settings by training: `kotha sweep data --minutes 5 --trials 20`.

    Trial 0 is the default recipe; the others draw learning rates, weight decay, dropout, batch and, at equal time, the
    size, or what --search names. Those that fall behind are stopped early. The same command goes on after a stop or a
    crash; started several times at once, on one machine or on several with --storage, all work on one study. Ends with
    what mattered, and the `kotha train` line of the best.
    """
    asked: dict[str, Any] = {"out": out, "trials": trials, "minutes": minutes, "search": search, "preset": preset}
    asked |= {"recipe": recipe, "prune": prune, "seed": seed, "storage": storage, "study": study}
    asked["settings"] = {**from_words(set_), **({} if steps is None else {"steps": steps})}
    with TrainingDisplay() as display:
        from kotha.api import sweep as api

        try:
            found = api.sweep(data, **asked, on_event=display.pass_by, on_remark=display.say)
        except api.SweepStopped:
            raise StoppedError("stopped and saved; the same command goes on") from None
    if html is not None:
        found.save(html)
    show(found, as_json, *found.tables())
    if not as_json and found.found.best is not None:
        print_commands(Message("to train the best again:"), [found.command])
