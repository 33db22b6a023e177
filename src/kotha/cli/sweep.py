"""``kotha sweep``: many short trainings in search of better settings, and the command that trains with the best."""

from pathlib import Path
from typing import Annotated, Any, Literal

from cyclopts import Parameter

from kotha.cli.flags import More, Page, Several, from_words, group
from kotha.cli.stopping import StoppedError
from kotha.cli.terminal import Commands, Output
from kotha.cli.training_display import training_display
from kotha.i18n.message import Message


@group
class OfSearch:
    """What is searched, and how."""

    out: Path | None = None
    """The sweep's folder, to make or to go on with, with a run for each trial; left out: DATA-sweep."""
    trials: int = 20
    """How many trials there shall be, of all processes together."""
    minutes: float | None = None
    """How long each trial may take; 10 where nothing else says it."""
    search: Several = ()
    """What to search: NAME=FROM..TO, NAME=FROM..TO:log or NAME=A,B,C."""
    preset: str | None = None
    """Exact name of a preset; left out, the sizes are chosen and searched."""
    recipe: str = "modern"
    """course, classic or modern: what the search starts from."""
    prune: Literal["median", "hyperband", "none"] = "median"
    """How a trial that falls behind is stopped early."""
    seed: int = 0
    """Decides what is drawn; the trainings' own is --set seed=N."""
    storage: Annotated[str | None, Parameter(env_var="KOTHA_STORAGE")] = None
    """A database by URL, for several machines; left out: a file in --out."""
    study: str = "sweep"
    """The name of the study there."""


def sweep(
    data: Path,
    /,
    *,
    searching: OfSearch = OfSearch(),  # noqa: B008 - frozen
    steps: int | None = None,
    set_: More = (),
    html: Page = None,
) -> Output:
    """Search settings by training: `kotha sweep data --minutes 5 --trials 20`.

    Trial 0 is the default recipe; the others draw learning rates, weight decay, dropout, batch and, at equal time, the
    size, or what --search names. Those that fall behind are stopped early. The same command goes on after a stop or a
    crash; started several times at once, on one machine or on several with --storage, all work on one study. Ends with
    what mattered, and the `kotha train` line of the best.

    Args:
        data: A data folder, made by `kotha prepare`.
        steps: Or how many steps each has.
        html: Also write what was found as a page.
    """
    settings: dict[str, Any] = {**from_words(set_), **({} if steps is None else {"steps": steps})}
    with training_display(many=True) as heard:
        from kotha.api import sweep as api

        try:
            found = api.sweep(data, **vars(searching), settings=settings, **heard)
        except api.SweepStopped:
            raise StoppedError("stopped and saved; the same command goes on") from None
    if html is not None:
        found.save(html)
    best = [] if found.best is None else [Commands(Message("to train the best again:"), [found.command])]
    return Output(found, *found.tables(), *best)
