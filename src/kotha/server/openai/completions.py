"""``POST /v1/completions``: a text goes on."""

from collections.abc import AsyncIterator, Sequence
from typing import Any

from kotha.generation.answers import Result, Written
from kotha.server.openai.schema import CompletionRequest
from kotha.server.openai.writing import Texts, finish_reason, usage

KIND = "text_completion"


def whole(body: CompletionRequest, texts: Texts, results: Sequence[Result]) -> dict[str, Any]:
    """The answer in one piece."""
    choices = [
        {
            "index": place,
            "text": _echoed(body, texts, place) + result.text,
            "logprobs": None if body.logprobs is None else _probabilities(result.written, 0),
            "finish_reason": finish_reason(result),
        }
        for place, result in enumerate(results)
    ]
    return {**texts.head(KIND), "choices": choices, "usage": usage(results, body.n)}


async def parts(body: CompletionRequest, texts: Texts) -> AsyncIterator[dict[str, Any]]:
    """The answer as it is written."""
    with_usage = body.stream_options is not None and body.stream_options.include_usage
    more = {"usage": None} if with_usage else {}
    results: dict[int, Result] = {}
    sizes = [0] * len(texts.tickets)  # letters of the tokens told so far, for each text
    if body.echo:
        for place in range(len(texts.tickets)):
            yield {**texts.head(KIND), "choices": [_part(place, _echoed(body, texts, place), None, None)], **more}
    async for place, letters in texts.letters():
        told = None if body.logprobs is None else _probabilities(letters.written, sizes[place])
        sizes[place] += sum(len(token.text) for token in letters.written)
        reason = None if letters.result is None else finish_reason(letters.result)
        if letters.result is not None:
            results[place] = letters.result
        yield {**texts.head(KIND), "choices": [_part(place, letters.text, told, reason)], **more}
    if with_usage:
        in_order = [results[place] for place in sorted(results)]
        yield {**texts.head(KIND), "choices": [], "usage": usage(in_order, body.n)}


def _part(place: int, text: str, told: dict[str, Any] | None, reason: str | None) -> dict[str, Any]:
    return {"index": place, "text": text, "logprobs": told, "finish_reason": reason}


def _echoed(body: CompletionRequest, texts: Texts, place: int) -> str:
    """The prompt before its text, if asked for."""
    if not body.echo:
        return ""
    prompt = body.prompts[place // body.n]
    tokenizer = texts.served.model.tokenizer
    assert tokenizer is not None, "what writes has one"
    return prompt if isinstance(prompt, str) else tokenizer.decode(prompt)


def _probabilities(written: Sequence[Written], offset: int) -> dict[str, Any]:
    """How likely each token was, and what else could have stood there."""
    offsets = []
    for token in written:
        offsets.append(offset)
        offset += len(token.text)
    return {
        "tokens": [token.text for token in written],
        "token_logprobs": [token.log_probability for token in written],
        "top_logprobs": [{other.text: other.log_probability for other in token.alternatives} for token in written],
        "text_offset": offsets,
    }
