"""What our own routes share: requests that name a model, answers as JSON, and pictures that somebody sent."""

import base64
import binascii
from collections.abc import Callable
from typing import Annotated

import numpy as np
from fastapi import Request, Response
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from kotha.errors import KothaError
from kotha.i18n.message import Message, OnProgress
from kotha.model.classifier import TextClassifier
from kotha.model.vit import ViT
from kotha.server.errors import RefusedError, UnsupportedByModelError
from kotha.server.model_registry import Served
from kotha.server.serial_executor import SerialExecutor
from kotha.server.settings import Limits
from kotha.server.state import state_of
from kotha.server.wire import ModelName, WireRequest
from kotha.storage.images import decode_png
from kotha.text.tokenizer.tokenizer import Tokenizer

# No token is longer, so that what cannot fit is refused before it is cut.
_LETTERS_OF_A_TOKEN = 64
# Text in Bangla that the schema's readers may try at once.
EXAMPLE = "নদীর ধারে একটি গ্রাম"

Png = Annotated[str, Field(description="A PNG, in base64.")]


class AboutModel(WireRequest):
    """What every question names."""

    model: ModelName


class WireAnswer(BaseModel):
    """An answer: all of its fields, no others, and no number that JSON does not know."""

    model_config = ConfigDict(extra="forbid", allow_inf_nan=False)


class TokenPiece(BaseModel):
    """A token as it reads; ``part`` where it is only part of a character."""

    id: int = Field(description="Its number in the vocabulary.")
    text: str = Field(description="As it reads: ␣ for a space, a lone sign on ◌, part of a character as hex.")
    part: bool = Field(
        description="Whether it is only part of a character, whose bytes are spread over several tokens."
    )


async def looked(
    request: Request, name: str, work: Callable[[Served, OnProgress], BaseModel], *, shares: bool = False
) -> Response:
    """Ask a model something that hooks into it or computes: in a thread, one at a time, in time."""
    state = state_of(request)
    async with state.registry.use(name) as served:
        return await in_turn(request, served.turns, lambda on_progress: work(served, on_progress), shares=shares)


async def in_turn(
    request: Request, turns: SerialExecutor, work: Callable[[OnProgress], BaseModel], *, shares: bool = False
) -> Response:
    """The answer to what takes a turn; it is also made JSON in the thread, as a large one would hold up the loop."""
    seconds = state_of(request).settings.limits.seconds

    def answer(on_progress: OnProgress) -> str:
        try:
            return work(on_progress).model_dump_json()
        except ValidationError as error:
            if any(each["type"] != "finite_number" for each in error.errors(include_input=False)):
                raise
            raise KothaError("NaN or infinite numbers came of it; the model's weights are broken") from error

    return Response(await turns.run(request, seconds, answer, shares=shares), media_type="application/json")


def tokenizer_of(served: Served) -> Tokenizer:
    """The tokenizer of a model that reads text."""
    if served.model.tokenizer is None:
        raise UnsupportedByModelError("{name} has no tokenizer, and reads no text", name=served.name)
    return served.model.tokenizer


def refuse_family(served: Served, only: Message) -> UnsupportedByModelError:
    """What to raise where a model is of another family: ``only a BERT fills gaps``."""
    return UnsupportedByModelError(
        "{name} is a {family}; {only}", name=served.name, family=served.model.config.family, only=only
    )


def check_length(text: str, limits: Limits, param: str = "text") -> None:
    """Refuse a text that is longer than any that is read."""
    if len(text) > limits.prompt_characters:
        raise RefusedError("the text is longer than {n:,} letters", param=param, n=limits.prompt_characters)


def count_tokens(served: Served, text: str, most: int, param: str = "text") -> int:
    """How many tokens a text has; more than so many are refused."""
    count = most + 1
    if len(text) <= _LETTERS_OF_A_TOKEN * most:
        count = len(tokenizer_of(served).encode(text))
    if count > most:
        raise RefusedError(
            "the text has more than {n:,} tokens, which is the most here; shorten it", param=param, n=most
        )
    return count


def check_reads(served: Served) -> None:
    """Refuse a classifier: it has no words to look at; the model that it was made from has."""
    if isinstance(served.model.model, TextClassifier):
        raise refuse_family(
            served, Message("it names classes: ask /api/classify why, or look into the model it was made from")
        )


def picture(served: Served, png: str, limits: Limits, param: str = "image") -> NDArray[np.float32]:
    """A PNG in base64 as a ViT's input; whatever is wrong with it is said."""
    if not isinstance(served.model.model, ViT):
        raise UnsupportedByModelError(
            "{name} is a {family} and reads no images", param, name=served.name, family=served.model.config.family
        )
    if len(png) > limits.image_bytes * 4 // 3 + 4:
        raise RefusedError("the image is larger than {n:,} bytes; make it smaller", param=param, n=limits.image_bytes)
    try:
        data = base64.b64decode(png, validate=True)
    except (binascii.Error, ValueError) as error:
        raise RefusedError("the image is not in base64: {why}", param=param, why=error) from error
    config = served.model.model.config
    return decode_png(data, config.image_size, config.n_channels, limits.image_pixels)


def checked_size(count: int, limits: Limits, advice: Message) -> None:
    """Refuse an answer of too many numbers, with a word on how to ask for fewer."""
    if count > limits.numbers:
        raise RefusedError(
            "{n:,} numbers are more than one answer holds ({most:,}); {advice}",
            n=count,
            most=limits.numbers,
            advice=advice,
        )
