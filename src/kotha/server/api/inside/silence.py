"""``/api/inside/silence``: some heads switched off, beside the whole model."""

from dataclasses import replace
from typing import Any

from fastapi import Request, Response
from pydantic import Field

from kotha.api.asked import continuation, read_asked
from kotha.artifacts.model_folder import Bundle
from kotha.i18n.message import Message, OnProgress
from kotha.inside.heads.importance import Spoken, without_heads
from kotha.model.gpt import GPT
from kotha.server.api.inside.looking import (
    Heads,
    Looked,
    LookRequest,
    ToldAnswer,
    inside_router,
    looking_up,
    read_as,
    spelling,
)
from kotha.server.api.requests import WireAnswer, looked, refuse_family
from kotha.server.model_registry import Served
from kotha.server.state import state_of

router = inside_router()


class SilenceRequest(LookRequest):
    """Which heads, and what shall be read; a GPT may also go on with it."""

    heads: Heads = Field(min_length=1, max_length=4096, description="Their names: blocks.0.attention.0.")
    generate: int | None = Field(None, ge=1, le=4096, description="Tokens to go on with, the best each time.")


class Heard(WireAnswer):
    """What a model says of it."""

    answers: list[ToldAnswer] = Field(description="What it says next.")
    nats: list[float] = Field(description="How surprised it is by each token after the first; none of a BERT or a ViT.")
    loss_nats: float | None = Field(description="The mean of these.")
    written: str | None = Field(description="How it goes on, where that was asked for.")


class Silenced(Looked):
    """The whole model, and the same without some heads."""

    heads: list[str] = Field(description="Those that were silent.")
    whole: Heard = Field(description="All heads at work.")
    without: Heard = Field(description="Those heads silent.")


@router.post("/silence", response_model=Silenced)
async def silence(request: Request, body: SilenceRequest) -> Response:
    """Switch heads off and see: what the model then says next, how well it foretells the text, how it goes on."""
    limits = state_of(request).settings.limits

    def work(served: Served, on_progress: OnProgress) -> Silenced:
        bundle = served.apart
        if body.generate is not None and not isinstance(bundle.model, GPT):
            raise refuse_family(served, Message("only a GPT goes on with a text; leave generate out"))
        with looking_up(bundle.model, on_progress):
            asked = body.to_input(served, limits, body.generate)
            given = read_asked(bundle, replace(asked, generate=None))
            go_on = None if body.generate is None else lambda: continuation(bundle, asked)
            whole, without = without_heads(bundle.model, given, body.heads, go_on)
        return Silenced(
            **read_as(bundle, given),
            heads=body.heads,
            whole=_heard(bundle, whole),
            without=_heard(bundle, without),
        )

    return await looked(request, body.model, work)


def _heard(bundle: Bundle, spoken: Spoken) -> Heard:
    spell = spelling(bundle)
    answers: list[Any] = [answer.to_dict(spell) for answer in spoken.answers]
    return Heard(answers=answers, nats=list(spoken.nats), loss_nats=spoken.loss_nats, written=spoken.written)
