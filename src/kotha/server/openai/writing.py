"""From a request of OpenAI's kind to texts: checked against the limits, put into the batch, read back as they come.

Streaming is by server-sent events, a part for each step in which letters became certain.
"""

import asyncio
import json
import secrets
import time
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from fastapi import Request as HttpRequest

from kotha.generation.answers import Request, Result
from kotha.server.batching import StreamChunk, Ticket
from kotha.server.errors import RefusedError, UnsupportedByModelError, answer
from kotha.server.model_registry import Served
from kotha.server.openai.schema import Sampled
from kotha.server.serial_executor import gone
from kotha.server.settings import Limits
from kotha.text.tokenizer.tokenizer import Tokenizer

_ENDS = {"end": "stop", "stop string": "stop", "length": "length", "cancelled": "length"}
# Numbers that a seed is drawn from where none was given.
_SEEDS = 1 << 31


@dataclass
class Texts:
    """The texts that a request asked for, on their way."""

    served: Served
    tickets: list[Ticket]
    id: str
    created: int = field(default_factory=lambda: int(time.time()))

    def head(self, kind: str) -> dict[str, Any]:
        """What every answer and every part of a stream begins with."""
        return {"id": self.id, "object": kind, "created": self.created, "model": self.served.name}

    async def results(self) -> list[Result]:
        """All of them, whole."""
        return list(await asyncio.gather(*(ticket.result() for ticket in self.tickets)))

    async def letters(self) -> AsyncIterator[tuple[int, StreamChunk]]:
        """All of them, letters as they come, each with the number of its text."""
        news: asyncio.Queue[tuple[int, StreamChunk] | Exception] = asyncio.Queue()

        async def listen(place: int, ticket: Ticket) -> None:
            try:
                async for some in ticket:
                    news.put_nowait((place, some))
            except Exception as error:  # told to whoever reads the stream
                news.put_nowait(error)

        listeners = [asyncio.create_task(listen(place, ticket)) for place, ticket in enumerate(self.tickets)]
        unfinished = len(listeners)
        try:
            while unfinished:
                found = await news.get()
                if isinstance(found, Exception):
                    raise found
                unfinished -= found[1].result is not None
                yield found
        finally:
            self.cancel()
            for listener in listeners:
                listener.cancel()

    def cancel(self) -> None:
        """Let go of all that is not done."""
        for ticket in self.tickets:
            ticket.cancel()


def begin(
    served: Served,
    prompts: Sequence[str | tuple[int, ...]],
    body: Sampled,
    tokens: int,
    alternatives: int | None,
    limits: Limits,
    client: str,
    id: str,
) -> Texts:
    """Put a request's texts into the batch, n for each prompt, or none of them."""
    if served.batcher is None:
        raise UnsupportedByModelError(
            "{name} is a {family} and writes no text", name=served.name, family=served.model.config.family
        )
    _check(prompts, body, tokens, alternatives, limits)
    tokenizer = served.model.tokenizer
    assert tokenizer is not None, "what writes has one"
    seed = secrets.randbelow(_SEEDS) if body.seed is None else body.seed
    texts = Texts(served, [], id)
    try:
        for prompt in prompts:
            ids = _fitting(prompt, served, tokenizer)
            for place in range(body.n):
                settings = body.settings(seed + place)
                request = Request(
                    prompt=ids, tokens=tokens, settings=settings, stop=body.stops, alternatives=alternatives
                )
                texts.tickets.append(served.batcher.submit(request, client))
    except Exception:
        texts.cancel()
        raise
    return texts


def _check(
    prompts: Sequence[str | tuple[int, ...]], body: Sampled, tokens: int, alternatives: int | None, limits: Limits
) -> None:
    """Refuse what is beyond the limits, each in words."""
    most = {
        "prompt": ("prompts", len(prompts), limits.prompts),
        "n": ("texts", body.n * len(prompts), limits.choices),
        "stop": ("stop strings", len(body.stops), limits.stops),
        "max_tokens": ("tokens", tokens, limits.tokens),
        "logprobs": ("alternatives", alternatives or 0, limits.alternatives),
    }
    for param, (what, count, allowed) in most.items():
        if count > allowed:
            raise RefusedError(
                "{count:,} {what} are too many for one request; {allowed:,} are allowed",
                param=param,
                count=count,
                what=what,
                allowed=allowed,
            )
    if not prompts:
        raise RefusedError("there is no prompt; give a text, which may be empty", param="prompt")
    length = sum(map(len, prompts))
    if length > limits.prompt_characters:
        allowed = limits.prompt_characters
        raise RefusedError(
            "the prompt is {length:,} long, and {allowed:,} is the most",
            param="prompt",
            code="string_above_max_length",
            length=length,
            allowed=allowed,
        )


def _fitting(prompt: str | tuple[int, ...], served: Served, tokenizer: Tokenizer) -> str | tuple[int, ...]:
    """The prompt itself, once it is known to fit into the model's context."""
    context = served.model.config.context_length  # type: ignore[attr-defined]
    count = len(tokenizer.encode(prompt)) + 1 if isinstance(prompt, str) else len(prompt)
    if count > context:
        raise RefusedError(
            "this model's context is {context:,} tokens, and the prompt has {count:,}; shorten it",
            param="prompt",
            code="context_length_exceeded",
            context=context,
            count=count,
        )
    return prompt


def usage(results: Sequence[Result], per_prompt: int) -> dict[str, int]:
    """Tokens read and written; a prompt that several texts follow was read once."""
    read = sum(result.prompt_tokens for result in results[::per_prompt])
    written = sum(result.tokens for result in results)
    return {"prompt_tokens": read, "completion_tokens": written, "total_tokens": read + written}


def finish_reason(result: Result) -> str:
    """Why a text ended, in OpenAI's words."""
    return _ENDS[result.stopped]


async def until_gone(request: HttpRequest, texts: Texts, seconds: float) -> list[Result]:
    """The results, unless whoever asked leaves before, or it takes too long: then nothing is written on."""
    writing = asyncio.ensure_future(texts.results())
    leaving = asyncio.ensure_future(gone(request))
    try:
        done, _ = await asyncio.wait({writing, leaving}, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
        if not done:
            raise too_long(seconds)
        if not writing.done():
            raise RefusedError("the client has left", 499)
        return await writing
    finally:
        texts.cancel()
        for task in (writing, leaving):
            task.cancel()


def too_long(seconds: float) -> RefusedError:
    """A request that was given up."""
    return RefusedError(
        "this took longer than {seconds:,.0f} s, and was given up; ask for fewer tokens", 504, seconds=seconds
    )


async def in_time(parts: AsyncIterator[dict[str, Any]], seconds: float) -> AsyncIterator[dict[str, Any]]:
    """A stream that may take so long."""
    try:
        async with asyncio.timeout(seconds):
            async for part in parts:
                yield part
    except TimeoutError as error:
        raise too_long(seconds) from error


async def events(parts: AsyncIterator[dict[str, Any]]) -> AsyncIterator[str]:
    """Parts as server-sent events; an error in the middle is the last of them."""
    try:
        async for part in parts:
            yield f"data: {json.dumps(part, ensure_ascii=False)}\n\n"
    except Exception as error:
        _, body, _ = answer(error)
        yield f"data: {json.dumps(body, ensure_ascii=False)}\n\n"
        return
    yield "data: [DONE]\n\n"
