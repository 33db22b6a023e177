"""Runs by name: those that the server was started with, and those of its jobs, finished or not."""

from pathlib import Path
from typing import Annotated

from pydantic import Field

from kotha.server.errors import RefusedError
from kotha.server.jobs.errors import NoSuchJobError
from kotha.server.jobs.store import TRAININGS
from kotha.server.state import State

RunName = Annotated[str, Field(max_length=300, description="A model of this server, or the id of a training job.")]


def place_of(state: State, name: str) -> Path:
    """The folder of a run; a training's also before it has a model."""
    if name in state.registry.places or state.jobs is None:
        return state.registry.place(name)
    try:
        kind = state.jobs.status(name).kind
    except NoSuchJobError as error:
        raise RefusedError("there is no model and no job {name!r}", 404, "run", name=name) from error
    if kind not in TRAININGS:
        raise RefusedError(
            "{name} is a {kind} job and no training, so it has no run", param="run", name=name, kind=kind
        )
    return state.jobs.result(name)
