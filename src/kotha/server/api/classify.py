"""``/api/classify``: of which class texts or images are."""

from typing import Any

from fastapi import APIRouter, Request, Response
from pydantic import Field

from kotha.generation.classes import Classifier, classify_pixels
from kotha.i18n.message import Message, OnProgress
from kotha.model.classifier import TextClassifier
from kotha.model.vit import ViT
from kotha.server.api.requests import AboutModel, Png, WireAnswer, count_tokens, looked, picture, refuse_family
from kotha.server.errors import RefusedError, UnsupportedByModelError
from kotha.server.model_registry import Served
from kotha.server.settings import Limits
from kotha.server.state import state_of

router = APIRouter(prefix="/api", tags=["Uses"])


class ClassesRequest(AboutModel):
    """Texts for a text classifier, or images for a ViT."""

    texts: list[str] = Field([], description="For a text classifier.")
    images: list[Png] = Field([], description="For a ViT: PNGs, each in base64.")
    why: bool = Field(False, description="Tell of each token of a text what it was worth to the answer.")


class TokenWorth(WireAnswer):
    """A piece of a text, and what the answer's probability loses without it."""

    text: str = Field(description="The piece.")
    change: float = Field(description="What the answer's probability loses without it.")


class ClassTold(WireAnswer):
    """A class, the probability of each, the likeliest first, and on request why."""

    label: str = Field(description="The likeliest class.")
    probabilities: dict[str, float] = Field(description="Of every class, the likeliest first.")
    why: list[TokenWorth] = Field([], description="Piece by piece; empty unless asked for.")


class ClassifyAnswer(WireAnswer):
    """An answer for each text or image."""

    results: list[ClassTold] = Field(description="In the order of what was sent.")
    truncated: int = Field(description="Texts too long to be read whole; eight stretches of each were read.")


@router.post("/classify", response_model=ClassifyAnswer)
async def classify(request: Request, body: ClassesRequest) -> Response:
    """Of which class texts or images are, with probabilities; of texts on request why."""
    limits = state_of(request).settings.limits

    def work(served: Served, _: OnProgress) -> ClassifyAnswer:
        if isinstance(served.model.model, ViT):
            found, truncated = _images(body, served, limits), 0
        elif isinstance(served.model.model, TextClassifier):
            found, truncated = _texts(body, served, limits)
        else:
            raise refuse_family(served, Message("it is no classifier; one can be made of it by an adapt job"))
        return ClassifyAnswer.model_validate({"results": found, "truncated": truncated})

    return await looked(request, body.model, work)


def _images(body: ClassesRequest, served: Served, limits: Limits) -> list[dict[str, Any]]:
    if body.texts or body.why:
        raise UnsupportedByModelError(
            "{name} reads images; where it looks is shown by its attention", "texts", name=served.name
        )
    _check_count(len(body.images), "images", limits)
    pictures = [picture(served, each, limits, "images") for each in body.images]
    return [classify_pixels(served.model.bundle, each).to_dict() for each in pictures]


def _texts(body: ClassesRequest, served: Served, limits: Limits) -> tuple[list[dict[str, Any]], int]:
    if body.images:
        raise UnsupportedByModelError("{name} reads texts and no images", "images", name=served.name)
    _check_count(len(body.texts), "texts", limits)
    if sum(map(len, body.texts)) > limits.prompt_characters:
        allowed = limits.prompt_characters
        raise RefusedError("the texts are longer than {allowed:,} letters together", param="texts", allowed=allowed)
    if body.why:  # a pass through the model for each token
        room = limits.positions
        for text in body.texts:
            room -= count_tokens(served, text, room, "texts")
    classifier = Classifier(served.model.bundle)
    found = [each.to_dict() for each in classifier.classify(body.texts, body.why)]
    return found, classifier.truncated


def _check_count(count: int, what: str, limits: Limits) -> None:
    if not 0 < count <= limits.prompts:
        raise RefusedError(
            "{count:,} {what}; give 1 to {prompts:,} at a time",
            param=what,
            count=count,
            what=what,
            prompts=limits.prompts,
        )
