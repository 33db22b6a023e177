"""``kotha sweep``: many short trainings in search of better settings, and the command that trains with the best."""

import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from kotha.cli.flags import InLanguage, More, flag, from_words, page
from kotha.cli.spoken import said
from kotha.cli.stopping import StoppedError
from kotha.cli.terminal import print_json, results, table
from kotha.cli.training_display import TrainingDisplay
from kotha.i18n.message import Message, Text

if TYPE_CHECKING:
    from kotha.training.sweep.findings import SweepFindings


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
    out = out or beside(data)
    changes = {**from_words(set_), **({} if steps is None else {"steps": steps})}
    with TrainingDisplay() as display:
        from kotha.text.shards import Dataset
        from kotha.training.settings import TrainRequest
        from kotha.training.sweep.about import SweepRequest
        from kotha.training.sweep.findings import find, sweep_document
        from kotha.training.sweep.searching import Searching, SweepStopped

        request = SweepRequest(
            TrainRequest(preset, recipe, minutes, changes=changes), search, prune=prune, seed=seed, trials=trials
        )
        searching = Searching(
            Dataset(data), out, request, url=storage, name=study, on_event=display.pass_by, on_remark=display.say
        )
        try:
            searching.run()
        except SweepStopped:
            raise StoppedError("stopped and saved; the same command goes on") from None
    found = find(searching)
    command = train_line(data, found)
    if html is not None:
        from kotha.storage.atomic import write_page

        write_page(html, sweep_document(found, command).html())
    if as_json:
        print_json({**found.to_dict(), "command": command})
        return
    _print(found, command, out)


def beside(data: Path) -> Path:
    """Where a sweep stands that was given no place: beside its data, so the same command finds it again.

    >>> beside(Path("corpus/data")).as_posix()
    'corpus/data-sweep'
    """
    named = data if data.name not in ("", "..") else data.resolve()
    return named.with_name(f"{named.name or 'data'}-sweep")


def train_line(data: Path, found: "SweepFindings") -> str:
    """The line that trains with the best settings, to copy."""
    from kotha.training.sweep.space import in_words

    changes = dict(found.changes)
    words = ["kotha", "train", str(data), "--out", "run"]
    steps = changes.pop("steps", None)
    words += [] if found.preset is None else ["--preset", found.preset]
    words += ["--recipe", found.recipe]
    words += [] if found.minutes is None else ["--minutes", f"{found.minutes:g}"]
    words += [] if steps is None else ["--steps", str(steps)]
    if changes:
        words += ["--set", *(f"{name}={in_words(value)}" for name, value in changes.items())]
    return shlex.join(words)


def _print(found: "SweepFindings", command: str, out: Path) -> None:
    from kotha.training.sweep.findings import mattered_rows, sentences, trial_rows

    console = results()
    header: list[Text] = [Message("trial"), found.unit, Message("ended"), Message("settings")]
    of = [Message("setting"), Message("searched"), Message("default"), Message("best"), Message("importance")]
    tables: list[tuple[Text, Sequence[Text], Sequence[Sequence[Text]]]] = [
        (Message("{out}: the best trials", out=out), header, trial_rows(found)),
        (Message("what mattered"), of, mattered_rows(found)),
    ]
    for title, names, rows in tables:
        console.print(table(title, names, rows))
    for sentence in sentences(found):
        console.print(said(sentence), markup=False)
    if found.best is not None:
        lines: list[Any] = ["", said(Message("to train the best again:")), f"  {command}"]
        console.print("\n".join(lines), markup=False, soft_wrap=True)
