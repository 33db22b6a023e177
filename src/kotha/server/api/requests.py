"""What our own routes share: questions to a model, answers as JSON, and what a model is given to read."""

import base64
import binascii
import json
from collections.abc import Callable, Iterator, Sequence, Sized
from contextlib import AsyncExitStack, contextmanager
from inspect import Parameter, Signature, getdoc, signature
from typing import Annotated, Any, TypeVar

import numpy as np
from fastapi import APIRouter, Request, Response
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, Field, TypeAdapter

from kotha.api.options import Asked
from kotha.artifacts.model_folder import Bundle
from kotha.errors import KothaError
from kotha.i18n.message import Message, OnProgress, Text
from kotha.inside.heads.importance import silence
from kotha.inside.hook_points import layers
from kotha.inside.inputs import ModelInput, Piece
from kotha.model.config import ViTConfig
from kotha.model.vit import ViT
from kotha.server.batching import Batcher
from kotha.server.errors import RefusedError, by_name, check_most
from kotha.server.json_requests import JsonObject, ModelName, WireRequest
from kotha.server.model_registry import Served
from kotha.server.state import State, state_of
from kotha.storage.images import decode_png
from kotha.text.tokenizer.tokenizer import Tokenizer

# No token is longer, so that what cannot fit is refused before it is cut.
_LETTERS_OF_A_TOKEN = 64
# Text in Bangla that the schema's readers may try at once.
EXAMPLE = "নদীর ধারে একটি গ্রাম"
Example = Annotated[str, Field(examples=[EXAMPLE])]


class AboutModel(WireRequest):
    """What every question names."""

    model: ModelName


class WireAnswer(BaseModel):
    """An answer: of what it is made from, a dict or a dataclass, its own fields."""

    model_config = ConfigDict(from_attributes=True)


Work = TypeVar("Work", bound=Callable[..., Any])


def route(
    router: APIRouter,
    path: str,
    answer: Any = None,
    *,
    method: str = "POST",
    reads: bool = False,
    shares: bool = False,
    media: str = "",
    **described: Any,
) -> Callable[[Work], Work]:
    """Make a function a route that takes its turn in a thread; what it returns is told as JSON of a type.

    It is called with what it works on, and with what the request says. By its first annotation that is the server's
    ``State``, or an opened model: ``Served``, or None where the request may name none. What only ``reads``, files or
    a tokenizer, does not wait for what computes. It may also ask for the ``request`` itself, and for ``on_progress``.
    Without an ``answer`` it returns a response, of a ``media`` type.
    """
    kind: TypeAdapter[Any] = TypeAdapter(answer)

    def as_response(found: Any) -> Response:
        if isinstance(found, Response):
            return found
        plain = kind.dump_python(kind.validate_python(found), mode="json")
        try:
            return Response(json.dumps(plain, ensure_ascii=False, allow_nan=False), media_type="application/json")
        except ValueError as error:
            raise KothaError("the result contains NaN or infinite numbers; the model's weights are broken") from error

    def add(work: Work) -> Work:
        on, *said = signature(work).parameters.values()
        ours = {each.name for each in said} & {"request", "on_progress"}

        async def routed(request: Request, **given: Any) -> Response:
            state, body = state_of(request), given.get("body")
            name = getattr(body, "model", None) if body is not None else given.get("name")
            first: State | Served | None = state if on.annotation is State else None

            def answered(on_progress: OnProgress) -> Response:  # in the thread: large JSON would hold up the loop
                known = {"request": request, "on_progress": on_progress}
                names = {str(first.model.path): first.name} if isinstance(first, Served) and first.model.path else {}
                with by_name(names):
                    return as_response(work(first, **given, **{each: known[each] for each in ours}))

            async with AsyncExitStack() as stack:
                if first is None and name is not None:
                    first = await stack.enter_async_context(state.registry.use(name))
                turns = state.reading if reads else first.turns if isinstance(first, Served) else state.turns
                return await turns.run(request, state.settings.limits.seconds, answered, shares=shares)

        asked = [Parameter("request", Parameter.KEYWORD_ONLY, annotation=Request)]
        asked += [each.replace(kind=Parameter.KEYWORD_ONLY) for each in said if each.name not in ours]
        routed.__signature__ = Signature(asked)  # type: ignore[attr-defined]
        how: dict[str, Any] = {"response_model": answer, "name": work.__name__, "description": getdoc(work)}
        if answer is None:
            how |= {"response_class": Response, "responses": {200: {"content": {media: {}}, **described}}}
        router.add_api_route(path, routed, methods=[method], **how)
        return work

    return add


def tokenizer_of(served: Served) -> Tokenizer:
    """The tokenizer of a model that reads text."""
    if served.model.tokenizer is None:
        raise RefusedError("{name} has no tokenizer and cannot read text", param="model", name=served.name)
    return served.model.tokenizer


def writer_of(served: Served) -> Batcher:
    """The batch of a model that writes."""
    if served.batcher is None:
        mute = "{name} is a {family} and cannot write text"
        raise RefusedError(mute, param="model", name=served.name, family=served.model.config.family)
    return served.batcher


def check_texts(served: Served, texts: Sequence[Sized], param: str) -> None:
    """Refuse texts, as text or as token ids, that are none, too many, or together longer than any that is read."""
    check_count(served, texts, param)
    check_most(sum(map(len, texts)), served.limits.prompt_characters, Message("characters"), param)


def check_count(served: Served, given: Sequence[Sized], param: str) -> None:
    """Refuse nothing, or more than is taken at a time."""
    count, most = len(given), served.limits.prompts
    if not 0 < count <= most:
        many = "{field}: {count:,} given; give 1 to {most:,} at a time"
        raise RefusedError(many, param=param, field=param, count=count, most=most)


def count_tokens(served: Served, text: str, most: int, param: str = "text") -> int:
    """How many tokens a text has; more than so many are refused."""
    count = most + 1
    if len(text) <= _LETTERS_OF_A_TOKEN * most:
        count = len(tokenizer_of(served).encode(text))
    if count > most:
        raise RefusedError("the text has more than {n:,} tokens; shorten it", param=param, n=most)
    return count


def check_lengths(served: Served, body: Any, most: int) -> None:
    """Refuse a text or a target of more than so many tokens."""
    for name in ("text", "target"):
        if getattr(body, name) is not None:
            count_tokens(served, getattr(body, name), most, name)


def picture(served: Served, png: str, param: str = "image") -> NDArray[np.float32]:
    """A PNG in base64 as a ViT's input; whatever is wrong with it is said."""
    limits = served.limits
    if not isinstance(served.model.model, ViT):
        blind = "{name} is a {family} and cannot read images"
        raise RefusedError(blind, param=param, name=served.name, family=served.model.config.family)
    if len(png) > limits.image_bytes * 4 // 3 + 4:
        raise RefusedError("the image is larger than {n:,} bytes; make it smaller", param=param, n=limits.image_bytes)
    try:
        data = base64.b64decode(png, validate=True)
    except (binascii.Error, ValueError) as error:
        raise RefusedError("the image is not valid base64: {why}", param=param, why=error) from error
    config = served.model.model.config
    return decode_png(data, config.image_size, config.n_channels, limits.image_pixels)


def check_size(served: Served, count: int, advice: Message) -> None:
    """Refuse an answer of too many numbers, with a word on how to ask for fewer."""
    most = served.limits.numbers
    if count > most:
        raise RefusedError(
            "the answer would have {n:,} numbers, more than {most:,}; {advice}", n=count, most=most, advice=advice
        )


HeadName = Annotated[str, Field(max_length=80, examples=["blocks.0.attention.0"])]
Heads = list[HeadName]


class LookRequest(AboutModel):
    """What a model shall read while it is watched; a text for most, an image for a ViT."""

    text: Example | None = None
    second: str | None = None
    target: str | None = None
    image: str | None = None

    def to_input(self, served: Served, generate: int | None = None) -> Asked:
        """As the library is asked, once it is known to be short enough to be shown."""
        most, pixels = served.limits.positions, None
        if self.image is not None:
            pixels = picture(served, self.image)
            config = served.model.config
            assert isinstance(config, ViTConfig), "the picture was read for one"
            check_most(1 + (config.image_size // config.patch_size) ** 2, most, Message("patches"), "image")
        elif not isinstance(served.model.model, ViT):  # which says itself that it reads no text
            room = most - (generate or 0)
            for name in ("text", "second"):
                given = getattr(self, name)
                room -= 0 if given is None else count_tokens(served, given, room, name)
            if self.target is not None:
                count_tokens(served, self.target, most, "target")
        return Asked(self.text, self.second, self.target, pixels, generate)


class WatchRequest(LookRequest):
    """… with heads that may be silent meanwhile."""

    silenced: Heads = Field([], max_length=4096)


class Looked(WireAnswer):
    """What was read: lines of pieces by name (``tokens``; ``source`` and ``target``; ``patches``)."""

    family: str
    lines: dict[str, tuple[Piece, ...]]
    grid: tuple[int, int] | None
    remarks: tuple[Text, ...]


def read_as(bundle: Bundle, given: ModelInput) -> JsonObject:
    """What every answer says of what was read."""
    return {"family": bundle.config.family, "lines": given.lines, "grid": given.grid, "remarks": given.remarks}


@contextmanager
def watching(served: Served, on_progress: OnProgress, silenced: Heads = []) -> Iterator[Bundle]:  # noqa: B006
    """The model to look into, some heads silent; each pass looks up whether anyone still waits for what comes of it."""

    def look_up(*_: object) -> None:
        on_progress("", 0, 1)

    bundle = served.apart
    hooks = [block.register_forward_pre_hook(look_up) for block in layers(bundle.model).values()]
    try:
        with silence(bundle.model, silenced):
            yield bundle
    finally:
        for hook in hooks:
            hook.remove()
