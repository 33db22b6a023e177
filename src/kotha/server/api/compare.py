"""``/api/compare``: several runs in one fair table."""

from typing import Any

from fastapi import APIRouter, Request, Response
from pydantic import Field

from kotha.api.compare import compare as compare_runs
from kotha.artifacts.run_folder import run_config
from kotha.errors import CorpusError, DataError
from kotha.i18n.message import OnProgress
from kotha.server.api.requests import WireAnswer, in_turn
from kotha.server.api.runs import RunName, place_of
from kotha.server.errors import RefusedError, refusing
from kotha.server.jobs.kinds import Id, uploaded_file
from kotha.server.naming import by_name
from kotha.server.state import state_of
from kotha.server.wire import InEnglish, WireRequest

router = APIRouter(prefix="/api", tags=["Uses"])


class CompareRequest(WireRequest):
    """Which runs; with a text that was brought, all are measured on it."""

    runs: list[RunName] = Field(
        min_length=1, examples=[["box"]], description="Models of this server, or ids of training jobs."
    )
    text: Id | None = Field(None, description="A file that was brought; left out, what each training measured.")


class MeasuredText(WireAnswer):
    """How much text a model was measured on."""

    documents: int = Field(description="How many.")
    bytes: int = Field(description="Their size in UTF-8.")


class SeenBefore(WireAnswer):
    """How many documents of the text a model has learned from."""

    documents: int = Field(description="Of the text.")
    trained: int = Field(description="… that it was trained on.")
    held_out: int = Field(
        description="… that its data held out: not learned from, but its best step was chosen by them."
    )
    verdict: str = Field(description="The same in words.")


class ComparedRun(WireAnswer):
    """One model: what it is, how long it learned, how well it does; null where that is not known or not fair."""

    name: str = Field(description="As it was asked for.")
    model: str = Field(description="What it is, in words.")
    parameters: int | None = Field(description="Numbers that were learned.")
    task: str | None = Field(description="What it was trained to do.")
    tokenizer: str | None = Field(description="The fingerprint of its tokenizer.")
    measured: MeasuredText | None = Field(description="What it was measured on.")
    steps: int | None = Field(description="Steps of its training.")
    tokens: int | None = Field(description="Tokens that it learned from.")
    best_step: int | None = Field(description="The step that was kept.")
    bits_per_byte: float | None = Field(description="The smaller, the better; fair across tokenizers.")
    bits_per_character: float | None = Field(description="The same over code points.")
    perplexity: float | None = Field(description="Of next tokens; only where all are cut alike.")
    seen: SeenBefore | None = Field(description="Whether it knew the text.")


class ComparedReason(WireAnswer):
    """Why something is left out, or no best one named."""

    kind: str = Field(
        description="Which of them: tokenizers, texts, lost, tasks, trainings, learned, untold, few, chance."
    )
    names: list[str] = Field(description="Whom it is about.")
    count: int = Field(description="How many, where that is what it says.")


class CompareAnswer(WireAnswer):
    """The table, and what must be said about it."""

    rows: list[ComparedRun] = Field(description="In the order of the question.")
    remarks: list[InEnglish] = Field(description="What keeps the table from being fair, if anything.")
    best: str | None = Field(description="Null where nobody should name one.")
    undecided: str = Field(description="Why no best one is named.")
    text: Id | None = Field(description="The file that all were measured on.")
    reasons: list[ComparedReason] = Field(description="Remarks, and why it is undecided, by their kinds.")


@router.post("/compare", response_model=CompareAnswer)
async def compare(request: Request, body: CompareRequest) -> Response:
    """Compare runs across tokenizers: by bits per byte and per character, and by perplexity only where it is fair."""
    state = state_of(request)
    if len(body.runs) > state.settings.limits.runs:
        raise RefusedError(
            "{n:,} runs; {runs:,} can be compared", param="runs", n=len(body.runs), runs=state.settings.limits.runs
        )
    if len(set(body.runs)) < len(body.runs):
        raise RefusedError("a run is named twice", param="runs")
    if body.text is not None and state.jobs is None:
        raise RefusedError(
            "this server keeps no files; leave the text out, or {advice}",
            404,
            "text",
            advice=state.settings.advice.jobs,
        )

    def work(on_progress: OnProgress) -> CompareAnswer:
        places = {name: place_of(state, name) for name in body.runs}
        text = None if body.text is None or state.jobs is None else uploaded_file(state.jobs, body.text, "text")
        for name, place in places.items():
            if text is None and not run_config(place):
                raise RefusedError(
                    "{name} is no run with figures of its own; bring a text to measure on", param="runs", name=name
                )
        how: dict[str, Any] = {
            "names": body.runs,
            "text": text,
            "device": state.registry.device,
            "on_progress": on_progress,
        }
        names = {str(place): name for name, place in places.items()} | {str(text): str(body.text)}
        with refusing(CorpusError, DataError, param="text"), by_name(names):
            found = compare_runs(places.values(), **how)
        return CompareAnswer.model_validate({**found.to_dict(), "text": body.text})

    return await in_turn(request, state.turns, work)
