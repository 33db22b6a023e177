"""An OpenAI-compatible API: ``/v1/models``, ``/v1/completions``, ``/v1/chat/completions`` and ``/v1/embeddings``.

The texts in a request are checked against the limits and then join the batch. Streaming uses server-sent events, one
for each step that completes at least one character. A model that was fine-tuned for conversation uses its own chat
template.
"""

import asyncio
import base64
import json
import secrets
import time
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from typing import Any

import numpy as np
from fastapi import APIRouter, Request
from fastapi.responses import JSONResponse, StreamingResponse

from kotha.generation.request import Request as WritingRequest
from kotha.generation.request import Result
from kotha.i18n.message import Message
from kotha.model.fields import LARGEST_SEED
from kotha.server.api.requests import CHARACTERS_OF_A_TOKEN, check_texts, tokenizer_of, writer_of
from kotha.server.batching import News, Ticket, letters
from kotha.server.errors import RefusedError, answer, check_most
from kotha.server.json_requests import JsonObject, NamedModel, as_list
from kotha.server.model_registry import ServedModel
from kotha.server.openai.schema import ChatRequest, CompletionRequest, EmbeddingRequest, Prompt
from kotha.server.serial_executor import too_long, while_wanted
from kotha.server.state import client_of, state_of

router = APIRouter(prefix="/v1", tags=["OpenAI's"])
# Random seeds are below this number.
_SEEDS = 1 << 31


def _described(name: str) -> JsonObject:
    return {"id": name, "object": "model", "created": 0, "owned_by": "kotha"}


@router.get("/models")
def models(request: Request) -> JsonObject:
    """Return this server's models."""
    return {"object": "list", "data": list(map(_described, state_of(request).registry.named))}


@router.get("/models/{name}")
def model(request: Request, name: NamedModel) -> JsonObject:
    """Return one of this server's models."""
    state_of(request).registry.path(name)
    return _described(name)


@router.post("/completions")
async def complete(request: Request, body: CompletionRequest) -> Any:
    """Continue a text."""
    return await _written(request, body)


@router.post("/chat/completions")
async def converse(request: Request, body: ChatRequest) -> Any:
    """Continue a conversation."""
    return await _written(request, body)


async def _written(request: Request, body: CompletionRequest | ChatRequest) -> Any:
    """Generate texts for prompts, and return the response or a stream."""
    state = state_of(request)
    seconds = state.settings.limits.seconds
    async with AsyncExitStack() as stack:
        served = await stack.enter_async_context(state.registry.use(body.model))
        prompts = await asyncio.to_thread(_prompts, body, served)
        texts = Texts(body, served, prompts, client_of(request))
        if body.stream:
            return event_stream(texts.stream(), texts.cancel, seconds, stack.pop_all())
        try:
            return JSONResponse(await while_wanted(request, seconds, texts.answer()))
        finally:
            texts.cancel()


def _prompts(body: CompletionRequest | ChatRequest, served: ServedModel) -> list[Prompt]:
    """Return a request's prompts and check their lengths; called in a thread."""
    prompts = body.prompts(served)
    check_texts(served, prompts, "prompt")
    for prompt in prompts:
        _check_context(prompt, served)
    return prompts


@router.post("/embeddings")
async def embeddings(request: Request, body: EmbeddingRequest) -> Any:
    """Return embeddings for texts."""
    state = state_of(request)
    async with state.registry.use(body.model) as served:
        return JSONResponse(
            await served.turns.run(request, state.settings.limits.seconds, lambda _: _embed(body, served))
        )


def _embed(body: EmbeddingRequest, served: ServedModel) -> JsonObject:
    """Compute the embeddings for a request; called in a thread."""
    tokenizer, given = tokenizer_of(served), as_list(body.input)
    check_texts(served, given, "input")
    texts = [each if isinstance(each, str) else tokenizer.decode(each) for each in given]
    vectors = served.model.embed(texts)
    if not vectors.any(axis=1).all():
        raise RefusedError(
            "a text has no characters that the model can read, so it has no embedding; remove it", param="input"
        )
    count = sum(len(ids) for ids in tokenizer.encode_batch(texts))
    rows: list[Any] = vectors.astype(np.float32).tolist()
    if body.encoding_format == "base64":
        rows = [base64.b64encode(vector.tobytes()).decode() for vector in vectors.astype(np.float32)]
    data = [{"object": "embedding", "index": index, "embedding": row} for index, row in enumerate(rows)]
    usage = {"prompt_tokens": count, "total_tokens": count}
    return {"object": "list", "data": data, "model": served.name, "usage": usage}


class Texts:
    """The texts being generated for one request (n for each prompt), and the response in OpenAI's format."""

    def __init__(
        self, body: CompletionRequest | ChatRequest, served: ServedModel, prompts: Sequence[Prompt], client: str
    ) -> None:
        """Submit all texts to the batch, or none of them."""
        self._body, self._served = body, served
        self._id, self._created = f"{body.kinds[2]}-{secrets.token_hex(12)}", int(time.time())
        self._news: News = asyncio.Queue()
        self._tickets: list[Ticket] = []
        check_most(body.n * len(prompts), served.limits.choices, Message("texts"), "n")
        seed = secrets.randbelow(_SEEDS) if body.seed is None else body.seed
        how: dict[str, Any] = {"tokens": body.most_tokens, "stop": tuple(body.stop), "alternatives": body.alternatives}
        try:
            for prompt in prompts:
                for index in range(body.n):
                    request = WritingRequest(
                        prompt=prompt, settings=body.settings((seed + index) % (LARGEST_SEED + 1)), **how
                    )
                    self._tickets.append(writer_of(served).submit(request, client, self._news))
        except Exception:
            self.cancel()
            raise

    def cancel(self) -> None:
        """Cancel all texts that are not finished."""
        for ticket in self._tickets:
            ticket.cancel()

    async def answer(self) -> JsonObject:
        """Return the complete response."""
        body, results = self._body, dict[int, Result]()
        async for index, chunk in letters(self._tickets, self._news):
            if chunk.result is not None:
                results[index] = chunk.result
        choices = [{"index": index, **body.whole(result)} for index, result in sorted(results.items())]
        remark = body.remark(self._served)
        return {**self._head(body.kinds[0]), "choices": choices, "usage": self._usage(results), **remark}

    async def stream(self) -> AsyncIterator[JsonObject]:
        """Yield parts of the response as they are generated."""
        body, results = self._body, dict[int, Result]()
        with_usage = (body.stream_options or {}).get("include_usage", False)
        head, more = self._head(body.kinds[1]), {"usage": None} if with_usage else {}
        first = body.first()
        for index in range(0 if first is None else len(self._tickets)):
            yield {**head, "choices": [{"index": index, **(first or {})}], **body.remark(self._served), **more}
        async for index, chunk in letters(self._tickets, self._news):
            if chunk.result is not None:
                results[index] = chunk.result
            for part in body.parts(chunk):
                yield {**head, "choices": [{"index": index, **part}], **more}
        if with_usage:
            yield {**head, "choices": [], "usage": self._usage(results)}

    def _head(self, kind: str) -> JsonObject:
        """Return the fields at the start of every response and of every part of a stream."""
        return {"id": self._id, "object": kind, "created": self._created, "model": self._served.name}

    def _usage(self, results: Mapping[int, Result]) -> dict[str, int]:
        """Return the numbers of tokens; a prompt with several texts counts once."""
        read = sum(result.prompt_tokens for index, result in results.items() if index % self._body.n == 0)
        written = sum(result.tokens for result in results.values())
        return {"prompt_tokens": read, "completion_tokens": written, "total_tokens": read + written}


def _check_context(prompt: Prompt, served: ServedModel) -> None:
    """Raise RefusedError if a prompt does not fit into the model's context."""
    context = served.model.config.context_length  # type: ignore[attr-defined]
    code = "context_length_exceeded"
    if isinstance(prompt, str) and len(prompt) > CHARACTERS_OF_A_TOKEN * context:  # too long to tokenize
        raise RefusedError(
            "this model's context is {context:,} tokens, but the prompt has {n:,} characters; shorten it",
            param="prompt",
            code=code,
            context=context,
            n=len(prompt),
        )
    count = len(tokenizer_of(served).encode(prompt)) + 1 if isinstance(prompt, str) else len(prompt)
    if count > context:
        raise RefusedError(
            "this model's context is {context:,} tokens, but the prompt has {count:,}; shorten it",
            param="prompt",
            code=code,
            context=context,
            count=count,
        )


def event_stream(
    parts: AsyncIterator[JsonObject], cancel: Callable[[], None], seconds: float, stack: AsyncExitStack
) -> StreamingResponse:
    """Return parts as server-sent events, with a time limit; ``stack`` keeps the model in use until the stream ends."""

    async def events() -> AsyncIterator[str]:
        try:
            async with stack, asyncio.timeout(seconds):
                async for part in parts:
                    yield _event(part)
        except Exception as error:  # the error is the last event
            is_timeout = isinstance(error, TimeoutError)
            yield _event(answer(too_long(seconds) if is_timeout else error)[1])
        else:
            yield "data: [DONE]\n\n"
        finally:
            cancel()

    return StreamingResponse(events(), media_type="text/event-stream; charset=utf-8")


def _event(part: JsonObject) -> str:
    return f"data: {json.dumps(part, ensure_ascii=False)}\n\n"
