"""``/api/judgings``: blind model comparison. Models continue the same prompts, and people choose the better text."""

import secrets
from pathlib import Path
from typing import Annotated, Any

from fastapi import APIRouter, Query
from fastapi import Path as PathParameter
from pydantic import Field

from kotha.api.model import load
from kotha.errors import DataError
from kotha.evaluation.judge.results import Choice, PairwiseResult
from kotha.evaluation.judge.session import JudgingSession, write_continuations
from kotha.generation.settings import SamplingSettings
from kotha.i18n.message import OnProgress
from kotha.server.api.requests import WireResponse, route
from kotha.server.errors import RefusedError, refusing
from kotha.server.json_requests import Id, JsonObject, ModelName, WireRequest
from kotha.server.state import State

router = APIRouter(prefix="/api", tags=["Uses"])
_FOLDER = "judgings"
_MOST_JUDGINGS = 200
# Results are hidden until this many judgements, so that they do not influence the judges.
_RESULTS_AFTER = 10
JudgingId = Annotated[Id, PathParameter(description="Id that POST /api/judgings returned.")]
JudgeName = Annotated[str, Field(min_length=1, max_length=100)]


class JudgingRequest(WireRequest):
    """Models and the prompts to continue."""

    models: list[ModelName] = Field(min_length=2, max_length=4)
    prompts: list[Annotated[str, Field(min_length=1, max_length=2000)]] = Field(min_length=1, max_length=50)
    tokens: int = Field(60, ge=1, le=400)
    temperature: float = Field(0.8, ge=0, le=2)
    seed: int = Field(0, ge=0, lt=1 << 53)


class Judgement(WireRequest):
    """A judge's choice between two texts."""

    judge: JudgeName
    pair: str = Field(max_length=100)
    choice: Choice


class ShownPair(WireResponse):
    """Two continuations of one prompt, without their models' names."""

    id: str
    prompt: str
    left: str
    right: str


class JudgingResponse(WireResponse):
    """A judge's progress, the next pair, and the results once there are enough judgements."""

    id: str
    judged: int
    left: int
    same: int
    pair: ShownPair | None
    results_after: int
    meetings: list[PairwiseResult]


@route(router, "/judgings", JudgingResponse, shares=True)
def begin_judging(state: State, on_progress: OnProgress, body: JudgingRequest) -> JsonObject:
    """Start a blind comparison: let the models continue the prompts, and pair their texts."""
    if len(set(body.models)) < len(body.models):
        raise RefusedError("a model is listed twice; list each model once", param="models")
    folder = _folder(state)
    if sum(1 for _ in folder.iterdir()) >= _MOST_JUDGINGS:
        raise RefusedError(
            "{n} blind comparisons are stored, which is the maximum; delete one from the judgings folder of the server",
            409,
            n=_MOST_JUDGINGS,
        )
    paths = {name: state.registry.path(name) for name in body.models}
    settings = SamplingSettings(seed=body.seed, temperature=body.temperature)
    prompts = list(dict.fromkeys(body.prompts))

    def opened(name: str) -> Any:
        model = load(paths[name], device=state.registry.device)
        return model.engine(min(len(body.prompts), state.settings.limits.rows))

    written = write_continuations(body.models, opened, prompts, body.tokens, settings, on_progress)
    id = secrets.token_hex(6)
    with refusing(DataError, param="models"):  # the models wrote the same texts
        made = JudgingSession.start(folder / id, prompts, written, body.seed, body.model_dump(exclude={"prompts"}))
    return _status(made, id, "")


@route(router, "/judgings/{id}", JudgingResponse, method="GET", reads=True)
def judging(
    state: State,
    id: JudgingId,
    judge: Annotated[str, Query(max_length=100, description="Name of the judge.")] = "",
) -> JsonObject:
    """Return the next pair for a judge, and the results once there are enough judgements."""
    return _status(_opened(state, id), id, judge)


@route(router, "/judgings/{id}", JudgingResponse, reads=True)
def judged(state: State, id: JudgingId, judgement: Judgement) -> JsonObject:
    """Record a choice and return the next pair; a second choice for the same pair replaces the first."""
    found = _opened(state, id)
    if judgement.pair not in {pair.id for pair in found.pairs}:
        raise RefusedError("this comparison has no pair {pair!r}", 404, "pair", pair=judgement.pair)
    found.record(judgement.judge, judgement.pair, judgement.choice)
    return _status(found, id, judgement.judge)


def _folder(state: State) -> Path:
    folder = state.job_store().folder / _FOLDER
    folder.mkdir(exist_ok=True)
    return folder


def _opened(state: State, id: str) -> JudgingSession:
    path = _folder(state) / id
    if not path.is_dir():
        raise RefusedError("comparison {id!r} not found", 404, "id", id=id)
    return JudgingSession.open(path)


def _status(found: JudgingSession, id: str, judge: str) -> JsonObject:
    left = list(found.pairs) if not judge.strip() else found.left_for(judge)
    judgements = sum(len(each) for each in found.judgements().values())
    is_enough = judgements >= _RESULTS_AFTER or (judgements and not left)
    return {
        "id": id,
        "judged": len(found.pairs) - len(left),
        "left": len(left),
        "same": found.same,
        "pair": left[0] if left else None,
        "results_after": _RESULTS_AFTER,
        "meetings": found.result().meetings if is_enough else [],
    }
