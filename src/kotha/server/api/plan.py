"""Plan a training run (``/api/plan``), describe this machine (``/api/machine``), list the presets (``/api/presets``),
and report the progress of slow requests (``/api/progress``).
"""

import json
import os
from typing import Annotated, Literal

from fastapi import APIRouter, Query, Request
from pydantic import Field

from kotha.api.options import PlanOptions
from kotha.api.plan import plan as plan_training
from kotha.errors import ConfigError, CorpusError, DataError
from kotha.i18n.message import Text
from kotha.model.presets import presets
from kotha.server.api.requests import WireResponse, route
from kotha.server.errors import by_name, refusing
from kotha.server.jobs.kinds import ModelSizes
from kotha.server.json_requests import Id, JsonObject, MessageField, ModelName
from kotha.server.serial_executor import ProgressResponse
from kotha.server.state import State, state_of
from kotha.storage.json_files import as_json
from kotha.training.plan.design import budget_for
from kotha.training.plan.text_size import TextSize

router = APIRouter(prefix="/api", tags=["Uses"])

# Fields that are planning options; all others change sizes and settings.
_OPTIONS = {"preset", "recipe", "minutes", "memory_gb", "gpu"}
_BYTES_PER_CHARACTER, _DOCUMENT_BYTES = 2.65, 2500


class PlanRequest(ModelSizes):
    """A preset with changes, or a time budget for an uploaded text."""

    preset: str | None = Field(None, examples=["pocket"])
    recipe: Literal["course", "classic", "modern"] = "modern"
    vocab_size: int | None = Field(None, ge=1, le=1 << 20)
    n_kv_heads: int | None = Field(None, ge=1, le=256)
    d_ff: int | None = Field(None, ge=1, le=1 << 17)
    steps: int | None = Field(None, ge=1, le=1_000_000_000)
    micro_batch_size: int | None = Field(None, ge=1, le=1 << 20)
    precision: Literal["auto", "float32", "bfloat16", "float16"] | None = None
    gpu: str | None = Field(None, max_length=80)
    minutes: float | None = Field(None, gt=0, le=525_600)
    memory_gb: float | None = Field(None, gt=0, le=1_000_000)
    data: Id | None = None
    text_bytes: int | None = Field(None, ge=1000, le=10**13)


class ExportTargetInfo(WireResponse):
    """An export format, and whether the model can be exported to it."""

    name: str
    supported: bool
    details: MessageField


class PlanResponse(WireResponse):
    """A plan: parameters, operations, memory and time."""

    preset: str | None
    config: JsonObject
    parameters: dict[str, int | bool]
    precision: str
    device: str
    compiled: bool
    context_length: int
    micro_batch_size: int
    gpu: str | None
    memory_available_bytes: int | None
    tokens_per_step: int
    steps: int
    seconds_per_step: float | None
    time_source: Text | None
    peak_flops_per_second: float | None
    memory_bytes: dict[str, int | str]
    flops_per_token: float
    flops: JsonObject
    tokens: int
    epochs: float | None
    seconds: float | None
    peak_share: float | None
    export_targets: list[ExportTargetInfo]
    design: JsonObject | None


@route(router, "/plan", PlanResponse)
def plan(state: State, body: PlanRequest) -> JsonObject:
    """Return a model's parameters and training cost by part, or choose a model that fits a time budget."""
    data = None if body.data is None else str(state.job_store("data").uploads.path(body.data))
    size = None
    if body.text_bytes is not None:  # assume documents as long as a story, and Bangla characters
        n_bytes, documents = body.text_bytes, body.text_bytes // _DOCUMENT_BYTES + 1
        size = TextSize("", n_bytes, int(n_bytes / _BYTES_PER_CHARACTER), documents, None, None)
    with refusing(ConfigError, CorpusError, DataError), by_name({str(data): str(body.data)}):
        options = PlanOptions(**body.model_dump(include=_OPTIONS), data=data, no_time=body.minutes is None)
        changes = body.model_dump(exclude={*_OPTIONS, "data", "text_bytes"}, exclude_none=True)
        # Keep the server's own number of threads.
        found = plan_training(options, changes, text=size, before_timing=lambda: None).found
    design = found.pop("design", None)
    if design is not None:
        shown = {
            name: value for name, value in design.items() if name not in ("data", "commands")
        }  # these contain paths
        design = json.loads(as_json(shown))  # its reasons are messages
    return {**found, "design": design}


class MachineResponse(WireResponse):
    """This machine's hardware, as used in training."""

    device: str
    precision: str
    cores: int
    memory_bytes: int
    operations_per_second: float


@route(router, "/machine", MachineResponse, method="GET")
def machine(_state: State) -> JsonObject:
    """Return a description of this machine's hardware; the first call runs a short benchmark."""
    found = budget_for(minutes=1)
    return {**vars(found), "cores": os.cpu_count() or 1, "operations_per_second": found.usual}


class PresetResponse(WireResponse):
    """A preset with its complete config."""

    name: str
    family: str
    parameters: int
    purpose: Text
    config: JsonObject


@router.get("/presets")
async def all_presets() -> list[PresetResponse]:
    """Return all presets."""
    return [PresetResponse(**{**vars(each), "config": each.config.to_dict()}) for each in presets()]


@router.get("/progress")
async def progress(
    request: Request,
    model: Annotated[
        ModelName | None, Query(description="Model used by the request (default: a request without a model).")
    ] = None,
) -> ProgressResponse:
    """Return the progress of the slow request that is running, such as a study of heads or a blind comparison."""
    state = state_of(request)
    served = None if model is None else state.registry.opened.get(model)
    turns = state.turns if model is None else None if served is None else served.turns
    return (turns and turns.how_far) or ProgressResponse("", 0, 0)
