"""Many short trainings in search of better settings, from Python and for the command."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any, Literal

from kotha.api import Place
from kotha.api.run import OnEvent
from kotha.arguments import checked
from kotha.i18n.message import OnRemark
from kotha.text.shards import Dataset
from kotha.training.start import TrainRequest
from kotha.training.sweep.findings import SweepFindings, find
from kotha.training.sweep.searching import Searching, SweepRequest
from kotha.training.sweep.searching import SweepStopped as SweepStopped


@checked()
def sweep(
    data: Place,
    *,
    out: Place | None = None,
    trials: int = 20,
    minutes: float | None = None,
    search: Iterable[str] = (),
    preset: str | None = None,
    recipe: str = "modern",
    prune: Literal["median", "hyperband", "none"] = "median",
    seed: int = 0,
    storage: str | None = None,
    study: str = "sweep",
    settings: dict[str, Any] | None = None,
    on_event: OnEvent | None = None,
    on_remark: OnRemark | None = None,
) -> SweepFindings:
    """Search settings by training on a data folder; trial 0 is the recipe itself, with ``settings`` of its own.

    ``search`` names what is drawn: ``NAME=FROM..TO``, ``NAME=FROM..TO:log`` or ``NAME=A,B,C``. The folder ``out``
    (left out: beside the data) holds a run for each trial; the same call goes on after a stop, which raises
    ``SweepStopped``.
    """
    place = beside(Path(data)) if out is None else Path(out)
    wish = TrainRequest(preset, recipe, minutes, changes=settings or {})
    request = SweepRequest(wish, tuple(search), prune=prune, seed=seed, trials=trials)
    heard: Any = {"on_event": on_event, "on_remark": on_remark}
    searching = Searching(Dataset(Path(data)), place, request, url=storage, name=study, **heard)
    searching.run()
    return find(searching)


def beside(data: Path) -> Path:
    """Where a sweep stands that was given no place: beside its data, so the same command finds it again.

    >>> beside(Path("corpus/data")).as_posix()
    'corpus/data-sweep'
    """
    named = data if data.name not in ("", "..") else data.resolve()
    return named.with_name(f"{named.name or 'data'}-sweep")
