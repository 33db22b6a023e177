"""``kotha sweep``: search for better settings with many short training runs."""

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
    options: Annotated[SweepOptions, FlatMany] = SweepOptions(),  # noqa: B008 - frozen
    storage: Annotated[str | None, Parameter(env_var="KOTHA_STORAGE")] = None,
    steps: int | None = None,
    set_: More = (),
    html: Page = None,
) -> Output:
    """Search for better settings with many short training runs.

    Trial 0 uses the default recipe. The others sample learning rates, weight decay, dropout, batch size and model size,
    or the settings given by --search. Unpromising trials are stopped early. The result shows which settings mattered,
    and the `kotha train` command for the best ones.

    The same command resumes after a stop or a crash. If it is started several times, on one machine or (with --storage)
    on several, the processes share the trials.

    Example: `kotha sweep data --minutes 5 --trials 20`

    Args:
        data: Data folder created by `kotha prepare`.
        storage: URL of a database that several machines share (default: a file in --out).
        steps: Training steps per trial, instead of --minutes.
        html: Output file for the findings as an HTML page.
    """
    from kotha.api.requirements import require_optuna

    require_optuna()  # before torch is imported
    settings: dict[str, Any] = {**from_words(set_), **({} if steps is None else {"steps": steps})}
    with training_display(many=True) as listeners:
        from kotha.api import sweep as api

        try:
            found = api.sweep(data, options, settings, storage=storage, **listeners)
        except api.SweepStopped:
            raise StoppedError("stopped and saved; run the same command again to resume") from None
    best = [] if found.best is None else [Commands(Message("to train with the best settings:"), [found.command])]
    return Output(found, *found.tables(), *best, page=html)
