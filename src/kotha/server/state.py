"""What every request finds: the models, the settings, and who asks."""

from dataclasses import dataclass, field

from fastapi import Request

from kotha.server.errors import RefusedError, start_with
from kotha.server.indexes import Indexes
from kotha.server.jobs.store import JobStore
from kotha.server.model_registry import ModelRegistry
from kotha.server.serial_executor import SerialExecutor
from kotha.server.settings import ServeSettings


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
            raise RefusedError("this server takes no jobs and keeps no files; {advice}", 404, param, advice=advice)
        return self.jobs


def state_of(request: Request) -> State:
    """The state of the server that got a request."""
    state: State = request.app.state.kotha
    return state


def client_of(request: Request) -> str:
    """Who asks, as far as can be told: who shares an address shares a queue."""
    return request.client.host if request.client is not None else "unknown"
