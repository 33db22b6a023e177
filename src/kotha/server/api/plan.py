"""``/api/plan``: what a training would need, before it starts."""

import json
from typing import Any, Literal

from fastapi import APIRouter, Request, Response
from pydantic import Field, model_validator

from kotha.errors import ConfigError, CorpusError, DataError
from kotha.export.targets import supported_targets
from kotha.server.api.requests import WireAnswer, in_turn
from kotha.server.errors import RefusedError, refusing
from kotha.server.jobs.kinds import Id, job_output
from kotha.server.naming import by_name
from kotha.server.state import State, state_of
from kotha.server.validation import FieldError
from kotha.server.wire import InEnglish, Said, WireRequest
from kotha.storage.json_files import as_json
from kotha.training.plan.gpus import gpu_named
from kotha.training.plan.planning import TextSize
from kotha.training.plan.render import tell_plan
from kotha.training.settings import TrainRequest

router = APIRouter(prefix="/api", tags=["Uses"])

_SIZES = ("vocab_size", "context_length", "d_model", "n_heads", "n_kv_heads", "d_ff", "n_layers")
_BYTES_PER_CHARACTER, _DOCUMENT_BYTES = 2.65, 2500
_TRAINING = ("steps", "batch_size", "micro_batch_size", "precision")


class PlanRequest(WireRequest):
    """A preset with sizes of one's own; or the minutes there are, for data or a text that was brought."""

    preset: str | None = Field(None, examples=["pocket"], description="Exact name, as `kotha presets` tells.")
    recipe: Literal["course", "classic", "modern"] = Field("modern", description="How the block is built.")
    # Sizes up to those of the largest models that were published: each layer is laid out, which takes its time.
    vocab_size: int | None = Field(None, ge=1, le=1 << 20, description="Tokens of the vocabulary.")
    context_length: int | None = Field(None, ge=1, le=1 << 20, description="Tokens that are read at once.")
    d_model: int | None = Field(None, ge=1, le=1 << 14, description="Width of a position's vector.")
    n_heads: int | None = Field(None, ge=1, le=256, description="Heads of an attention.")
    n_kv_heads: int | None = Field(None, ge=1, le=256, description="Heads of keys and values, where several share one.")
    d_ff: int | None = Field(None, ge=1, le=1 << 17, description="Width of the feed-forward layer.")
    n_layers: int | None = Field(None, ge=1, le=128, description="Blocks.")
    steps: int | None = Field(None, ge=1, le=1_000_000_000, description="Of the training.")
    batch_size: int | None = Field(None, ge=1, le=1 << 20, description="Sequences that a step learns from.")
    micro_batch_size: int | None = Field(
        None, ge=1, le=1 << 20, description="… of which so many are in memory at a time."
    )
    precision: Literal["auto", "float32", "bfloat16", "float16"] | None = Field(None, description="Of the arithmetic.")
    gpu: str | None = Field(None, max_length=80, description="Estimate for a GPU by name: h200, a100, t4, …")
    minutes: float | None = Field(None, gt=0, le=525_600, description="What a training does in this time, and why.")
    memory_gb: float | None = Field(
        None, gt=0, le=1_000_000, description="That a design may take; left out, what there is."
    )
    data: Id | None = Field(None, description="A job that prepared data, or a file that was brought.")
    text_bytes: int | None = Field(
        None, ge=1000, le=10**13, description="In place of data: how large a text in Bangla there would be."
    )

    @model_validator(mode="after")
    def _enough_said(self) -> "PlanRequest":
        if self.preset is None and self.minutes is None:
            raise FieldError("say what to plan: a preset, or for a design minutes and data")
        if self.data is not None and self.text_bytes is not None:
            raise FieldError("data have their own size; give data or text_bytes")
        if (self.minutes is None) != (self.data is None and self.text_bytes is None):
            raise FieldError("minutes and data go together: what fits depends on both")
        if self.memory_gb is not None and self.minutes is None:
            raise FieldError("memory_gb is for a design; give minutes and data too")
        if self.minutes is not None and any(getattr(self, name) is not None for name in _SIZES):
            raise FieldError("sizes follow from minutes and data; give one or the other")
        return self


class ExportDoor(WireAnswer):
    """Where a model could go, or why not."""

    name: str = Field(description="The format.")
    open: bool = Field(description="Whether a model of this kind can go there.")
    because: Said = Field(description="As what it opens there, or which settings close it.")


class PlanTable(WireAnswer):
    """A table as it is read."""

    title: InEnglish = Field(description="What it shows.")
    header: list[InEnglish] = Field(description="Its columns.")
    rows: list[list[InEnglish]] = Field(description="As they are read.")


class PlanAnswer(WireAnswer):
    """Parameters, work, memory and time: as numbers, and in tables and sentences."""

    preset: str | None = Field(description="What the sizes began with; null where they were chosen.")
    config: dict[str, Any] = Field(description="The model's, whole.")
    parameters: dict[str, int | bool] = Field(description="By part.")
    precision: str = Field(description="Of the arithmetic.")
    device: str = Field(description="That was reckoned for.")
    compiled: bool = Field(description="Whether torch would compile it.")
    context_length: int = Field(description="Tokens that it reads at once.")
    micro_batch_size: int = Field(description="Sequences in memory at a time.")
    gpu: str | None = Field(description="That was named.")
    memory_available_bytes: int | None = Field(description="Of the GPU that was named.")
    tokens_per_step: int = Field(description="That a step learns from.")
    steps: int = Field(description="Of the training.")
    seconds_per_step: float | None = Field(description="Null where nothing was timed and no GPU named.")
    time_source: InEnglish | None = Field(description="Where the seconds come from.")
    peak_flops_per_second: float | None = Field(description="Of the device, if known.")
    memory_bytes: dict[str, int | str] = Field(description="By what takes it.")
    flops_per_token: float = Field(description="Of training.")
    flops: dict[str, Any] = Field(description="Work by part.")
    tokens: int = Field(description="Of the whole training.")
    epochs: float | None = Field(description="How often the data are read; null without data.")
    seconds: float | None = Field(description="Of the whole training.")
    peak_share: float | None = Field(description="How much of the device's peak that uses.")
    doors: list[ExportDoor] = Field(description="Where the model could be exported to.")
    design: dict[str, Any] | None = Field(description="Where the sizes were chosen: which, and why.")
    words: list[InEnglish] = Field(description="The same in sentences.")
    tables: list[PlanTable] = Field(description="… and in tables.")


@router.post("/plan", response_model=PlanAnswer)
async def plan(request: Request, body: PlanRequest) -> Response:
    """What a model is made of and what its training takes, part by part; or which model fits the minutes there are."""
    state = state_of(request)
    return await in_turn(request, state.turns, lambda _: _plan(state, body))


def _plan(state: State, body: PlanRequest) -> PlanAnswer:
    changes = {name: getattr(body, name) for name in (*_SIZES, *_TRAINING) if getattr(body, name) is not None}
    data = _imagined(body.text_bytes) if body.data is None else _data(state, body.data)
    with refusing(ConfigError, CorpusError, DataError), by_name({str(data): str(body.data)}):
        gpu = None if body.gpu is None else gpu_named(body.gpu)
        memory = None if body.memory_gb is None else int(body.memory_gb * 1e9)
        wanted = TrainRequest(body.preset, body.recipe, body.minutes, memory, None, gpu, changes)
        # The server's own threads stay as they are, whatever would be fastest for a training.
        found, text = tell_plan(
            wanted, data, supported_targets, timed=body.minutes is not None, before_timing=lambda: None
        )
    design = found.pop("design", None)
    if design is not None:
        shown = {name: value for name, value in design.items() if name not in ("data", "commands")}  # they name folders
        design = json.loads(as_json(shown))  # its reasons are messages
    tables = [{"title": title, "header": header, "rows": rows} for title, header, rows in text.tables]
    return PlanAnswer.model_validate({**found, "design": design, "words": text.words, "tables": tables})


def _imagined(n_bytes: int | None) -> TextSize | None:
    """A text of a size, in which a document is as long as a story, and a letter as many bytes as in Bangla."""
    if n_bytes is None:
        return None
    return TextSize("", n_bytes, int(n_bytes / _BYTES_PER_CHARACTER), n_bytes // _DOCUMENT_BYTES + 1, None, None)


def _data(state: State, id: str) -> str:
    """Where data are that a job prepared, or a text that was brought."""
    if state.jobs is None:
        advice = state.settings.advice.jobs
        raise RefusedError(
            "this server keeps no files and no jobs; plan a preset, or {advice}", 404, "data", advice=advice
        )
    if state.jobs.has(id):
        return str(job_output(state.jobs, id, "prepare", "data"))
    return str(state.jobs.uploads.place(id))
