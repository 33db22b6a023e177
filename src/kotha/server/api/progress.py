"""``/api/progress``: how far what takes its time is, for whoever waits for the answer."""

from typing import Annotated

from fastapi import APIRouter, Query, Request
from pydantic import Field

from kotha.server.api.requests import WireAnswer
from kotha.server.state import state_of
from kotha.server.wire import ModelName

router = APIRouter(prefix="/api", tags=["Uses"])


class ProgressTold(WireAnswer):
    """How far the work at hand is; of several that wait for a model, the one whose turn it is."""

    stage: str = Field(description="What is being done; empty where nothing tells of itself.")
    done: int = Field(description="So much of it is behind.")
    total: int = Field(description="… of so much.")


@router.get("/progress")
async def progress(
    request: Request,
    model: Annotated[ModelName | None, Query(description="What is asked of a model; left out, of none.")] = None,
) -> ProgressTold:
    """How far it is: heads being tried one by one, models writing for a judgement."""
    state = state_of(request)
    served = None if model is None else state.registry.opened.get(model)
    turns = state.turns if model is None else None if served is None else served.turns
    found = None if turns is None else turns.how_far
    if found is None:
        return ProgressTold(stage="", done=0, total=0)
    return ProgressTold(stage=found.stage, done=found.done, total=found.total)
