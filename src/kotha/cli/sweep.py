"""``kotha sweep``: many short trainings in search of better settings, and the command that trains with the best."""

from pathlib import Path
from typing import Annotated, Any

from cyclopts import Parameter

from kotha.api.options import SweepOptions
from kotha.cli.interrupts import StoppedError
from kotha.cli.options import FlatMany, More, Page, from_words
from kotha.cli.terminal import Commands, Output
from kotha.cli.training_display import training_display
from kotha.i18n.message import Message


def sweep(
    data: Path,
    /,
    *,
    searching: Annotated[SweepOptions, FlatMany] = SweepOptions(),  # noqa: B008 - frozen
    storage: Annotated[str | None, Parameter(env_var="KOTHA_STORAGE")] = None,
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
        data: Data folder made by `kotha prepare`.
        storage: Database URL, for several machines (default: a file in --out).
        steps: Training steps per trial, instead of --minutes.
        html: Output file for the findings as an HTML page.
    """
    settings: dict[str, Any] = {**from_words(set_), **({} if steps is None else {"steps": steps})}
    with training_display(many=True) as heard:
        from kotha.api import sweep as api

        try:
            found = api.sweep(data, searching, settings, storage=storage, **heard)
        except api.SweepStopped:
            raise StoppedError("stopped and saved; run the same command again to resume") from None
    best = [] if found.best is None else [Commands(Message("to train the best again:"), [found.command])]
    return Output(found, *found.tables(), *best, page=html)
