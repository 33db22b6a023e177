"""What every request finds: the models, the settings, and who asks."""

from dataclasses import dataclass, field

from fastapi import Request

from kotha.server.indexes import Indexes
from kotha.server.jobs.store import JobStore
from kotha.server.metrics import Metrics
from kotha.server.model_registry import ModelRegistry
from kotha.server.serial_executor import SerialExecutor
from kotha.server.settings import ServeSettings


@dataclass
class State:
    """One server's."""

    settings: ServeSettings
    registry: ModelRegistry
    metrics: Metrics
    jobs: JobStore | None = None  # None: no folder was named for them
    indexes: Indexes = field(default_factory=lambda: Indexes(()))
    turns: SerialExecutor = field(
        default_factory=SerialExecutor
    )  # for what takes its time and is about no opened model
    reading: SerialExecutor = field(
        default_factory=SerialExecutor
    )  # for what reads a few files: it waits for none of that


def state_of(request: Request) -> State:
    """The state of the server that got a request."""
    state: State = request.app.state.kotha
    return state


def client_of(request: Request) -> str:
    """Who asks, as far as can be told: who shares an address shares a queue."""
    return request.client.host if request.client is not None else "unknown"
