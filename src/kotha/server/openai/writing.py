"""From a request of OpenAI's kind to texts: checked against the limits, put into the batch, read back as they come.

Streaming is by server-sent events, a part for each step in which letters became certain. A model that was taught to
take turns is asked by its own template. One that was not goes on with what was said, as one text; every answer then
says so, in ``kotha.remark``, because a reader would take noise for an opinion.
"""

import asyncio
import json
import secrets
import time
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AsyncExitStack
from itertools import accumulate
from typing import Any, Generic, TypeVar

from fastapi.responses import StreamingResponse

from kotha.generation.answers import Chance, Request, Result, Written
from kotha.generation.conversation import UNTAUGHT, conversation_prompt
from kotha.i18n.message import Message
from kotha.server.api.requests import tokenizer_of, writer_of
from kotha.server.batching import StreamChunk, Ticket
from kotha.server.errors import RefusedError, answer, check_most
from kotha.server.model_registry import Served
from kotha.server.openai.schema import ChatRequest, CompletionRequest, Sampled
from kotha.server.serial_executor import TOO_LONG, TooLongError
from kotha.server.settings import Limits
from kotha.server.wire import JsonObject, as_list
from kotha.text.tokenizer.chat import Turn

_ENDS = {"end": "stop", "stop string": "stop", "length": "length", "cancelled": "length"}
_ROLES = {"developer": "system"}
# Numbers that a seed is drawn from where none was given.
_SEEDS = 1 << 31
Choice = JsonObject
Prompt = str | tuple[int, ...]
Body = TypeVar("Body", bound=Sampled)


class Form(ABC, Generic[Body]):
    """The texts of one request on their way, n for each prompt, as its answer has them."""

    kind: str
    kind_of_part: str
    prefix: str

    def __init__(self, body: Body, served: Served, prompts: Sequence[Prompt], client: str) -> None:
        self.body, self.served = body, served
        self.remark: JsonObject = {}
        self.tickets: list[Ticket] = []
        self._id, self._created = f"{self.prefix}-{secrets.token_hex(12)}", int(time.time())
        self._begin(prompts, client)

    def _begin(self, prompts: Sequence[Prompt], client: str) -> None:
        """Put the texts into the batch, or none of them."""
        body, batcher = self.body, writer_of(self.served)
        _check(prompts, body, self.served.limits)
        seed = secrets.randbelow(_SEEDS) if body.seed is None else body.seed
        how: dict[str, Any] = {"tokens": body.most_tokens, "stop": body.stops, "alternatives": body.alternatives}
        try:
            for prompt in prompts:
                _check_context(prompt, self.served)
                for place in range(body.n):
                    request = Request(prompt=prompt, settings=body.settings(seed + place), **how)
                    self.tickets.append(batcher.submit(request, client))
        except Exception:
            self.cancel()
            raise

    def cancel(self) -> None:
        """Let go of all that is not done."""
        for ticket in self.tickets:
            ticket.cancel()

    @abstractmethod
    def whole(self, place: int, result: Result) -> Choice:
        """One text, whole."""

    @abstractmethod
    def first(self, place: int) -> Choice | None:
        """What comes before a text's letters."""

    @abstractmethod
    def parts(self, place: int, chunk: StreamChunk) -> list[Choice]:
        """What was written of a text since the last time."""

    async def answer(self) -> JsonObject:
        """The answer in one piece."""
        results = await asyncio.gather(*(ticket.result() for ticket in self.tickets))
        choices = [self.whole(place, result) for place, result in enumerate(results)]
        return {**self._head(self.kind), "choices": choices, "usage": self._usage(results), **self.remark}

    async def stream(self) -> AsyncIterator[JsonObject]:
        """The answer as it is written."""
        options, results = self.body.stream_options, dict[int, Result]()
        with_usage = options is not None and options.include_usage
        head, more = self._head(self.kind_of_part), {"usage": None} if with_usage else {}
        for place in range(len(self.tickets)):
            first = self.first(place)
            if first is not None:
                yield {**head, "choices": [{"index": place, **first}], **self.remark, **more}
        async for place, chunk in self._letters():
            if chunk.result is not None:
                results[place] = chunk.result
            for part in self.parts(place, chunk):
                yield {**head, "choices": [{"index": place, **part}], **more}
        if with_usage:
            yield {**head, "choices": [], "usage": self._usage([results[place] for place in sorted(results)])}

    def _head(self, kind: str) -> JsonObject:
        """What every answer and every part of a stream begins with."""
        return {"id": self._id, "object": kind, "created": self._created, "model": self.served.name}

    def _usage(self, results: Sequence[Result]) -> dict[str, int]:
        """Tokens read and written; a prompt that several texts follow was read once."""
        read = sum(result.prompt_tokens for result in results[:: self.body.n])
        written = sum(result.tokens for result in results)
        return {"prompt_tokens": read, "completion_tokens": written, "total_tokens": read + written}

    async def _letters(self) -> AsyncIterator[tuple[int, StreamChunk]]:
        """Letters as they come, each with the number of its text."""
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


class Completions(Form[CompletionRequest]):
    """Texts that go on."""

    kind = kind_of_part = "text_completion"
    prefix = "cmpl"

    def __init__(self, body: CompletionRequest, served: Served, prompts: Sequence[Prompt], client: str) -> None:
        super().__init__(body, served, prompts, client)
        self._sizes = [0] * len(self.tickets)  # letters of the tokens told so far, for each text

    @staticmethod
    def prompts(body: CompletionRequest, _: Served) -> list[Prompt]:
        """One or several, texts or token ids."""
        return as_list(body.prompt)

    def whole(self, place: int, result: Result) -> Choice:
        """One text, its prompt before it if asked for."""
        text = (self._prompt(place) if self.body.echo else "") + result.text
        told = self._probabilities(place, result.written)
        return {"index": place, "text": text, "logprobs": told, "finish_reason": _ENDS[result.stopped]}

    def first(self, place: int) -> Choice | None:
        """The prompt, if asked for."""
        return {"text": self._prompt(place), "logprobs": None, "finish_reason": None} if self.body.echo else None

    def parts(self, place: int, chunk: StreamChunk) -> list[Choice]:
        """Letters and, with the last of them, why the text ended."""
        reason = None if chunk.result is None else _ENDS[chunk.result.stopped]
        told = self._probabilities(place, chunk.written)
        return [{"text": chunk.text, "logprobs": told, "finish_reason": reason}]

    def _prompt(self, place: int) -> str:
        prompt = as_list(self.body.prompt)[place // self.body.n]
        return prompt if isinstance(prompt, str) else tokenizer_of(self.served).decode(prompt)

    def _probabilities(self, place: int, written: Sequence[Written]) -> JsonObject | None:
        """How likely each token was, and what else could have stood there."""
        if self.body.logprobs is None:
            return None
        *offsets, self._sizes[place] = accumulate((len(token.text) for token in written), initial=self._sizes[place])
        return {
            "tokens": [token.text for token in written],
            "token_logprobs": [token.log_probability for token in written],
            "top_logprobs": [{other.text: other.log_probability for other in token.alternatives} for token in written],
            "text_offset": offsets,
        }


class Chat(Form[ChatRequest]):
    """A conversation that goes on."""

    kind, kind_of_part, prefix = "chat.completion", "chat.completion.chunk", "chatcmpl"

    def __init__(self, body: ChatRequest, served: Served, prompts: Sequence[Prompt], client: str) -> None:
        super().__init__(body, served, prompts, client)
        self.remark = {} if served.takes_turns else {"kotha": {"remark": str(UNTAUGHT)}}

    @staticmethod
    def prompts(body: ChatRequest, served: Served) -> list[Prompt]:
        """What the model reads: its template, or all that was said as one text; old turns go where it is too long."""
        turns = [Turn(_ROLES.get(message.role, message.role), message.text) for message in body.messages]
        plain = not served.takes_turns
        return [tuple(conversation_prompt(writer_of(served).engine, turns, body.most_tokens, plain=plain))]

    def whole(self, place: int, result: Result) -> Choice:
        """One answer."""
        message = {"role": "assistant", "content": result.text, "refusal": None}
        told = self._probabilities(result.written)
        return {"index": place, "message": message, "logprobs": told, "finish_reason": _ENDS[result.stopped]}

    def first(self, place: int) -> Choice:
        """Who speaks."""
        return _delta({"role": "assistant", "content": "", "refusal": None})

    def parts(self, place: int, chunk: StreamChunk) -> list[Choice]:
        """Letters, and why the answer ended."""
        told = self._probabilities(chunk.written)
        found = [_delta({"content": chunk.text}, told)] if chunk.text or told else []
        return found if chunk.result is None else [*found, _delta({}, reason=_ENDS[chunk.result.stopped])]

    def _probabilities(self, written: Sequence[Written]) -> JsonObject | None:
        if not self.body.logprobs:
            return None

        def row(token: Chance) -> JsonObject:
            return {"token": token.text, "logprob": token.log_probability, "bytes": list(token.text.encode())}

        told = [{**row(token), "top_logprobs": list(map(row, token.alternatives))} for token in written]
        return {"content": told, "refusal": None}


def _delta(delta: JsonObject, told: JsonObject | None = None, reason: str | None = None) -> Choice:
    return {"delta": delta, "logprobs": told, "finish_reason": reason}


def _check(prompts: Sequence[Prompt], body: Sampled, limits: Limits) -> None:
    """Refuse what is beyond the limits, each in words."""
    for param, what, count, most in (
        ("prompt", Message("prompts"), len(prompts), limits.prompts),
        ("n", Message("texts"), body.n * len(prompts), limits.choices),
        ("stop", Message("stop strings"), len(body.stops), limits.stops),
        ("max_tokens", Message("tokens"), body.most_tokens, limits.tokens),
        ("logprobs", Message("alternatives"), body.alternatives or 0, limits.alternatives),
    ):
        check_most(count, most, what, param)
    if not prompts:
        raise RefusedError("there is no prompt; give a text, which may be empty", param="prompt")
    length = sum(map(len, prompts))
    check_most(length, limits.prompt_characters, Message("characters"), "prompt", "string_above_max_length")


def _check_context(prompt: Prompt, served: Served) -> None:
    """Refuse a prompt that does not fit into the model's context."""
    context = served.model.config.context_length  # type: ignore[attr-defined]
    count = len(tokenizer_of(served).encode(prompt)) + 1 if isinstance(prompt, str) else len(prompt)
    if count > context:
        raise RefusedError(
            "this model's context is {context:,} tokens, and the prompt has {count:,}; shorten it",
            param="prompt",
            code="context_length_exceeded",
            context=context,
            count=count,
        )


def event_stream(
    parts: AsyncIterator[JsonObject], cancel: Callable[[], None], seconds: float, stack: AsyncExitStack
) -> StreamingResponse:
    """Parts as server-sent events, for so long; the stream holds on to its model until it ends, however it ends."""

    async def events() -> AsyncIterator[str]:
        try:
            async with stack, asyncio.timeout(seconds):
                async for part in parts:
                    yield _event(part)
        except Exception as error:  # in the middle: it is the last of them
            is_late = isinstance(error, TimeoutError)
            yield _event(answer(TooLongError(TOO_LONG, seconds=seconds) if is_late else error)[1])
        else:
            yield "data: [DONE]\n\n"
        finally:
            cancel()

    return StreamingResponse(events(), media_type="text/event-stream; charset=utf-8")


def _event(part: JsonObject) -> str:
    return f"data: {json.dumps(part, ensure_ascii=False)}\n\n"
