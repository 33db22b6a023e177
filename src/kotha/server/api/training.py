"""``/api/runs``: trainings, finished or under way: what each reached, its whole curve, and its held-out score."""

import asyncio
import json
from pathlib import Path
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Query, Request, Response
from fastapi import Path as PathParameter
from pydantic import Field

from kotha.artifacts.run_folder import METRICS, RunFolder, figure, mapping
from kotha.evaluation.doctor.curve import evaluations_of, points_of, read_curve
from kotha.finetune.examples import EXAMPLES, PARTS
from kotha.i18n.message import OnProgress
from kotha.server.api.requests import WireAnswer, in_turn
from kotha.server.api.runs import place_of
from kotha.server.errors import RefusedError
from kotha.server.jobs.status import Job
from kotha.server.jobs.store import TRAININGS
from kotha.server.state import State, state_of
from kotha.server.wire import ToldMessage
from kotha.storage.status import is_file

router = APIRouter(prefix="/api", tags=["Jobs"])
NamedRun = Annotated[str, PathParameter(description="A model of this server, or the id of a training job.")]
# A curve of more rows than this is thinned out: no screen has so many columns.
_MOST_ROWS = 4000
# Held-out examples that are shown.
_SOME = 6
_AFTER = "Only what was measured after this step: for whoever has seen the rest."


class RunRow(WireAnswer):
    """A training in a line."""

    name: str = Field(description="What it is asked for by: a model's name, or a job's id.")
    title: str = Field(description="What people call it.")
    tags: list[str] = Field(description="Words that people find it by; none of a run that is no job.")
    state: str = Field(description="running, done, failed, stopped or killed.")
    began: float | None = Field(description="When, in seconds since 1970; null of a run that is no job.")
    family: str | None = Field(description="Of the model, once it is known.")
    steps: int | None = Field(description="Steps that are asked for.")
    bits_per_byte: float | None = Field(description="The best so far, on text that was held out.")
    loss_nats: float | None = Field(description="The loss there.")


class CurvePoint(WireAnswer):
    """What was measured at a step of the training."""

    step: int = Field(description="Which step.")
    loss_nats: float | None = Field(description="Of the batch; null where it was no number.")
    tokens: float | None = Field(description="Tokens learned from until then.")
    seconds: float | None = Field(description="Since the training began.")
    learning_rate: float | None = Field(description="At that step.")
    gradient_norm: float | None = Field(description="Before clipping.")
    tokens_per_second: float | None = Field(description="Just then.")
    memory_bytes: float | None = Field(description="The most that was used so far.")


class CurveEvaluation(WireAnswer):
    """A look at text that was held out, and what the model wrote then."""

    step: int = Field(description="After which step.")
    loss_nats: float = Field(description="In nats a token.")
    bits_per_byte: float | None = Field(description="The same, for comparing tokenizers.")
    bits_per_character: float | None = Field(description="The same, by characters.")
    sample: str = Field(description="What it wrote; empty where nothing was asked for.")


class RunTold(WireAnswer):
    """A training: what it is, what was expected of it, and how it went."""

    name: str = Field(description="What it is asked for by.")
    title: str = Field(description="What people call it.")
    tags: list[str] = Field(description="Words that people find it by; none of a run that is no job.")
    state: str = Field(description="running, done, failed, stopped or killed.")
    said: str = Field(description="The last of what its command said; empty of a run that is no job.")
    error: ToldMessage | None = Field(description="Why it failed; null where it did not.")
    stages: dict[str, bool] = Field(description="What is made before it learns, and whether it is there already.")
    family: str | None = Field(description="Of the model, once it is known.")
    sizes: dict[str, int] = Field(description="Layers, heads, widths and the like.")
    steps: int | None = Field(description="Steps that are asked for.")
    epochs: float | None = Field(description="How often the text was read until now.")
    references: dict[str, float] = Field(description="Losses to compare with, in nats: ln V, unigram, …")
    floor_bits_per_byte: float | None = Field(
        description="What nobody can beat, where the source of the text is known."
    )
    predicted_seconds: float | None = Field(description="How long it was expected to take.")
    predicted_bytes: int | None = Field(description="How much memory it was expected to take.")
    points: list[CurvePoint] = Field(description="The training loss, thinned out where there are very many.")
    evaluations: list[CurveEvaluation] = Field(description="On text that was held out.")


class ClassReached(WireAnswer):
    """One class by itself."""

    label: str = Field(description="Which.")
    precision: float = Field(description="Of those that it was said of, the share that are it.")
    recall: float = Field(description="Of those that are it, the share that it was said of.")
    f1: float = Field(description="The harmonic mean of both.")
    support: int = Field(description="How many are it.")


class RunScore(WireAnswer):
    """What a training from examples reached on those that were held out, beside what simpler ways reach."""

    measure: Literal["accuracy", "bleu", "none"] = Field(
        description="Accuracy from 0 to 1 of a classifier, BLEU from 0 to 100 of a translator; none could be taken."
    )
    value: float | None = Field(description="What it reached by it.")
    macro_f1: float | None = Field(description="The mean F1 of all classes; of a classifier.")
    chrf: float | None = Field(description="chrF++ from 0 to 100; of a translator.")
    examples: int = Field(description="How many were held out.")
    baselines: dict[str, float] = Field(description="What others reach by the same measure: majority, nearest, …")
    classes: list[ClassReached] = Field(description="Each class by itself; of a classifier.")
    confusion: list[list[int]] = Field(description="Rows: what they are; columns: what was said; of a classifier.")
    some: list[tuple[str, str]] = Field(description="Some of the examples that were held out, for trying it.")


@router.get("/runs")
async def runs(request: Request) -> list[RunRow]:
    """Every training at hand: of the models that are served, and of jobs; the newest first."""
    state = state_of(request)
    return await asyncio.to_thread(_all, state)


@router.get("/runs/{name}", response_model=RunTold)
async def run(
    request: Request, name: NamedRun, after: Annotated[int, Query(ge=-1, description=_AFTER)] = -1
) -> Response:
    """One training with its curve; also before it has begun to learn."""
    state = state_of(request)

    def work(_: OnProgress) -> RunTold:
        place, job = place_of(state, name), _job(state, name)
        folder = RunFolder(place)
        if job is None and not is_file(place / METRICS):
            raise RefusedError("{name} is a model without a training to look back at", 404, "name", name=name)
        stages = {} if job is None or state.jobs is None else state.jobs.stages(job.id)
        return _told(name, folder, job, stages, after)

    return await in_turn(request, state.reading, work)


@router.get("/runs/{name}/score", response_model=RunScore)
async def score(request: Request, name: NamedRun) -> Response:
    """What a training from examples reached on those that it never saw."""
    state = state_of(request)

    def work(_: OnProgress) -> RunScore:
        folder = RunFolder(place_of(state, name))
        summary = folder.summary() if folder.exists else None
        held_out = folder.path / EXAMPLES / f"{PARTS[-1]}.jsonl"
        if not is_file(held_out):
            raise RefusedError(
                "{name} did not learn from a table of examples, so none were held out", 404, "name", name=name
            )
        if summary is None or summary.get("stopped"):
            raise RefusedError("{name} has not come to its end yet; its score is measured then", 409, "name", name=name)
        return _score(summary, _pairs(held_out))

    return await in_turn(request, state.reading, work)


def _score(summary: dict[str, Any], held_out: list[tuple[str, str]]) -> RunScore:
    measure: Literal["accuracy", "bleu", "none"] = (
        "accuracy" if "confusion" in summary else "bleu" if "bleu" in summary else "none"
    )
    baselines = {name: figure(each, measure) for name, each in mapping(summary, "baselines").items()}
    return RunScore(
        measure=measure,
        value=figure(summary, measure),
        macro_f1=figure(summary, "macro_f1"),
        chrf=figure(summary, "chrf"),
        examples=len(held_out),
        baselines={name: value for name, value in baselines.items() if value is not None},
        classes=[ClassReached(**each) for each in summary["classes"]] if measure == "accuracy" else [],
        confusion=summary["confusion"] if measure == "accuracy" else [],
        some=held_out[:_SOME],
    )


def _pairs(examples: Path) -> list[tuple[str, str]]:
    rows = (json.loads(line) for line in examples.read_text(encoding="utf-8").split("\n") if line)
    pairs = (tuple(map(str, row.values())) for row in rows)
    return [(first, second) for first, second, *_ in pairs]


def _all(state: State) -> list[RunRow]:
    jobs = [] if state.jobs is None else [job for job in state.jobs.all() if job.kind in TRAININGS]
    found = [_row(job.id, state.jobs.result(job.id), job) for job in jobs] if state.jobs is not None else []
    served = [(name, place) for name, place in state.registry.places.items() if is_file(place / METRICS)]
    return found + [_row(name, place, None) for name, place in served]


def _job(state: State, name: str) -> Job | None:
    if state.jobs is None or name in state.registry.places:
        return None
    return state.jobs.status(name)


def _row(name: str, place: Path, job: Job | None) -> RunRow:
    folder = RunFolder(place)
    config = folder.about() if folder.exists else {}
    best = folder.best() or {}
    return RunRow(
        name=name,
        title=(job.name if job is not None else "") or name,
        tags=[] if job is None else list(job.tags),
        state="done" if job is None else job.state,
        began=None if job is None else job.began,
        family=mapping(config, "model").get("family"),
        steps=_whole(figure(config, "training", "steps")),
        bits_per_byte=figure(best, "bits_per_byte"),
        loss_nats=figure(best, "loss_nats"),
    )


def _told(name: str, folder: RunFolder, job: Job | None, stages: dict[str, bool], after: int) -> RunTold:
    config = folder.about() if folder.exists else {}
    metrics = folder.metrics() if folder.exists else []
    curve = read_curve(config, metrics)
    new = [row for row in metrics if (figure(row, "step") or -1.0) > after]
    points = [CurvePoint(**point) for point in points_of(new, _MOST_ROWS)]
    evaluations = [CurveEvaluation(**each) for each in evaluations_of(new)]
    sizes = {key: value for key, value in mapping(config, "model").items() if type(value) is int}
    return RunTold(
        name=name,
        title=(job.name if job is not None else "") or name,
        tags=[] if job is None else list(job.tags),
        state="done" if job is None else job.state,
        said="" if job is None else job.said,
        error=None if job is None else job.error,
        stages=stages,
        family=mapping(config, "model").get("family"),
        sizes=sizes | {"batch_size": int(figure(config, "training", "batch_size") or 0)} if sizes else {},
        steps=_whole(figure(config, "training", "steps")),
        epochs=curve.epochs,
        references=curve.references,
        floor_bits_per_byte=curve.floor,
        predicted_seconds=figure(config, "predicted", "seconds"),
        predicted_bytes=_whole(figure(config, "predicted", "memory_bytes", "total")),
        points=points,
        evaluations=evaluations,
    )


def _whole(value: float | None) -> int | None:
    return None if value is None else int(value)
