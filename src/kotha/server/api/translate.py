"""``/api/translate``: texts in the other language."""

from fastapi import APIRouter, Request, Response
from pydantic import Field

from kotha.errors import DataError
from kotha.i18n.message import Message, OnProgress
from kotha.model.seq2seq import Seq2Seq
from kotha.server.api.requests import AboutModel, WireAnswer, count_tokens, looked, refuse_family
from kotha.server.errors import RefusedError, refusing
from kotha.server.model_registry import Served
from kotha.server.state import state_of

router = APIRouter(prefix="/api", tags=["Uses"])


class TranslateRequest(AboutModel):
    """Texts to be translated."""

    texts: list[str] = Field(min_length=1, description="In the language that the model reads.")
    beams: int = Field(4, ge=1, le=16, description="Translations that are followed side by side.")


class TranslateAnswer(WireAnswer):
    """A translation for each."""

    texts: list[str] = Field(description="In the order of the question.")


@router.post("/translate", response_model=TranslateAnswer)
async def translate(request: Request, body: TranslateRequest) -> Response:
    """Texts in the other language, by beam search; a Seq2Seq does this."""
    limits = state_of(request).settings.limits

    def work(served: Served, on_progress: OnProgress) -> TranslateAnswer:
        model = served.model.model
        if not isinstance(model, Seq2Seq):
            raise refuse_family(served, Message("only a Seq2Seq translates"))
        if len(body.texts) > limits.prompts:
            raise RefusedError(
                "{n:,} texts; give 1 to {prompts:,} at a time",
                param="texts",
                n=len(body.texts),
                prompts=limits.prompts,
            )
        for text in body.texts:  # the library would read the beginning alone
            count_tokens(served, text, model.config.context_length - 1, "texts")
        with refusing(DataError, param="model"):  # a tokenizer without the marks
            found = served.model.translate(body.texts, beams=body.beams, on_progress=on_progress)
        return TranslateAnswer(texts=found)

    return await looked(request, body.model, work)
