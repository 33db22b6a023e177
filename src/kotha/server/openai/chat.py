"""``POST /v1/chat/completions``: a conversation goes on.

A model that was taught to take turns is asked by its own template. One that was not goes on with what was said, as one
text; every answer then says so, in ``kotha.remark``, because a reader would take noise for an opinion.
"""

from collections.abc import AsyncIterator, Sequence
from typing import Any

from kotha.generation.answers import Chance, Result, Written
from kotha.generation.conversation import UNTAUGHT, conversation_prompt
from kotha.server.model_registry import Served
from kotha.server.openai.schema import ChatRequest
from kotha.server.openai.writing import Texts, finish_reason, usage
from kotha.text.tokenizer.chat import Turn

KIND, PART = "chat.completion", "chat.completion.chunk"
_ROLES = {"developer": "system"}


def prompt_of(body: ChatRequest, served: Served) -> tuple[int, ...]:
    """What the model reads: its template, or all that was said as one text; old turns go where it is too long."""
    assert served.batcher is not None, "looked at before"
    turns = [Turn(_ROLES.get(message.role, message.role), message.text) for message in body.messages]
    return tuple(conversation_prompt(served.batcher.engine, turns, body.most_tokens, plain=not served.takes_turns))


def whole(body: ChatRequest, texts: Texts, results: Sequence[Result]) -> dict[str, Any]:
    """The answer in one piece."""
    choices = [
        {
            "index": place,
            "message": {"role": "assistant", "content": result.text, "refusal": None},
            "logprobs": _probabilities(result.written) if body.logprobs else None,
            "finish_reason": finish_reason(result),
        }
        for place, result in enumerate(results)
    ]
    return {**texts.head(KIND), "choices": choices, "usage": usage(results, body.n), **_remark(texts)}


async def parts(body: ChatRequest, texts: Texts) -> AsyncIterator[dict[str, Any]]:
    """The answer as it is written."""
    with_usage = body.stream_options is not None and body.stream_options.include_usage
    more = {"usage": None} if with_usage else {}
    results: dict[int, Result] = {}
    for place in range(len(texts.tickets)):
        first = {"role": "assistant", "content": "", "refusal": None}
        yield {**texts.head(PART), "choices": [_part(place, first, None, None)], **_remark(texts), **more}
    async for place, letters in texts.letters():
        told = _probabilities(letters.written) if body.logprobs else None
        if letters.text or told:
            yield {**texts.head(PART), "choices": [_part(place, {"content": letters.text}, told, None)], **more}
        if letters.result is not None:
            results[place] = letters.result
            reason = finish_reason(letters.result)
            yield {**texts.head(PART), "choices": [_part(place, {}, None, reason)], **more}
    if with_usage:
        in_order = [results[place] for place in sorted(results)]
        yield {**texts.head(PART), "choices": [], "usage": usage(in_order, body.n)}


def _part(place: int, delta: dict[str, Any], told: dict[str, Any] | None, reason: str | None) -> dict[str, Any]:
    return {"index": place, "delta": delta, "logprobs": told, "finish_reason": reason}


def _remark(texts: Texts) -> dict[str, Any]:
    return {} if texts.served.takes_turns else {"kotha": {"remark": str(UNTAUGHT)}}


def _probabilities(written: Sequence[Written]) -> dict[str, Any]:
    def row(token: Chance) -> dict[str, Any]:
        return {"token": token.text, "logprob": token.log_probability, "bytes": list(token.text.encode())}

    others = [[row(other) for other in token.alternatives] for token in written]
    told = [{**row(token), "top_logprobs": some} for token, some in zip(written, others, strict=True)]
    return {"content": told, "refusal": None}
