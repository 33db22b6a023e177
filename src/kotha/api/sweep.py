"""Many short trainings in search of better settings, from Python and for the command."""

from pathlib import Path
from typing import Any

from kotha.api.options import SweepOptions
from kotha.api.run import OnEvent
from kotha.i18n.message import OnRemark
from kotha.text.shards import Dataset
from kotha.training.start import TrainRequest
from kotha.training.sweep.findings import SweepFindings, find
from kotha.training.sweep.search import Searching, SweepRequest
from kotha.training.sweep.search import SweepStopped as SweepStopped


def sweep(
    data: Path,
    options: SweepOptions,
    settings: dict[str, Any],
    *,
    storage: str | None = None,
    on_event: OnEvent | None = None,
    on_remark: OnRemark | None = None,
) -> SweepFindings:
    """Search settings by training on a data folder; trial 0 is the recipe itself, with ``settings`` of its own.

    The same call goes on after a stop, which raises ``SweepStopped``. ``storage`` is a database by URL.
    """
    out = options.out or beside(data)
    wish = TrainRequest(options.preset, options.recipe, options.minutes, changes=settings)
    request = SweepRequest(wish, options.search, prune=options.prune, seed=options.seed, trials=options.trials)
    heard: Any = {"on_event": on_event, "on_remark": on_remark}
    searching = Searching(Dataset(data), out, request, url=storage, name=options.study, **heard)
    searching.run()
    return find(searching)


def beside(data: Path) -> Path:
    """Where a sweep stands that was given no place: beside its data, so the same command finds it again.

    >>> beside(Path("corpus/data")).as_posix()
    'corpus/data-sweep'
    """
    named = data if data.name not in ("", "..") else data.resolve()
    return named.with_name(f"{named.name or 'data'}-sweep")
