"""Tokenization and token probabilities.

``/api/card`` tokenizes a text. The other routes return token probabilities: for a given text (``/api/read``), for
generated text (``/api/write``), and for the next token (``/api/logits``).

A prompt is a text or a list of token ids. With ids, a client can continue a text at any token without tokenizing it
again. If the ids do not fit into the context, only the last ones are read, as in the engine.
"""

import asyncio
import math
import secrets
import struct
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np
import torch
from fastapi import APIRouter, Request, Response
from fastapi.responses import StreamingResponse
from pydantic import Field
from torch import Tensor

from kotha.generation.request import Request as WritingRequest
from kotha.generation.request import StopReason
from kotha.i18n.message import Message
from kotha.model.evaluating import check_finite, overflow_as_nan
from kotha.server.api.requests import (
    AboutModel,
    Example,
    WireResponse,
    check_size,
    count_tokens,
    route,
    tokenizer_of,
    writer_of,
)
from kotha.server.batching import Ticket
from kotha.server.errors import RefusedError
from kotha.server.json_requests import MOST_ALTERNATIVES, MOST_TOKENS, JsonObject, SamplingFields, TextOrIds
from kotha.server.model_registry import ServedModel
from kotha.server.openai.routes import event_stream
from kotha.server.state import client_of, state_of
from kotha.text.akshara import aksharas
from kotha.text.tokenizer.card import measure
from kotha.text.tokenizer.prompt import encode_prompt
from kotha.text.tokenizer.tokenizer import Tokenizer
from kotha.text.tokenizer.view import CutToken, ViewedToken, view_cuts, view_token

router = APIRouter(prefix="/api", tags=["Text"])
_SEEDS = 1 << 31
# Number of most likely tokens returned with their display forms.
_SPELLED = 256
# Number of positions whose scores are in memory at a time; with a large vocabulary, each takes half a megabyte.
_SCORED = 64


class CardRequest(AboutModel):
    """A text to tokenize."""

    text: Annotated[Example, Field(max_length=20_000)]


class TokenizerCard(WireResponse):
    """The tokens of a text, and how well the tokenizer fits it."""

    kind: str
    vocab_size: int
    letters: list[str]
    pieces: list[CutToken]
    words: int
    tokens_per_word: float
    bytes_per_token: float
    unknown_rate: float
    split_aksharas: float
    round_trip: bool


@route(router, "/card", TokenizerCard)
def card(served: ServedModel, body: CardRequest) -> JsonObject:
    """Tokenize a text; return its grapheme clusters, its tokens, and tokenizer metrics."""
    tokenizer = tokenizer_of(served)
    measured = measure(served.name, tokenizer, [body.text])
    pieces = view_cuts(tokenizer, body.text)
    return {**vars(measured), "letters": aksharas(body.text), "pieces": pieces, "round_trip": measured.round_trip == 1}


class WriteRequest(SamplingFields):
    """A prompt to continue."""

    prompt: TextOrIds = ""
    max_tokens: int = Field(40, ge=1, le=MOST_TOKENS)
    seed: int | None = Field(None, ge=0, lt=_SEEDS)
    others: int = Field(8, ge=0, le=MOST_ALTERNATIVES)


@dataclass(frozen=True)
class SpelledToken(ViewedToken):
    """A token in the prompt."""

    adds: str


@dataclass(frozen=True)
class AlternativeToken(ViewedToken):
    """An alternative token."""

    probability: float


@dataclass(frozen=True)
class GeneratedTokenEvent(SpelledToken):
    """A generated token."""

    probability: float
    rank: int
    above: float
    others: list[AlternativeToken]


class GenerationEnd(WireResponse):
    """The end of the stream, with the reason why the text ended."""

    stopped: StopReason
    tokens: int
    tokens_per_second: float


class GenerationEvent(WireResponse):
    """An event in the stream: first the prompt, then generated tokens, then the end."""

    prompt: list[SpelledToken] | None = None
    ends: list[int] = Field([])
    seed: int | None = None
    tokens: list[GeneratedTokenEvent] = Field([])
    letters: str = ""
    end: GenerationEnd | None = None


@router.post(
    "/write",
    response_class=StreamingResponse,
    responses={200: {"model": GenerationEvent, "content": {"text/event-stream": {}}}},
)
async def write(request: Request, body: WriteRequest) -> StreamingResponse:
    """Continue a text, sending each token with its probability and the alternatives as a server-sent event."""
    state = state_of(request)
    async with AsyncExitStack() as stack:
        served = await stack.enter_async_context(state.registry.use(body.model))
        ids = await asyncio.to_thread(_ids, served, body.prompt)
        seed = secrets.randbelow(_SEEDS) if body.seed is None else body.seed
        how = body.settings(seed)
        one = WritingRequest(prompt=tuple(ids), tokens=body.max_tokens, settings=how, alternatives=body.others)
        ticket = writer_of(served).submit(one, client_of(request))
        news = _news(tokenizer_of(served), ids, seed, ticket)
        return event_stream(news, ticket.cancel, state.settings.limits.seconds, stack.pop_all())


async def _news(tokenizer: Tokenizer, ids: Sequence[int], seed: int, ticket: Ticket) -> AsyncIterator[JsonObject]:
    """Yield the events of the stream."""
    adds = tokenizer.characters().push

    def event(**fields: Any) -> JsonObject:
        return GenerationEvent.model_validate(fields).model_dump(exclude_none=True)

    def describe(token: int, log_probability: float) -> JsonObject:
        return {**vars(view_token(tokenizer, token)), "probability": math.exp(log_probability)}

    prompt = [{**vars(view_token(tokenizer, token)), "adds": adds(token)} for token in ids]
    yield event(prompt=prompt, ends=_ends(tokenizer), seed=seed)
    async for letters in ticket:
        tokens = [
            {
                **vars(each),
                **describe(each.id, each.log_probability),
                "adds": adds(each.id),
                "others": [describe(other.id, other.log_probability) for other in each.alternatives],
            }
            for each in letters.written
        ]
        yield event(tokens=tokens, letters=letters.text, end=letters.result)


class ReadRequest(AboutModel):
    """A text to score."""

    prompt: TextOrIds = ""


@dataclass(frozen=True)
class ScoredToken(SpelledToken):
    """A token in a given text; the first has no probability, because no token precedes it."""

    probability: float | None
    rank: int | None


class ReadResponse(WireResponse):
    """The tokens in a text, each with its probability given the tokens before it."""

    tokens: list[ScoredToken]


@route(router, "/read", ReadResponse)
def read(served: ServedModel, body: ReadRequest) -> JsonObject:
    """Return the probability of each token in a text, given the tokens before it."""
    ids, tokenizer = _ids(served, body.prompt), tokenizer_of(served)
    found: list[tuple[float | None, int | None]] = [(None, None)]
    for scores in _scores(served, ids, slice(-1)):
        those = torch.tensor(ids[len(found) : len(found) + len(scores)])[:, None]
        mine = scores.gather(-1, those)  # (t, 1)
        shares, ranks = (mine - scores.logsumexp(-1, keepdim=True)).exp(), 1 + (scores > mine).sum(-1)
        found += zip(shares[:, 0].tolist(), ranks.tolist(), strict=True)
    adds = tokenizer.characters().push
    tokens = [
        vars(view_token(tokenizer, token)) | {"adds": adds(token), "probability": probability, "rank": rank}
        for token, (probability, rank) in zip(ids, found, strict=True)
    ]
    return {"tokens": tokens}


class LogitsHeader(WireResponse):
    """The JSON header before the scores."""

    vocabulary: int
    prompt: list[int]
    seen: list[int]
    ends: list[int]
    best: list[ViewedToken]


@route(router, "/logits", media="application/octet-stream", model=LogitsHeader)
def logits(served: ServedModel, body: ReadRequest) -> Response:
    """Return a score for every possible next token: a JSON header, then little-endian float32.

    The header is preceded by its length in four bytes, and is padded with spaces to align the scores.
    """
    ids, tokenizer = _ids(served, body.prompt), tokenizer_of(served)
    (found,) = _scores(served, ids, slice(-1, None))
    scores, ends = found[0].numpy(), _ends(tokenizer)
    check_size(served, len(scores), Message("use a model with a smaller vocabulary"))
    best = [view_token(tokenizer, int(token)) for token in np.argsort(-scores, kind="stable")[:_SPELLED]]
    head = {"vocabulary": len(scores), "prompt": ids, "seen": sorted(set(ids) - set(ends)), "ends": ends, "best": best}
    header = LogitsHeader.model_validate(head).model_dump_json().encode()
    header += b" " * (-len(header) % 4)
    return Response(struct.pack("<I", len(header)) + header + scores.astype("<f4").tobytes())


def _ids(served: ServedModel, prompt: str | Sequence[int]) -> list[int]:
    """Return the token ids in a prompt, for a model that generates text."""
    tokenizer, context = tokenizer_of(served), writer_of(served).engine.model.config.context_length
    if isinstance(prompt, str):
        count_tokens(served, prompt, context - 1, "prompt")  # one position is for the token that begins a document
        ids, _ = encode_prompt(tokenizer, prompt, len(prompt))
    else:
        ids = list(prompt[-context:])
    if not ids:
        empty = "the prompt is empty, and this tokenizer has no start-of-text token; give a prompt"
        raise RefusedError(empty, param="prompt")
    if max(ids) >= tokenizer.vocab_size:
        outside = "token id {wrong} is outside the vocabulary of {vocab_size:,}"
        raise RefusedError(outside, param="prompt", wrong=max(ids), vocab_size=tokenizer.vocab_size)
    return ids


def _ends(tokenizer: Tokenizer) -> list[int]:
    """Return the tokens that end a text, which are the same as in the engine."""
    return sorted({tokenizer.special[role] for role in ("eos", "end") if role in tokenizer.special})


@torch.no_grad()
def _scores(served: ServedModel, ids: Sequence[int], rows: slice) -> Iterator[Tensor]:
    """Yield the next-token logits for these rows in chunks of (t, V), with the weights used to generate text."""
    model = writer_of(served).engine.model
    with overflow_as_nan(model):
        hidden = model.hidden(torch.tensor([ids], device=model.tokens.weight.device))[0, rows]  # (T, C)
    for start in range(0, len(hidden), _SCORED):
        scores = model.head(hidden[start : start + _SCORED])[:, : tokenizer_of(served).vocab_size].float()
        yield check_finite(scores).cpu()
