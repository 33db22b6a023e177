"""``/api/fill``: words for the gaps of a text."""

from fastapi import APIRouter, Request, Response
from pydantic import Field

from kotha.generation.filling import GAP
from kotha.i18n.message import Message, OnProgress
from kotha.model.bert import BERT
from kotha.server.api.requests import AboutModel, WireAnswer, check_length, looked, refuse_family
from kotha.server.errors import RefusedError
from kotha.server.model_registry import Served
from kotha.server.state import state_of

router = APIRouter(prefix="/api", tags=["Uses"])


class FillRequest(AboutModel):
    """A text with ``[MASK]`` wherever a word is missing."""

    text: str = Field(examples=[f"নদীর ধারে {GAP} থাকে।"], description="With [MASK] for each gap.")
    words: int = Field(5, ge=1, le=100, description="For each gap.")


class GapWord(WireAnswer):
    """A word for a gap, with ## before it where it goes on with the word before; and the whole text with it."""

    word: str = Field(description="With ## before it where it goes on with the word before.")
    probability: float = Field(description="From 0 to 1.")
    text: str = Field(description="The whole text with it.")


class FillAnswer(WireAnswer):
    """For each gap its likeliest words, the best first."""

    text: str = Field(description="As it was sent.")
    words: list[list[GapWord]] = Field(description="For each gap, the best first.")


@router.post("/fill", response_model=FillAnswer)
async def fill(request: Request, body: FillRequest) -> Response:
    """The likeliest words for each ``[MASK]`` of a text; a BERT does this."""
    limits = state_of(request).settings.limits

    def work(served: Served, _: OnProgress) -> FillAnswer:
        if not isinstance(served.model.model, BERT):
            raise refuse_family(served, Message("only a BERT fills gaps"))
        check_length(body.text, limits)
        if body.text.count(GAP) * body.words * len(body.text) > limits.numbers:
            raise RefusedError("the text with every word in every gap is too much for one answer; ask for fewer words")
        return FillAnswer.model_validate(served.model.fill(body.text, words=body.words).to_dict())

    return await looked(request, body.model, work)
