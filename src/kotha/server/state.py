"""What every request finds: the models, the indexes, the jobs, the settings, and who asks."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import PurePath

from fastapi import Request

from kotha.api.index import Index
from kotha.api.model import LanguageModel
from kotha.errors import UsageError, nearest
from kotha.server.errors import RefusedError, by_name, start_with
from kotha.server.jobs.store import JobStore
from kotha.server.model_registry import ModelRegistry
from kotha.server.serial_executor import SerialExecutor
from kotha.server.settings import ServeSettings


class Indexes:
    """Indexes by name; for whoever is in a thread, as jobs are looked up on the disk."""

    def __init__(self, places: Iterable[str], jobs: JobStore | None = None) -> None:
        self._places, self._jobs = dict[str, str](), jobs
        for place in places:
            name = PurePath(place).stem
            if name in self._places:
                raise UsageError(
                    "two indexes are named {name}; rename one, since clients select indexes by name", name=name
                )
            self._places[name] = place
            with Index(place) as index:
                index.measures  # noqa: B018 - what is no index is said before anyone asks it

    def all(self) -> dict[str, tuple[str, str]]:
        """What people call each, and where it is, which they never learn."""
        made = {} if self._jobs is None else self._jobs.indexed()
        return {name: (name, place) for name, place in self._places.items()} | made

    @contextmanager
    def opened(self, name: str, model: LanguageModel | None = None) -> Iterator[Index]:
        """An index for one question, opened by the thread that asks; another may bring it up to date meanwhile."""
        known = self.all()
        if not known:
            raise RefusedError("this server has no indexes; {advice}", 404, advice=start_with("index"))
        if name not in known:
            raise RefusedError("unknown index {name!r}{nearest}", 404, name=name, nearest=nearest(name, known))
        _, place = known[name]
        with by_name({place: name}), Index(place, model) as index:
            yield index


@dataclass
class State:
    """One server's."""

    settings: ServeSettings
    registry: ModelRegistry
    jobs: JobStore | None  # None: no folder was named for them
    indexes: Indexes
    # For what takes its time and is about no opened model; and for what reads a few files, and waits for none of that.
    turns: SerialExecutor = field(default_factory=SerialExecutor)
    reading: SerialExecutor = field(default_factory=SerialExecutor)

    def job_store(self, param: str | None = None) -> JobStore:
        """The jobs and files of a server that keeps some."""
        if self.jobs is None:
            advice = start_with("jobs")
            raise RefusedError("this server has no folder for jobs and files; {advice}", 404, param, advice=advice)
        return self.jobs


def state_of(request: Request) -> State:
    """The state of the server that got a request."""
    state: State = request.app.state.kotha
    return state


def client_of(request: Request) -> str:
    """Who asks, as far as can be told: who shares an address shares a queue."""
    return request.client.host if request.client is not None else "unknown"
