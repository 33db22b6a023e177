"""Many short trainings in search of better settings, from Python and for the command."""

import shlex
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from kotha.api.options import SweepOptions
from kotha.api.run import OnEvent
from kotha.i18n.message import Message, OnRemark, Text
from kotha.report.table import Table
from kotha.storage.atomic import write_page
from kotha.text.shards import Dataset
from kotha.training.start import TrainRequest
from kotha.training.sweep.findings import SweepFindings, find, mattered_table, sentences, sweep_document, trial_table
from kotha.training.sweep.searching import Searching, SweepRequest
from kotha.training.sweep.searching import SweepStopped as SweepStopped
from kotha.training.sweep.space import in_words


@dataclass(frozen=True)
class Swept:
    """What a sweep found, as data, as a page and as tables."""

    data: Path
    out: Path
    found: SweepFindings

    def to_dict(self) -> dict[str, Any]:
        """Ready for JSON."""
        return {**asdict(self.found), "command": self.command}

    def save(self, path: Path) -> Path:
        """Write it as a page."""
        write_page(path, sweep_document(self.found, self.command).html())
        return path

    def tables(self) -> list[Table | Text]:
        """The best trials, what mattered, and what that means in sentences."""
        best = trial_table(self.found, Message("{out}: the best trials", out=self.out))
        return [best, mattered_table(self.found, Message("what mattered")), *sentences(self.found)]

    @property
    def command(self) -> str:
        """The line that trains with the best settings, to copy."""
        found, changes = self.found, dict(self.found.changes)
        steps = changes.pop("steps", None)
        words = ["kotha", "train", str(self.data), "--out", "run"]
        words += [] if found.preset is None else ["--preset", found.preset]
        words += ["--recipe", found.recipe]
        words += [] if found.minutes is None else ["--minutes", f"{found.minutes:g}"]
        words += [] if steps is None else ["--steps", str(steps)]
        words += ["--set", *(f"{name}={in_words(value)}" for name, value in changes.items())] if changes else []
        return shlex.join(words)


def sweep(
    data: Path,
    options: SweepOptions,
    settings: dict[str, Any],
    *,
    storage: str | None = None,
    on_event: OnEvent | None = None,
    on_remark: OnRemark | None = None,
) -> Swept:
    """Search settings by training on a data folder; trial 0 is the recipe itself, with ``settings`` of its own.

    The same call goes on after a stop, which raises ``SweepStopped``. ``storage`` is a database by URL.
    """
    out = options.out or beside(data)
    wish = TrainRequest(options.preset, options.recipe, options.minutes, changes=settings)
    request = SweepRequest(wish, options.search, prune=options.prune, seed=options.seed, trials=options.trials)
    heard: Any = {"on_event": on_event, "on_remark": on_remark}
    searching = Searching(Dataset(data), out, request, url=storage, name=options.study, **heard)
    searching.run()
    return Swept(data, out, find(searching))


def beside(data: Path) -> Path:
    """Where a sweep stands that was given no place: beside its data, so the same command finds it again.

    >>> beside(Path("corpus/data")).as_posix()
    'corpus/data-sweep'
    """
    named = data if data.name not in ("", "..") else data.resolve()
    return named.with_name(f"{named.name or 'data'}-sweep")
