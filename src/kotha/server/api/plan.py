"""What a training would need, before it starts (``/api/plan``); what it has to fit into (``/api/machine``), where a
design may begin (``/api/presets``), and how far what takes its time is (``/api/progress``).
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
from kotha.server.api.requests import WireAnswer, route
from kotha.server.errors import by_name, refusing
from kotha.server.jobs.kinds import ModelSizes
from kotha.server.json_requests import Id, JsonObject, ModelName, Said
from kotha.server.serial_executor import HowFar
from kotha.server.state import State, state_of
from kotha.storage.json_files import as_json
from kotha.training.plan.design import TextSize, budget_for

router = APIRouter(prefix="/api", tags=["Uses"])

# What is asked about a plan as a whole; all else are sizes and settings.
_WHOLE = {"preset", "recipe", "minutes", "memory_gb", "gpu"}
_BYTES_PER_CHARACTER, _DOCUMENT_BYTES = 2.65, 2500


class PlanRequest(ModelSizes):
    """A preset with sizes of one's own; or the minutes there are, for a text that was brought."""

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


class ExportDoor(WireAnswer):
    """Where a model could go, or why not."""

    name: str
    open: bool
    because: Said


class PlanAnswer(WireAnswer):
    """Parameters, work, memory and time."""

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
    doors: list[ExportDoor]
    design: JsonObject | None


@route(router, "/plan", PlanAnswer)
def plan(state: State, body: PlanRequest) -> JsonObject:
    """What a model is made of and what its training takes, part by part; or which model fits the minutes there are."""
    data = None if body.data is None else str(state.job_store("data").uploads.place(body.data))
    size = None
    if body.text_bytes is not None:  # a document is as long as a story, and a letter as many bytes as in Bangla
        n_bytes, documents = body.text_bytes, body.text_bytes // _DOCUMENT_BYTES + 1
        size = TextSize("", n_bytes, int(n_bytes / _BYTES_PER_CHARACTER), documents, None, None)
    with refusing(ConfigError, CorpusError, DataError), by_name({str(data): str(body.data)}):
        options = PlanOptions(**body.model_dump(include=_WHOLE), data=data, no_time=body.minutes is None)
        changes = body.model_dump(exclude={*_WHOLE, "data", "text_bytes"}, exclude_none=True)
        # The server's own threads stay, whatever would be fastest for a training.
        found = plan_training(options, changes, text=size, before_timing=lambda: None).found
    design = found.pop("design", None)
    if design is not None:
        shown = {name: value for name, value in design.items() if name not in ("data", "commands")}  # they name folders
        design = json.loads(as_json(shown))  # its reasons are messages
    return {**found, "design": design}


class MachineTold(WireAnswer):
    """This machine as a training sees it."""

    device: str
    precision: str
    cores: int
    memory_bytes: int
    operations_per_second: float


@route(router, "/machine", MachineTold, method="GET")
def machine(_state: State) -> JsonObject:
    """What this machine has; its speed is timed once, which takes a moment."""
    found = budget_for(minutes=1)
    return {**vars(found), "cores": os.cpu_count() or 1, "operations_per_second": found.usual}


class PresetTold(WireAnswer):
    """A complete config by its name."""

    name: str
    family: str
    parameters: int
    purpose: Text
    config: JsonObject


@router.get("/presets")
async def all_presets() -> list[PresetTold]:
    """Every preset, from the smallest use to the published ones."""
    return [PresetTold(**{**vars(each), "config": each.config.to_dict()}) for each in presets()]


@router.get("/progress")
async def progress(
    request: Request,
    model: Annotated[ModelName | None, Query(description="What is asked of a model; left out, of none.")] = None,
) -> HowFar:
    """How far it is: heads being tried one by one, models writing for a judgement."""
    state = state_of(request)
    served = None if model is None else state.registry.opened.get(model)
    turns = state.turns if model is None else None if served is None else served.turns
    return (turns and turns.how_far) or HowFar("", 0, 0)
