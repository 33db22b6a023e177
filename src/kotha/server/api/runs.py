"""Training runs, finished or in progress, from the server's models and from its jobs.

The routes return results, the loss curve and the held-out score (``/api/runs``), a diagnosis of the curve
(``/api/doctor``), and a comparison of several runs (``/api/compare``).
"""

import json
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Literal

from fastapi import APIRouter, Query, Request
from fastapi import Path as PathParameter
from pydantic import Field

from kotha.api.compare import compare as compare_runs
from kotha.artifacts.run_folder import METRICS, RunFolder, figure, find_data, mapping, run_config
from kotha.errors import CorpusError, DataError
from kotha.evaluation.comparison import Comparison
from kotha.evaluation.doctor.curve import evaluations_of, points_of, read_curve
from kotha.evaluation.doctor.diagnosis import examine
from kotha.finetune.examples import EXAMPLES, PARTS
from kotha.i18n.message import OnProgress
from kotha.server.api.requests import WireResponse, route
from kotha.server.errors import RefusedError, by_name, refusing
from kotha.server.jobs.status import TRAININGS, Job
from kotha.server.jobs.table import NoSuchJobError
from kotha.server.json_requests import Id, JsonObject, TranslatableMessage, WireRequest
from kotha.server.state import State, state_of
from kotha.text.shards import Dataset

router = APIRouter(prefix="/api", tags=["Jobs"])
NamedRun = Annotated[str, PathParameter(description="Name of a model on this server, or id of a training job.")]
RunName = Annotated[str, Field(max_length=300)]
# Longer curves are thinned out to this number of rows.
_MOST_ROWS = 4000
# Number of held-out examples in a score.
_SOME = 6
_AFTER = "Return only measurements after this step."


class RunRow(WireResponse):
    """Summary of a training run."""

    name: str
    title: str
    tags: list[str]
    state: str
    started: float | None
    family: str | None
    steps: int | None
    bits_per_byte: float | None
    loss_nats: float | None


class CurvePoint(WireResponse):
    """Measurements at a training step."""

    step: int
    loss_nats: float | None
    tokens: float | None
    seconds: float | None
    learning_rate: float | None
    gradient_norm: float | None
    tokens_per_second: float | None
    memory_bytes: float | None


class CurveEvaluation(WireResponse):
    """An evaluation on held-out text, and a sample of generated text."""

    step: int
    loss_nats: float
    bits_per_byte: float | None
    bits_per_character: float | None
    sample: str


class RunResponse(RunRow):
    """A training run: settings, predictions and measurements."""

    output: str
    error: TranslatableMessage | None
    stages: dict[str, bool]
    sizes: dict[str, int]
    epochs: float | None
    references: dict[str, float]
    floor_bits_per_byte: float | None
    predicted_seconds: float | None
    predicted_bytes: int | None
    points: list[CurvePoint]
    evaluations: list[CurveEvaluation]


@router.get("/runs")
def runs(request: Request) -> list[RunRow]:
    """Return all training runs: first those from jobs, newest first, then those of the served models."""
    store, paths = state_of(request).jobs, state_of(request).registry.model_paths
    jobs = [] if store is None else [(job, store.result(job.id)) for job in store.all() if job.kind in TRAININGS]
    served = [(name, path) for name, path in paths.items() if (path / METRICS).is_file()]
    known = [_known(job.id, RunFolder(path), job) for job, path in jobs]
    known += [_known(name, RunFolder(path), None) for name, path in served]
    return [RunRow.model_validate(each) for each in known]


def _known(name: str, folder: RunFolder, job: Job | None) -> JsonObject:
    """Return a training run's summary from its run folder and, if it has one, its job."""
    config, best = folder.about() if folder.exists else {}, folder.best() or {}
    configs = [config, *(each.about() for each in (folder.teachers() if folder.exists else []))]
    steps = sum(figure(each, "training", "steps") or 0 for each in configs) or None
    status = {"tags": [], "state": "done", "started": None, "output": "", "error": None} if job is None else dict(job)
    found = {"name": name, "family": mapping(config, "model").get("family"), "steps": steps and int(steps)}
    scores = {key: figure(best, key) for key in ("bits_per_byte", "loss_nats")}
    return {**status, **found, **scores, "title": (job.name if job is not None else "") or name}


@route(router, "/runs/{name}", RunResponse, method="GET", reads=True)
def run(state: State, name: NamedRun, after: Annotated[int, Query(ge=-1, description=_AFTER)] = -1) -> JsonObject:
    """Return a training run with its curve, even before the first training step."""
    path = _folder_of(state, name)
    job = None if state.jobs is None or name in state.registry.model_paths else state.jobs.status(name)
    folder = RunFolder(path)
    if job is None and not (path / METRICS).is_file():
        raise RefusedError("{name} has no record of its training run", 404, "name", name=name)
    config, metrics = (folder.about(), folder.metrics_with_teachers()) if folder.exists else ({}, [])
    curve = read_curve(config, metrics)
    new = [row for row in metrics if (figure(row, "step") or -1.0) > after]
    sizes = {key: value for key, value in mapping(config, "model").items() if type(value) is int}
    if sizes:
        sizes["batch_size"] = int(figure(config, "training", "batch_size") or 0)
    n_bytes = figure(config, "predicted", "memory_bytes", "total")
    return {
        **_known(name, folder, job),
        "stages": {} if job is None or state.jobs is None else state.jobs.stages(job.id),
        "sizes": sizes,
        "epochs": curve.epochs,
        "references": curve.references,
        "floor_bits_per_byte": curve.floor,
        "predicted_seconds": figure(config, "predicted", "seconds"),
        "predicted_bytes": n_bytes and int(n_bytes),
        "points": points_of(new, _MOST_ROWS),
        "evaluations": evaluations_of(new),
    }


class ClassResult(WireResponse):
    """Results of one class."""

    label: str
    precision: float
    recall: float
    f1: float
    support: int


class RunScore(WireResponse):
    """Results on held-out examples, with baselines."""

    measure: Literal["accuracy", "bleu", "none"]
    value: float | None
    macro_f1: float | None
    chrf: float | None
    examples: int
    baselines: dict[str, float]
    classes: list[ClassResult]
    confusion: list[list[int]]
    some: list[tuple[str, str]]


@route(router, "/runs/{name}/score", RunScore, method="GET", reads=True)
def score(state: State, name: NamedRun) -> JsonObject:
    """Return the score, on held-out examples, of a model trained on a table of examples."""
    folder = RunFolder(_folder_of(state, name))
    summary = folder.summary() if folder.exists else None
    held_out = folder.path / EXAMPLES / f"{PARTS[-1]}.jsonl"
    if not held_out.is_file():
        raise RefusedError(
            "{name} was not trained on a table of examples, so it has no held-out examples", 404, "name", name=name
        )
    if summary is None or summary.get("stopped"):
        raise RefusedError("{name} has not finished; its score is measured at the end", 409, "name", name=name)
    rows = [json.loads(line) for line in held_out.read_text(encoding="utf-8").split("\n") if line]
    measure = "accuracy" if "confusion" in summary else "bleu" if "bleu" in summary else "none"
    baselines = {name: figure(each, measure) for name, each in mapping(summary, "baselines").items()}
    return {
        "measure": measure,
        "value": figure(summary, measure),
        "macro_f1": figure(summary, "macro_f1"),
        "chrf": figure(summary, "chrf"),
        "examples": len(rows),
        "baselines": {name: value for name, value in baselines.items() if value is not None},
        "classes": summary["classes"] if measure == "accuracy" else [],
        "confusion": summary["confusion"] if measure == "accuracy" else [],
        "some": [tuple(map(str, row.values()))[:2] for row in rows[:_SOME]],
    }


class DoctorRequest(WireRequest):
    """The run to diagnose."""

    run: Annotated[RunName, Field(examples=["box"])]


class DoctorFinding(WireResponse):
    """A finding with its evidence; text and advice are given by language (en, bn)."""

    kind: str
    severity: str
    evidence: dict[str, float | int | str]
    words: dict[str, str]
    advice: dict[str, list[str]]


class DoctorResponse(WireResponse):
    """Findings, most severe first; ``healthy`` if there are none."""

    findings: list[DoctorFinding]
    healthy: dict[str, str] | None
    looked_at_data: bool


@route(router, "/doctor", DoctorResponse)
def doctor(state: State, body: DoctorRequest) -> JsonObject:
    """Diagnose a run's loss curve: what it shows and what to try, in English and Bangla."""
    path = _folder_of(state, body.run)
    folder = RunFolder(path)
    if not (folder.exists and (path / METRICS).exists()):
        raise RefusedError("{run} has no loss curve; only training runs have one", param="run", run=body.run)
    config = folder.about()
    data = find_data(config, path)
    return examine(config, folder.metrics(), None if data is None else Dataset(data, verify=False)).to_dict()


class CompareRequest(WireRequest):
    """Runs to compare; with an uploaded text, all are measured on it."""

    runs: list[RunName] = Field(min_length=1, max_length=8, examples=[["box"]])
    text: Id | None = None


@route(router, "/compare", Comparison)
def compare(state: State, on_progress: OnProgress, body: CompareRequest) -> Comparison:
    """Compare runs by bits per byte and per character (also across tokenizers), and by perplexity where comparable."""
    if len(set(body.runs)) < len(body.runs):
        raise RefusedError("a run is listed twice; list each run once", param="runs")
    text = None if body.text is None else state.job_store("text").uploads.path(body.text)
    paths = {name: _folder_of(state, name) for name in body.runs}
    for name, path in paths.items():
        if text is None and not run_config(path):
            raise RefusedError(
                "{name} has no measurements of its own; upload a text to measure on", param="runs", name=name
            )
    names = {str(path): name for name, path in paths.items()} | {str(text): str(body.text)}
    with refusing(CorpusError, DataError, param="text"), by_name(names):
        found = compare_runs(
            paths.values(), names=body.runs, text=text, device=state.registry.device, on_progress=on_progress
        )
    return replace(found, text=body.text)


def _folder_of(state: State, name: str) -> Path:
    """Return a run's folder, even before the run has a model."""
    if name in state.registry.model_paths or state.jobs is None:
        return state.registry.path(name)
    try:
        return state.jobs.result(name)
    except NoSuchJobError as error:
        raise RefusedError("no model or job named {name!r}", 404, "run", name=name) from error
