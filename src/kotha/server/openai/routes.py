"""An OpenAI-compatible API: ``/v1/models``, ``/v1/completions``, ``/v1/chat/completions``, ``/v1/embeddings``."""

import asyncio
import secrets
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

from fastapi import APIRouter, Request
from fastapi.responses import JSONResponse, StreamingResponse

from kotha.server.openai import chat, completions
from kotha.server.openai.embeddings import embed
from kotha.server.openai.schema import ChatRequest, CompletionRequest, EmbeddingRequest
from kotha.server.openai.writing import Texts, begin, events, in_time, until_gone
from kotha.server.state import client_of, state_of
from kotha.server.wire import NamedModel

router = APIRouter(prefix="/v1", tags=["OpenAI's"])


def _described(name: str, place: Path) -> dict[str, Any]:
    return {"id": name, "object": "model", "created": _changed(place), "owned_by": "kotha"}


def _changed(place: Path) -> int:
    """When a folder was changed; 0 where it is gone, which whoever asks for the model is told."""
    try:
        return int(place.stat().st_mtime)
    except OSError:
        return 0


@router.get("/models")
async def models(request: Request) -> dict[str, Any]:
    """The models of this server."""
    registry = state_of(request).registry

    def described() -> list[dict[str, Any]]:
        return [_described(name, place) for name, place in registry.named.items()]

    return {"object": "list", "data": await asyncio.to_thread(described)}


@router.get("/models/{name}")
async def model(request: Request, name: NamedModel) -> dict[str, Any]:
    """One of them."""
    registry = state_of(request).registry
    return _described(name, await registry.find(name))


@router.post("/completions")
async def complete(request: Request, body: CompletionRequest) -> Any:
    """Go on with a text."""
    state = state_of(request)
    async with AsyncExitStack() as stack:
        served = await stack.enter_async_context(state.registry.use(body.model))
        id = f"cmpl-{secrets.token_hex(12)}"
        limits, client = state.settings.limits, client_of(request)
        texts = begin(served, body.prompts, body, body.most_tokens, body.logprobs, limits, client, id)
        if body.stream:
            return _stream(completions.parts(body, texts), texts, limits.seconds, stack.pop_all())
        return JSONResponse(completions.whole(body, texts, await until_gone(request, texts, limits.seconds)))


@router.post("/chat/completions")
async def converse(request: Request, body: ChatRequest) -> Any:
    """Go on with a conversation."""
    state = state_of(request)
    async with AsyncExitStack() as stack:
        served = await stack.enter_async_context(state.registry.use(body.model))
        id = f"chatcmpl-{secrets.token_hex(12)}"
        limits, client = state.settings.limits, client_of(request)
        prompts = [] if served.batcher is None else [await asyncio.to_thread(chat.prompt_of, body, served)]
        alternatives = (body.top_logprobs or 0) if body.logprobs else None
        texts = begin(served, prompts, body, body.most_tokens, alternatives, limits, client, id)
        if body.stream:
            return _stream(chat.parts(body, texts), texts, limits.seconds, stack.pop_all())
        return JSONResponse(chat.whole(body, texts, await until_gone(request, texts, limits.seconds)))


@router.post("/embeddings")
async def embeddings(request: Request, body: EmbeddingRequest) -> Any:
    """Make texts into vectors."""
    state = state_of(request)
    async with state.registry.use(body.model) as served:
        limits = state.settings.limits
        return JSONResponse(await served.turns.run(request, limits.seconds, lambda _: embed(body, served, limits)))


def _stream(
    parts: AsyncIterator[dict[str, Any]], texts: Texts, seconds: float, stack: AsyncExitStack
) -> StreamingResponse:
    """A stream that holds on to its model until it ends, however it ends."""

    async def held() -> AsyncIterator[str]:
        async with stack:
            try:
                async for event in events(in_time(parts, seconds)):
                    yield event
            finally:
                texts.cancel()

    return StreamingResponse(held(), media_type="text/event-stream; charset=utf-8")
