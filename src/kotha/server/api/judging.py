"""``/api/judgings``: two models go on with the same prompts, people say which is better without knowing whose it is."""

import secrets
from pathlib import Path
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request, Response
from fastapi import Path as PathParameter
from pydantic import Field

from kotha.api.model import load
from kotha.errors import DataError
from kotha.evaluation.judge.continuations import write_continuations
from kotha.evaluation.judge.results import Choice
from kotha.evaluation.judge.session import Judging
from kotha.generation.settings import SamplingSettings
from kotha.i18n.message import OnProgress
from kotha.server.api.requests import WireAnswer, in_turn
from kotha.server.errors import RefusedError, refusing
from kotha.server.jobs.kinds import Id
from kotha.server.state import State, state_of
from kotha.server.wire import ModelName, WireRequest
from kotha.storage.status import is_folder

router = APIRouter(prefix="/api", tags=["Uses"])
_FOLDER = "judgings"
_MOST_JUDGINGS = 200
# Before so many judgements nobody is told who leads: whoever knows would chase it.
_TELL_AFTER = 10
JudgingId = Annotated[Id, PathParameter(description="As the start of the judging gave it.")]
JudgeName = Annotated[str, Field(min_length=1, max_length=100, description="Whose judgements these are.")]


class JudgingRequest(WireRequest):
    """Which models shall go on with what."""

    models: list[ModelName] = Field(min_length=2, max_length=4, description="Two models or more, each once.")
    prompts: list[Annotated[str, Field(min_length=1, max_length=2000)]] = Field(
        min_length=1, max_length=50, description="What they go on with."
    )
    tokens: int = Field(60, ge=1, le=400, description="Written after each prompt.")
    temperature: float = Field(0.8, ge=0, le=2, description="How they draw.")
    seed: int = Field(0, ge=0, lt=1 << 53, description="The same for all, so that chance favours nobody.")


class Judgement(WireRequest):
    """What somebody said of a pair."""

    judge: JudgeName
    pair: str = Field(max_length=100, description="Which one.")
    choice: Choice = Field(description="left, right or tie.")


class ShownPair(WireAnswer):
    """Two continuations of one prompt; whose they are is not said."""

    id: str = Field(description="Of the pair.")
    prompt: str = Field(description="What both go on with.")
    left: str = Field(description="One text.")
    right: str = Field(description="The other.")


class ModelMeeting(WireAnswer):
    """Two models against each other, in all judges' eyes."""

    one: str = Field(description="A model.")
    other: str = Field(description="Another.")
    wins: int = Field(description="Pairs in which the first was better.")
    ties: int = Field(description="Pairs in which both were alike.")
    losses: int = Field(description="Pairs in which the other was better.")
    chance: float = Field(description="That the first is found better, next time.")
    low: float = Field(description="Where that lies at least, in 95 of 100 cases.")
    high: float = Field(description="… and at most.")


class JudgingTold(WireAnswer):
    """How far a judge is, the next pair, and who leads, once there are enough judgements."""

    id: str = Field(description="Of the judging.")
    judged: int = Field(description="Pairs that this judge has judged.")
    left: int = Field(description="… and has still to judge.")
    same: int = Field(description="Prompts after which both wrote the same; nobody is asked about them.")
    pair: ShownPair | None = Field(description="The next; null at the end.")
    told_after: int = Field(description="Judgements after which it is said who leads.")
    meetings: list[ModelMeeting] = Field(description="Empty until then.")


@router.post("/judgings", response_model=JudgingTold)
async def begin_judging(request: Request, body: JudgingRequest) -> Response:
    """Let models write, and make blind pairs of it."""
    state = state_of(request)
    if len(set(body.models)) < len(body.models):
        raise RefusedError("a model is named twice; name two different ones", param="models")

    def work(on_progress: OnProgress) -> JudgingTold:
        folder = _folder(state)
        if sum(1 for _ in folder.iterdir()) >= _MOST_JUDGINGS:
            raise RefusedError(
                "{n} judgings are kept, which is the most; remove one that nobody needs", 409, n=_MOST_JUDGINGS
            )
        places = {name: state.registry.place(name) for name in body.models}
        settings = SamplingSettings(seed=body.seed, temperature=body.temperature)
        rows = min(len(body.prompts), state.settings.limits.rows)
        prompts = list(dict.fromkeys(body.prompts))

        def opened(name: str) -> Any:
            model = load(places[name], device=state.registry.device)
            if model.config.family != "gpt":
                raise RefusedError(
                    "{name} is a {family} and does not go on with a text",
                    param="models",
                    name=name,
                    family=model.config.family,
                )
            return model.engine(rows)

        written = write_continuations(body.models, opened, prompts, body.tokens, settings, on_progress)
        id = secrets.token_hex(6)
        with refusing(DataError, param="models"):  # both wrote the same everywhere
            made = Judging.start(folder / id, prompts, written, body.seed, body.model_dump(exclude={"prompts"}))
        return _told(made, id, "")

    return await in_turn(request, state.turns, work, shares=True)


@router.get("/judgings/{id}", response_model=JudgingTold)
async def judging(
    request: Request,
    id: JudgingId,
    judge: Annotated[str, Query(max_length=100, description="Whose next pair is wanted.")] = "",
) -> Response:
    """The next pair for a judge; and who leads, once that may be told."""
    state = state_of(request)
    return await in_turn(request, state.reading, lambda _: _told(_opened(state, id), id, judge))


@router.post("/judgings/{id}", response_model=JudgingTold)
async def judged(request: Request, id: JudgingId, said: Judgement) -> Response:
    """Say which of a pair is better; the next comes back. A second word on a pair takes the first one's place."""
    state = state_of(request)

    def work(_: OnProgress) -> JudgingTold:
        found = _opened(state, id)
        if said.pair not in {pair.id for pair in found.pairs}:
            raise RefusedError("there is no pair {pair!r} in this judging", 404, "pair", pair=said.pair)
        found.record(said.judge, said.pair, said.choice)
        return _told(found, id, said.judge)

    return await in_turn(request, state.reading, work)


def _folder(state: State) -> Path:
    if state.jobs is None:
        raise RefusedError("this server keeps no judgements; {advice}", 404, advice=state.settings.advice.jobs)
    folder = state.jobs.folder / _FOLDER
    folder.mkdir(exist_ok=True)
    return folder


def _opened(state: State, id: str) -> Judging:
    place = _folder(state) / id
    if not is_folder(place):
        raise RefusedError("there is no judging {id!r}", 404, "id", id=id)
    return Judging.open(place)


def _told(found: Judging, id: str, judge: str) -> JudgingTold:
    left = list(found.pairs) if not judge.strip() else found.left_for(judge)
    judgements = sum(len(each) for each in found.judgements().values())
    meetings: list[dict[str, Any]] = []
    if judgements >= _TELL_AFTER or (judgements and not left):
        meetings = found.result().to_dict()["meetings"]
    return JudgingTold(
        id=id,
        judged=len(found.pairs) - len(left),
        left=len(left),
        same=found.same,
        pair=None if not left else ShownPair(**{name: getattr(left[0], name) for name in ShownPair.model_fields}),
        told_after=_TELL_AFTER,
        meetings=[ModelMeeting(**each) for each in meetings],
    )
