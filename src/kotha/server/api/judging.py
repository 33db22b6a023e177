"""``/api/judgings``: two models go on with the same prompts, people say which is better without knowing whose it is."""

import secrets
from pathlib import Path
from typing import Annotated, Any

from fastapi import APIRouter, Query
from fastapi import Path as PathParameter
from pydantic import Field

from kotha.api.model import load
from kotha.errors import DataError
from kotha.evaluation.judge.results import Choice, Meeting
from kotha.evaluation.judge.session import Judging, write_continuations
from kotha.generation.settings import SamplingSettings
from kotha.i18n.message import OnProgress
from kotha.server.api.requests import WireAnswer, route
from kotha.server.errors import RefusedError, refusing
from kotha.server.json_requests import Id, JsonObject, ModelName, WireRequest
from kotha.server.state import State

router = APIRouter(prefix="/api", tags=["Uses"])
_FOLDER = "judgings"
_MOST_JUDGINGS = 200
# Before so many judgements nobody is told who leads: whoever knows would chase it.
_TELL_AFTER = 10
JudgingId = Annotated[Id, PathParameter(description="As the start of the judging gave it.")]
JudgeName = Annotated[str, Field(min_length=1, max_length=100)]


class JudgingRequest(WireRequest):
    """Which models shall go on with what."""

    models: list[ModelName] = Field(min_length=2, max_length=4)
    prompts: list[Annotated[str, Field(min_length=1, max_length=2000)]] = Field(min_length=1, max_length=50)
    tokens: int = Field(60, ge=1, le=400)
    temperature: float = Field(0.8, ge=0, le=2)
    seed: int = Field(0, ge=0, lt=1 << 53)


class Judgement(WireRequest):
    """What somebody said of a pair."""

    judge: JudgeName
    pair: str = Field(max_length=100)
    choice: Choice


class ShownPair(WireAnswer):
    """Two continuations of one prompt; whose they are is not said."""

    id: str
    prompt: str
    left: str
    right: str


class JudgingTold(WireAnswer):
    """How far a judge is, the next pair, and who leads, once there are enough judgements."""

    id: str
    judged: int
    left: int
    same: int
    pair: ShownPair | None
    told_after: int
    meetings: list[Meeting]


@route(router, "/judgings", JudgingTold, shares=True)
def begin_judging(state: State, on_progress: OnProgress, body: JudgingRequest) -> JsonObject:
    """Let models write, and make blind pairs of it."""
    if len(set(body.models)) < len(body.models):
        raise RefusedError("a model is named twice; name each model once", param="models")
    folder = _folder(state)
    if sum(1 for _ in folder.iterdir()) >= _MOST_JUDGINGS:
        raise RefusedError(
            "{n} judgings are stored, which is the maximum; delete one from the server's folder judgings",
            409,
            n=_MOST_JUDGINGS,
        )
    places = {name: state.registry.place(name) for name in body.models}
    settings = SamplingSettings(seed=body.seed, temperature=body.temperature)
    prompts = list(dict.fromkeys(body.prompts))

    def opened(name: str) -> Any:
        model = load(places[name], device=state.registry.device)
        return model.engine(min(len(body.prompts), state.settings.limits.rows))

    written = write_continuations(body.models, opened, prompts, body.tokens, settings, on_progress)
    id = secrets.token_hex(6)
    with refusing(DataError, param="models"):  # both wrote the same everywhere
        made = Judging.start(folder / id, prompts, written, body.seed, body.model_dump(exclude={"prompts"}))
    return _told(made, id, "")


@route(router, "/judgings/{id}", JudgingTold, method="GET", reads=True)
def judging(
    state: State,
    id: JudgingId,
    judge: Annotated[str, Query(max_length=100, description="Whose next pair is wanted.")] = "",
) -> JsonObject:
    """The next pair for a judge; and who leads, once that may be told."""
    return _told(_opened(state, id), id, judge)


@route(router, "/judgings/{id}", JudgingTold, reads=True)
def judged(state: State, id: JudgingId, said: Judgement) -> JsonObject:
    """Say which of a pair is better; the next comes back. A second word on a pair takes the first one's place."""
    found = _opened(state, id)
    if said.pair not in {pair.id for pair in found.pairs}:
        raise RefusedError("this judging has no pair {pair!r}", 404, "pair", pair=said.pair)
    found.record(said.judge, said.pair, said.choice)
    return _told(found, id, said.judge)


def _folder(state: State) -> Path:
    folder = state.job_store().folder / _FOLDER
    folder.mkdir(exist_ok=True)
    return folder


def _opened(state: State, id: str) -> Judging:
    place = _folder(state) / id
    if not place.is_dir():
        raise RefusedError("judging {id!r} not found", 404, "id", id=id)
    return Judging.open(place)


def _told(found: Judging, id: str, judge: str) -> JsonObject:
    left = list(found.pairs) if not judge.strip() else found.left_for(judge)
    judgements = sum(len(each) for each in found.judgements().values())
    is_enough = judgements >= _TELL_AFTER or (judgements and not left)
    return {
        "id": id,
        "judged": len(found.pairs) - len(left),
        "left": len(left),
        "same": found.same,
        "pair": left[0] if left else None,
        "told_after": _TELL_AFTER,
        "meetings": found.result().meetings if is_enough else [],
    }
