"""An OpenAI-compatible API: ``/v1/models``, ``/v1/completions``, ``/v1/chat/completions``, ``/v1/embeddings``."""

import asyncio
import base64
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import numpy as np
from fastapi import APIRouter, Request
from fastapi.responses import JSONResponse

from kotha.server.api.requests import tokenizer_of
from kotha.server.errors import RefusedError
from kotha.server.model_registry import Served
from kotha.server.openai.schema import ChatRequest, CompletionRequest, EmbeddingRequest
from kotha.server.openai.writing import Chat, Completions, begin, chat_prompt, event_stream
from kotha.server.serial_executor import while_wanted
from kotha.server.state import client_of, state_of
from kotha.server.wire import JsonObject, NamedModel

router = APIRouter(prefix="/v1", tags=["OpenAI's"])


def _described(name: str, place: Path) -> JsonObject:
    return {"id": name, "object": "model", "created": _changed(place), "owned_by": "kotha"}


def _changed(place: Path) -> int:
    """When a folder was changed; 0 where it is gone, which whoever asks for the model is told."""
    try:
        return int(place.stat().st_mtime)
    except OSError:
        return 0


@router.get("/models")
async def models(request: Request) -> JsonObject:
    """The models of this server."""
    registry = state_of(request).registry

    def described() -> list[JsonObject]:
        return [_described(name, place) for name, place in registry.named.items()]

    return {"object": "list", "data": await asyncio.to_thread(described)}


@router.get("/models/{name}")
async def model(request: Request, name: NamedModel) -> JsonObject:
    """One of them."""
    registry = state_of(request).registry
    return _described(name, await registry.find(name))


@router.post("/completions")
async def complete(request: Request, body: CompletionRequest) -> Any:
    """Go on with a text."""

    async def prompts(_: Served) -> list[str | tuple[int, ...]]:
        return body.prompts

    return await _written(request, body, prompts, body.logprobs, Completions)


@router.post("/chat/completions")
async def converse(request: Request, body: ChatRequest) -> Any:
    """Go on with a conversation."""

    async def prompts(served: Served) -> list[str | tuple[int, ...]]:
        return [await asyncio.to_thread(chat_prompt, body, served)]

    return await _written(request, body, prompts, (body.top_logprobs or 0) if body.logprobs else None, Chat)


async def _written(
    request: Request,
    body: Any,
    prompts: Callable[[Served], Awaitable[list[str | tuple[int, ...]]]],
    alternatives: int | None,
    form: type[Chat] | type[Completions],
) -> Any:
    """Texts that go on with prompts, in a form, whole or as a stream."""
    state = state_of(request)
    limits = state.settings.limits
    async with AsyncExitStack() as stack:
        served = await stack.enter_async_context(state.registry.use(body.model))
        found = await prompts(served)
        texts = begin(served, found, body, body.most_tokens, alternatives, limits, client_of(request), form.prefix)
        told = form(body, texts)
        if body.stream:
            return event_stream(told.stream(), texts.cancel, limits.seconds, stack.pop_all())
        try:
            return JSONResponse(told.answer(await while_wanted(request, limits.seconds, texts.results())))
        finally:
            texts.cancel()


@router.post("/embeddings")
async def embeddings(request: Request, body: EmbeddingRequest) -> Any:
    """Make texts into vectors."""
    state = state_of(request)
    async with state.registry.use(body.model) as served:
        return JSONResponse(
            await served.turns.run(request, state.settings.limits.seconds, lambda _: _embed(body, served))
        )


def _embed(body: EmbeddingRequest, served: Served) -> JsonObject:
    """The vectors that were asked for; called in a thread when its turn has come, since it computes."""
    tokenizer, given, limits = tokenizer_of(served), body.inputs, served.limits
    if not given or len(given) > limits.prompts:
        raise RefusedError(
            "{n:,} texts; give 1 to {prompts:,} at a time", param="input", n=len(given), prompts=limits.prompts
        )
    if sum(map(len, given)) > limits.prompt_characters:
        raise RefusedError(
            "the texts are longer than {prompt_characters:,} together",
            param="input",
            prompt_characters=limits.prompt_characters,
        )
    texts = [each if isinstance(each, str) else tokenizer.decode(each) for each in given]
    if not all(map(str.strip, texts)):
        raise RefusedError("a text is empty, and has no direction; leave it out", param="input")
    vectors = served.model.embed(texts)
    if not vectors.any(axis=1).all():
        raise RefusedError("a text has no letters to be read, and so no direction; leave it out", param="input")
    width = vectors.shape[1]
    if body.dimensions not in (None, width):
        raise RefusedError(
            "this model's vectors have {width:,} numbers; leave dimensions out", param="dimensions", width=width
        )
    count = sum(len(ids) for ids in tokenizer.encode_batch(texts))
    data = [
        {"object": "embedding", "index": place, "embedding": _encoded(vector, body.encoding_format)}
        for place, vector in enumerate(vectors.astype(np.float32))
    ]
    usage = {"prompt_tokens": count, "total_tokens": count}
    return {"object": "list", "data": data, "model": served.name, "usage": usage}


def _encoded(vector: Any, encoding: str) -> list[float] | str:
    return base64.b64encode(vector.tobytes()).decode() if encoding == "base64" else vector.tolist()
