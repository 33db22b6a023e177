"""``/api/machine`` and ``/api/presets``: what a design has to fit into, and where it may begin."""

import os
from typing import Any

from fastapi import APIRouter, Request, Response
from pydantic import Field

from kotha.i18n.message import OnProgress
from kotha.model.presets import presets
from kotha.server.api.requests import WireAnswer, in_turn
from kotha.server.state import state_of
from kotha.server.wire import InEnglish
from kotha.training.plan.planning import budget_for

router = APIRouter(prefix="/api", tags=["Uses"])


class MachineTold(WireAnswer):
    """This machine as a training sees it."""

    device: str = Field(description="cpu, or cuda where there is a GPU.")
    precision: str = Field(description="The numbers that a training computes with here.")
    cores: int = Field(description="Of the processor.")
    memory_bytes: int = Field(description="Free for a training.")
    operations_per_second: float = Field(
        description="Multiplications and additions that a small model usually reaches here, from a short timing."
    )


class PresetTold(WireAnswer):
    """A complete config by its name."""

    name: str = Field(description="As plans and trainings take it.")
    family: str = Field(description="gpt, bert, seq2seq or vit.")
    parameters: int = Field(description="Numbers that are learned.")
    purpose: InEnglish = Field(description="What it is for.")
    config: dict[str, Any] = Field(description="All of its sizes.")


@router.get("/machine", response_model=MachineTold)
async def machine(request: Request) -> Response:
    """What this machine has; its speed is timed once, which takes a moment."""
    state = state_of(request)

    def work(_: OnProgress) -> MachineTold:
        found = budget_for(minutes=1)
        return MachineTold(
            device=found.device,
            precision=found.precision,
            cores=os.cpu_count() or 1,
            memory_bytes=found.memory_bytes,
            operations_per_second=found.usual,
        )

    return await in_turn(request, state.turns, work)


@router.get("/presets")
async def all_presets() -> list[PresetTold]:
    """Every preset, from the smallest use to the published ones."""
    return [
        PresetTold(**{**vars(each), "purpose": str(each.purpose), "config": each.config.to_dict()})
        for each in presets()
    ]
