"""A text as letters and tokens (``/api/card``), and token by token with all that could have stood at each place
(``/api/read``, ``write``, ``logits``).

A prompt is a text, or token ids: who goes on from the middle of what was written sends the ids that stand there, so
that nothing is cut anew. Of ids beyond the context the end is read, as the engine does.
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

from kotha.errors import KothaError
from kotha.generation.plain import NO_NUMBERS
from kotha.generation.request import Request as WritingRequest
from kotha.generation.request import StopReason
from kotha.i18n.message import Message
from kotha.server.api.requests import (
    AboutModel,
    Example,
    WireAnswer,
    check_size,
    count_tokens,
    route,
    tokenizer_of,
    writer_of,
)
from kotha.server.batching import Ticket
from kotha.server.errors import RefusedError
from kotha.server.json_requests import MOST_ALTERNATIVES, MOST_TOKENS, Drawn, Ids, JsonObject
from kotha.server.model_registry import Served
from kotha.server.openai.routes import event_stream
from kotha.server.state import client_of, state_of
from kotha.text.akshara import aksharas
from kotha.text.tokenizer.card import measure
from kotha.text.tokenizer.prompt import encode_prompt
from kotha.text.tokenizer.tokenizer import Tokenizer
from kotha.text.tokenizer.view import CutToken, ViewedToken, view_cuts, view_token

router = APIRouter(prefix="/api", tags=["Text"])
_SEEDS = 1 << 31
# Pieces that are spelled with a distribution: more than anybody looks at.
_SPELLED = 256
# Positions whose scores are held at a time: with a large vocabulary each is half a megabyte.
_SCORED = 64


class CardRequest(AboutModel):
    """A text to be cut."""

    text: Annotated[Example, Field(max_length=20_000)]


class TokenizerCard(WireAnswer):
    """A text in pieces, and how well the tokenizer fits it."""

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
def card(served: Served, body: CardRequest) -> JsonObject:
    """Where a tokenizer cuts a text, letter by letter, and its report card."""
    tokenizer = tokenizer_of(served)
    measured = measure(served.name, tokenizer, [body.text])
    pieces = view_cuts(tokenizer, body.text)
    return {**vars(measured), "letters": aksharas(body.text), "pieces": pieces, "round_trip": measured.round_trip == 1}


class WriteRequest(Drawn):
    """A text to go on with."""

    prompt: str | Ids = ""
    max_tokens: int = Field(40, ge=1, le=MOST_TOKENS)
    seed: int | None = Field(None, ge=0, lt=_SEEDS)
    others: int = Field(8, ge=0, le=MOST_ALTERNATIVES)


@dataclass(frozen=True)
class SpelledPiece(ViewedToken):
    """A token of the prompt."""

    adds: str


@dataclass(frozen=True)
class OtherPiece(ViewedToken):
    """A token that could have stood at a place."""

    probability: float


@dataclass(frozen=True)
class WrittenPiece(SpelledPiece):
    """A token that was written."""

    probability: float
    rank: int
    above: float
    others: list[OtherPiece]


class WritingEnd(WireAnswer):
    """Why a text ended."""

    stopped: StopReason
    tokens: int
    tokens_per_second: float


class WritingNews(WireAnswer):
    """One event of the stream: first what was read, then what is written, then why it ended."""

    prompt: list[SpelledPiece] | None = None
    ends: list[int] = Field([])
    seed: int | None = None
    tokens: list[WrittenPiece] = Field([])
    letters: str = ""
    end: WritingEnd | None = None


@router.post(
    "/write",
    response_class=StreamingResponse,
    responses={200: {"model": WritingNews, "content": {"text/event-stream": {}}}},
)
async def write(request: Request, body: WriteRequest) -> StreamingResponse:
    """Go on with a text, as server-sent events: each token, its probability, and what else could have stood there."""
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
    """What was read, what is written, and why it ended."""
    adds = tokenizer.characters().push

    def event(**told: Any) -> JsonObject:
        return WritingNews.model_validate(told).model_dump(exclude_none=True)

    def seen(token: int, log_probability: float) -> JsonObject:
        return {**vars(view_token(tokenizer, token)), "probability": math.exp(log_probability)}

    prompt = [{**vars(view_token(tokenizer, token)), "adds": adds(token)} for token in ids]
    yield event(prompt=prompt, ends=_ends(tokenizer), seed=seed)
    async for letters in ticket:
        tokens = [
            {
                **vars(each),
                **seen(each.id, each.log_probability),
                "adds": adds(each.id),
                "others": [seen(other.id, other.log_probability) for other in each.alternatives],
            }
            for each in letters.written
        ]
        yield event(tokens=tokens, letters=letters.text, end=letters.result)


class ReadRequest(AboutModel):
    """A text that a model did not write."""

    prompt: str | Ids = ""


@dataclass(frozen=True)
class ReadPiece(SpelledPiece):
    """A token of a text that was read; nothing is known of the first, which follows nothing."""

    probability: float | None
    rank: int | None


class ReadTold(WireAnswer):
    """A text as a model reads it: how likely it found each token, given those before."""

    tokens: list[ReadPiece]


@route(router, "/read", ReadTold)
def read(served: Served, body: ReadRequest) -> JsonObject:
    """How likely a model finds each token of a text, given those before it."""
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


class LogitsHead(WireAnswer):
    """What stands before the numbers."""

    vocabulary: int
    prompt: list[int]
    seen: list[int]
    ends: list[int]
    best: list[ViewedToken]


@route(router, "/logits", media="application/octet-stream", model=LogitsHead)
def logits(served: Served, body: ReadRequest) -> Response:
    """The scores of every token that could come next: a head in JSON, then float32, all of it little-endian.

    The head's length comes first, in four bytes; the head is filled up with spaces so that the numbers are aligned.
    """
    ids, tokenizer = _ids(served, body.prompt), tokenizer_of(served)
    (found,) = _scores(served, ids, slice(-1, None))
    scores, ends = found[0].numpy(), _ends(tokenizer)
    check_size(served, len(scores), Message("use a model with a smaller vocabulary"))
    best = [view_token(tokenizer, int(token)) for token in np.argsort(-scores, kind="stable")[:_SPELLED]]
    head = {"vocabulary": len(scores), "prompt": ids, "seen": sorted(set(ids) - set(ends)), "ends": ends, "best": best}
    told = LogitsHead.model_validate(head).model_dump_json().encode()
    told += b" " * (-len(told) % 4)
    return Response(struct.pack("<I", len(told)) + told + scores.astype("<f4").tobytes())


def _ids(served: Served, prompt: str | Sequence[int]) -> list[int]:
    """The tokens that a prompt is read as, by a model that writes."""
    tokenizer, context = tokenizer_of(served), writer_of(served).engine.model.config.context_length
    if isinstance(prompt, str):
        count_tokens(served, prompt, context - 1, "prompt")  # one place is for the mark that begins a document
        ids, _ = encode_prompt(tokenizer, prompt, len(prompt))
    else:
        ids = list(prompt[-context:])
    if not ids:
        empty = "the prompt is empty, and this tokenizer has no token that begins a text; give a prompt"
        raise RefusedError(empty, param="prompt")
    if max(ids) >= tokenizer.vocab_size:
        outside = "token id {wrong} is outside the vocabulary of {vocab_size:,}"
        raise RefusedError(outside, param="prompt", wrong=max(ids), vocab_size=tokenizer.vocab_size)
    return ids


def _ends(tokenizer: Tokenizer) -> list[int]:
    """The tokens that end a text, as the engine has it."""
    return sorted({tokenizer.special[role] for role in ("eos", "end") if role in tokenizer.special})


@torch.no_grad()
def _scores(served: Served, ids: Sequence[int], rows: slice) -> Iterator[Tensor]:
    """The logits of what comes after each of these rows, some at a time, of the very weights that write: (t, V)."""
    model = writer_of(served).engine.model
    hidden = model.hidden(torch.tensor([ids], device=model.tokens.weight.device))[0, rows]  # (T, C)
    for start in range(0, len(hidden), _SCORED):
        scores = model.head(hidden[start : start + _SCORED])[:, : tokenizer_of(served).vocab_size].float()
        if not bool(scores.isfinite().all()):
            raise KothaError(NO_NUMBERS)
        yield scores.cpu()
