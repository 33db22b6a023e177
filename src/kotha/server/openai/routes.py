"""An OpenAI-compatible API: ``/v1/models``, ``/v1/completions``, ``/v1/chat/completions``, ``/v1/embeddings``."""

import asyncio
import base64
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import numpy as np
from fastapi import APIRouter, Request
from fastapi.responses import JSONResponse

from kotha.server.api.requests import check_texts, tokenizer_of
from kotha.server.errors import RefusedError
from kotha.server.model_registry import Served
from kotha.server.openai.schema import ChatRequest, CompletionRequest, EmbeddingRequest
from kotha.server.openai.writing import Texts, event_stream
from kotha.server.serial_executor import while_wanted
from kotha.server.state import client_of, state_of
from kotha.server.wire import JsonObject, NamedModel, as_list

router = APIRouter(prefix="/v1", tags=["OpenAI's"])


def _described(name: str, place: Path) -> JsonObject:
    try:
        changed = int(place.stat().st_mtime)
    except OSError:  # it is gone, which whoever asks for the model is told
        changed = 0
    return {"id": name, "object": "model", "created": changed, "owned_by": "kotha"}


@router.get("/models")
def models(request: Request) -> JsonObject:
    """The models of this server."""
    named = state_of(request).registry.named
    return {"object": "list", "data": [_described(name, place) for name, place in named.items()]}


@router.get("/models/{name}")
def model(request: Request, name: NamedModel) -> JsonObject:
    """One of them."""
    return _described(name, state_of(request).registry.place(name))


@router.post("/completions")
async def complete(request: Request, body: CompletionRequest) -> Any:
    """Go on with a text."""
    return await _written(request, body)


@router.post("/chat/completions")
async def converse(request: Request, body: ChatRequest) -> Any:
    """Go on with a conversation."""
    return await _written(request, body)


async def _written(request: Request, body: CompletionRequest | ChatRequest) -> Any:
    """Texts that go on with prompts, whole or as a stream."""
    state = state_of(request)
    seconds = state.settings.limits.seconds
    async with AsyncExitStack() as stack:
        served = await stack.enter_async_context(state.registry.use(body.model))
        prompts = await asyncio.to_thread(body.prompts, served)
        texts = Texts(body, served, prompts, client_of(request))
        if body.stream:
            return event_stream(texts.stream(), texts.cancel, seconds, stack.pop_all())
        try:
            return JSONResponse(await while_wanted(request, seconds, texts.answer()))
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
    tokenizer, given = tokenizer_of(served), as_list(body.input)
    check_texts(served, given, "input")
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
    rows: list[Any] = vectors.astype(np.float32).tolist()
    if body.encoding_format == "base64":
        rows = [base64.b64encode(vector.tobytes()).decode() for vector in vectors.astype(np.float32)]
    data = [{"object": "embedding", "index": place, "embedding": row} for place, row in enumerate(rows)]
    usage = {"prompt_tokens": count, "total_tokens": count}
    return {"object": "list", "data": data, "model": served.name, "usage": usage}
