"""Search for better settings with many short training runs, from Python and for ``kotha sweep``."""

from pathlib import Path
from typing import Any

from kotha.api.options import SweepOptions
from kotha.api.run import OnEvent
from kotha.i18n.message import OnRemark
from kotha.text.shards import Dataset
from kotha.training.request import TrainRequest
from kotha.training.sweep.findings import SweepFindings, find
from kotha.training.sweep.search import SweepRequest, SweepRunner
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
    """Search for settings by training on a data folder; trial 0 uses the recipe with the given ``settings``.

    If the sweep is stopped, ``SweepStopped`` is raised; the same call resumes it. ``storage`` is a database URL.
    """
    out = options.out or default_folder(data)
    training = TrainRequest(options.preset, options.recipe, options.minutes, changes=settings)
    request = SweepRequest(training, options.search, prune=options.prune, seed=options.seed, trials=options.trials)
    listeners: Any = {"on_event": on_event, "on_remark": on_remark}
    searching = SweepRunner(Dataset(data), out, request, url=storage, name=options.study, **listeners)
    searching.run()
    return find(searching)


def default_folder(data: Path) -> Path:
    """Return the default sweep folder, next to the data, so that the same command finds it again.

    >>> default_folder(Path("corpus/data")).as_posix()
    'corpus/data-sweep'
    """
    base = data if data.name not in ("", "..") else data.resolve()
    return base.with_name(f"{base.name or 'data'}-sweep")
