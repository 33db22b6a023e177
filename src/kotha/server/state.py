"""The state that a server's routes share: models, indexes, jobs and settings."""

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
    """Indexes by name; its methods read from disk, so they must be called in a thread."""

    def __init__(self, paths: Iterable[str], jobs: JobStore | None = None) -> None:
        self._paths, self._jobs = dict[str, str](), jobs
        for path in paths:
            name = PurePath(path).stem
            if name in self._paths:
                raise UsageError(
                    "two indexes are named {name}; rename one, since clients select indexes by name", name=name
                )
            self._paths[name] = path
            with Index(path) as index:
                index.measures  # noqa: B018 - raises if the file is not an index

    def all(self) -> dict[str, tuple[str, str]]:
        """Return each index's title and path by name; paths are never sent to clients."""
        made = {} if self._jobs is None else self._jobs.indexed()
        return {name: (name, path) for name, path in self._paths.items()} | made

    @contextmanager
    def opened(self, name: str, model: LanguageModel | None = None) -> Iterator[Index]:
        """Open an index for one request; must be called in the thread that uses the index."""
        known = self.all()
        if not known:
            raise RefusedError("this server has no indexes; {advice}", 404, advice=start_with("index"))
        if name not in known:
            raise RefusedError("unknown index {name!r}{nearest}", 404, name=name, nearest=nearest(name, known))
        _, path = known[name]
        with by_name({path: name}), Index(path, model) as index:
            yield index


@dataclass
class State:
    """The state of one server."""

    settings: ServeSettings
    registry: ModelRegistry
    jobs: JobStore | None  # None: started without a folder for jobs
    indexes: Indexes
    # `turns` runs slow work that needs no loaded model; `reading` runs quick work on files, which does not wait for
    # `turns`.
    turns: SerialExecutor = field(default_factory=SerialExecutor)
    reading: SerialExecutor = field(default_factory=SerialExecutor)
    uploading: SerialExecutor = field(default_factory=SerialExecutor)  # parses uploads

    def close(self) -> None:
        """End the requests that wait for their turn or inspect something; text generation continues."""
        for turns in (
            self.turns,
            self.reading,
            self.uploading,
            *(each.turns for each in self.registry.opened.values()),
        ):
            turns.close()

    def job_store(self, param: str | None = None) -> JobStore:
        """Return the store for jobs and files; raises RefusedError if the server was started without a jobs folder."""
        if self.jobs is None:
            advice = start_with("jobs")
            raise RefusedError("this server has no folder for jobs and files; {advice}", 404, param, advice=advice)
        return self.jobs


def state_of(request: Request) -> State:
    """Return the state of the server that received a request."""
    state: State = request.app.state.kotha
    return state


def client_of(request: Request) -> str:
    """Return the client's IP address; clients with the same address share a queue."""
    return request.client.host if request.client is not None else "unknown"
