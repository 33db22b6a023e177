"""Shared code for the routes under ``/api``: the ``route`` decorator, request and response models, input checks."""

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

from kotha.api.options import InputOptions
from kotha.artifacts.model_folder import Bundle
from kotha.errors import KothaError
from kotha.i18n.message import Message, OnProgress
from kotha.inside.heads.importance import silence
from kotha.inside.hook_points import layers
from kotha.inside.inputs import ModelInput, Piece
from kotha.model.config import ViTConfig
from kotha.model.vit import ViT
from kotha.server.batching import Batcher
from kotha.server.errors import RefusedError, by_name, check_most
from kotha.server.json_requests import JsonObject, MessageField, ModelName, WireRequest
from kotha.server.model_registry import ServedModel
from kotha.server.state import State, state_of
from kotha.storage.images import decode_png
from kotha.text.tokenizer.tokenizer import Tokenizer

# No token has more characters than this, so a text that is too long can be rejected without tokenizing it.
CHARACTERS_OF_A_TOKEN = 64
# Bangla example text for the OpenAPI document.
EXAMPLE = "নদীর ধারে একটি গ্রাম"
Example = Annotated[str, Field(examples=[EXAMPLE])]


class AboutModel(WireRequest):
    """A request that specifies a model."""

    model: ModelName


class WireResponse(BaseModel):
    """Base class for responses; takes its fields from a dict or a dataclass."""

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
    """Make a function a route that runs in a thread, one call at a time; its result is validated and sent as JSON.

    The annotation of the first parameter selects its value: the server's ``State``, or the loaded model that the
    request names (``ServedModel``, or ``ServedModel | None`` if the request may omit the model). The other parameters
    come from the request and may include ``request`` and ``on_progress``. ``reads`` marks quick requests, which only
    use files or a tokenizer and do not wait for computations. Without ``answer``, the route returns a ``media``
    response.
    """
    kind: TypeAdapter[Any] = TypeAdapter(answer)

    def add(work: Work) -> Work:
        target, *others = signature(work).parameters.values()
        special = {each.name for each in others} & {"request", "on_progress"}

        async def routed(request: Request, **given: Any) -> Response:
            state, body = state_of(request), given.get("body")
            name = getattr(body, "model", None) if body is not None else given.get("name")
            first: State | ServedModel | None = state if target.annotation is State else None

            def respond(on_progress: OnProgress) -> Response:  # in the thread: large JSON would block the event loop
                known = {"request": request, "on_progress": on_progress}
                loaded = first if isinstance(first, ServedModel) else None
                with by_name({str(loaded.model.path): loaded.name} if loaded and loaded.model.path else {}):
                    return _as_response(kind, work(first, **given, **{each: known[each] for each in special}))

            async with AsyncExitStack() as stack:
                if first is None and name is not None:
                    first = await stack.enter_async_context(state.registry.use(name))
                turns = state.reading if reads else first.turns if isinstance(first, ServedModel) else state.turns
                if reads and method == "GET" and "on_progress" not in special:
                    return await turns.run_shared(request, state.settings.limits.seconds, lambda: respond(_no_progress))
                return await turns.run(request, state.settings.limits.seconds, respond, shares=shares)

        parameters = [Parameter("request", Parameter.KEYWORD_ONLY, annotation=Request)]
        parameters += [each.replace(kind=Parameter.KEYWORD_ONLY) for each in others if each.name not in special]
        routed.__signature__ = Signature(parameters)  # type: ignore[attr-defined]
        how: dict[str, Any] = {"response_model": answer, "name": work.__name__, "description": getdoc(work)}
        if answer is None:
            how |= {"response_class": Response, "responses": {200: {"content": {media: {}}, **described}}}
        router.add_api_route(path, routed, methods=[method], **how)
        return work

    return add


def _no_progress(*_: object) -> None:
    """Report no progress."""


def _as_response(kind: TypeAdapter[Any], found: Any) -> Response:
    """Validate a result and convert it to JSON; a response is returned unchanged."""
    if isinstance(found, Response):
        return found
    plain = kind.dump_python(kind.validate_python(found), mode="json")
    try:
        return Response(json.dumps(plain, ensure_ascii=False, allow_nan=False), media_type="application/json")
    except ValueError as error:
        raise KothaError("the result contains NaN or infinite numbers; the model's weights are damaged") from error


def tokenizer_of(served: ServedModel) -> Tokenizer:
    """Return the model's tokenizer; raises RefusedError if the model has none."""
    if served.model.tokenizer is None:
        raise RefusedError("{name} has no tokenizer and cannot read text", param="model", name=served.name)
    return served.model.tokenizer


def writer_of(served: ServedModel) -> Batcher:
    """Return the batch in which the model generates text; raises RefusedError if it cannot generate."""
    if served.batcher is None:
        mute = "{name} is a {family} model and cannot generate text"
        raise RefusedError(mute, param="model", name=served.name, family=served.model.config.family)
    return served.batcher


def check_texts(served: ServedModel, texts: Sequence[Sized], param: str) -> None:
    """Raise RefusedError if there are no texts, too many texts, or too many characters (or token ids) in total."""
    check_count(served, texts, param)
    check_most(sum(map(len, texts)), served.limits.prompt_characters, Message("characters"), param)


def check_count(served: ServedModel, given: Sequence[Sized], param: str) -> None:
    """Raise RefusedError if the list is empty or longer than the limit."""
    count, most = len(given), served.limits.prompts
    if not 0 < count <= most:
        many = "{field}: {count:,} given; give 1 to {most:,} at a time"
        raise RefusedError(many, param=param, field=param, count=count, most=most)


def count_tokens(served: ServedModel, text: str, most: int, param: str = "text") -> int:
    """Return the number of tokens in a text; raises RefusedError if there are more than ``most``."""
    count = most + 1
    if len(text) <= CHARACTERS_OF_A_TOKEN * most:
        count = len(tokenizer_of(served).encode(text))
    if count > most:
        raise RefusedError("the text has more than {n:,} tokens; shorten it", param=param, n=most)
    return count


def check_lengths(served: ServedModel, body: Any, most: int) -> None:
    """Raise RefusedError if the text or the target has more than ``most`` tokens."""
    for name in ("text", "target"):
        if getattr(body, name) is not None:
            count_tokens(served, getattr(body, name), most, name)


def picture(served: ServedModel, png: str, param: str = "image") -> NDArray[np.float32]:
    """Decode a base64-encoded PNG as input to a ViT."""
    limits = served.limits
    if not isinstance(served.model.model, ViT):
        blind = "{name} is a {family} model and cannot read images"
        raise RefusedError(blind, param=param, name=served.name, family=served.model.config.family)
    if len(png) > limits.image_bytes * 4 // 3 + 4:
        raise RefusedError("the image is larger than {n:,} bytes; make it smaller", param=param, n=limits.image_bytes)
    try:
        data = base64.b64decode(png, validate=True)
    except (binascii.Error, ValueError) as error:
        raise RefusedError("the image is not valid base64: {why}", param=param, why=error) from error
    config = served.model.model.config
    return decode_png(data, config.image_size, config.n_channels, limits.image_pixels)


def check_size(served: ServedModel, count: int, advice: Message) -> None:
    """Raise RefusedError if a response would have too many numbers; ``advice`` says how to request fewer."""
    most = served.limits.numbers
    if count > most:
        raise RefusedError(
            "the response would contain {n:,} numbers, which exceeds the limit of {most:,}; {advice}",
            n=count,
            most=most,
            advice=advice,
        )


HeadName = Annotated[str, Field(max_length=80, examples=["blocks.0.attention.0"])]
Heads = list[HeadName]


class InputRequest(AboutModel):
    """The input to the inspected forward pass: a text for most models, an image for a ViT."""

    text: Example | None = None
    second: str | None = None
    target: str | None = None
    image: str | None = None

    def to_input(self, served: ServedModel, generate: int | None = None) -> InputOptions:
        """Convert the input to the library's options, and check it against the limits."""
        most, pixels = served.limits.positions, None
        if self.image is not None:
            pixels = picture(served, self.image)
            config = served.model.config
            assert isinstance(config, ViTConfig), "only a ViT accepts an image"
            check_most(1 + (config.image_size // config.patch_size) ** 2, most, Message("patches"), "image")
        elif not isinstance(served.model.model, ViT):  # it rejects text itself
            left = most - (generate or 0)
            for name in ("text", "second"):
                given = getattr(self, name)
                left -= 0 if given is None else count_tokens(served, given, left, name)
            if self.target is not None:
                count_tokens(served, self.target, most, "target")
        return InputOptions(self.text, self.second, self.target, pixels, generate)


class AblationRequest(InputRequest):
    """The input to the inspected forward pass, and the heads to silence."""

    silenced: Heads = Field([], max_length=4096)


class InputResponse(WireResponse):
    """The input as the model read it, by name: ``tokens``, ``source`` and ``target``, or ``patches``."""

    family: str
    lines: dict[str, tuple[Piece, ...]]
    grid: tuple[int, int] | None
    remarks: tuple[MessageField, ...]


def read_as(bundle: Bundle, given: ModelInput) -> JsonObject:
    """Return the fields of ``InputResponse``."""
    return {"family": bundle.config.family, "lines": given.lines, "grid": given.grid, "remarks": given.remarks}


@contextmanager
def watching(served: ServedModel, on_progress: OnProgress, silenced: Heads = []) -> Iterator[Bundle]:  # noqa: B006
    """Yield the model with some heads silenced; each layer reports progress, so that the work can be cancelled."""

    def report(*_: object) -> None:
        on_progress("", 0, 1)

    bundle = served.apart
    hooks = [block.register_forward_pre_hook(report) for block in layers(bundle.model).values()]
    try:
        with silence(bundle.model, silenced):
            yield bundle
    finally:
        for hook in hooks:
            hook.remove()
