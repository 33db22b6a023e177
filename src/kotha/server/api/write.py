"""``/api/write``, ``/api/read``, ``/api/logits``: a text token by token, and all that could have stood at each place.

A prompt is a text, or token ids: who goes on from the middle of what was written sends the ids that stand there, so
that nothing is cut anew. Of ids beyond the context the end is read, as the engine does.
"""

import asyncio
import math
import secrets
import struct
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack
from typing import Any

import numpy as np
import torch
from fastapi import APIRouter, Request, Response
from fastapi.responses import StreamingResponse
from numpy.typing import NDArray
from pydantic import Field

from kotha.errors import KothaError
from kotha.generation.answers import Request as WritingRequest
from kotha.generation.answers import StopReason, Written
from kotha.generation.plain import NO_NUMBERS
from kotha.i18n.message import Message, OnProgress
from kotha.server.api.requests import (
    AboutModel,
    TokenPiece,
    WireAnswer,
    check_ids,
    check_size,
    count_tokens,
    of_model,
    tokenizer_of,
    writer_of,
)
from kotha.server.batching import Batcher, Ticket
from kotha.server.errors import RefusedError, check_most
from kotha.server.model_registry import Served
from kotha.server.openai.writing import event_stream
from kotha.server.state import client_of, state_of
from kotha.server.wire import Drawn, Ids, JsonObject
from kotha.text.tokenizer.prompt import encode_prompt
from kotha.text.tokenizer.tokenizer import Tokenizer
from kotha.text.tokenizer.view import view_token

router = APIRouter(prefix="/api", tags=["Text"])
_SEEDS = 1 << 31
# Pieces that are spelled with a distribution: more than anybody looks at.
_SPELLED = 256
# Positions whose scores are held at a time: with a large vocabulary each is half a megabyte.
_SCORED = 64


class WriteRequest(Drawn):
    """A text to go on with."""

    prompt: str | Ids = ""
    max_tokens: int = Field(40, ge=1)
    seed: int | None = Field(None, ge=0, lt=_SEEDS)
    others: int = Field(8, ge=0)


class SpelledPiece(TokenPiece):
    """A token of the prompt."""

    adds: str


class OtherPiece(TokenPiece):
    """A token that could have stood at a place."""

    probability: float


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
    limits = state.settings.limits
    check_most(body.max_tokens, limits.tokens, Message("tokens"), "max_tokens")
    check_most(body.others, limits.alternatives, Message("alternatives"), "others")
    async with AsyncExitStack() as stack:
        served = await stack.enter_async_context(state.registry.use(body.model))
        batcher = writer_of(served)
        ids = await asyncio.to_thread(_ids, served, batcher, body.prompt)
        seed = secrets.randbelow(_SEEDS) if body.seed is None else body.seed
        how = body.settings(seed)
        one = WritingRequest(prompt=tuple(ids), tokens=body.max_tokens, settings=how, alternatives=body.others)
        ticket = batcher.submit(one, client_of(request))
        news = _news(tokenizer_of(served), ids, seed, ticket)
        return event_stream(news, ticket.cancel, limits.seconds, stack.pop_all())


async def _news(tokenizer: Tokenizer, ids: Sequence[int], seed: int, ticket: Ticket) -> AsyncIterator[JsonObject]:
    """What was read, what is written, and why it ended."""
    characters = tokenizer.characters()

    def spelled(token: int) -> JsonObject:
        return {**vars(view_token(tokenizer, token)), "adds": characters.push(token)}

    yield _event(prompt=list(map(spelled, ids)), ends=_ends(tokenizer), seed=seed)
    async for letters in ticket:
        pieces = [{**spelled(each.id), **_chances(tokenizer, each)} for each in letters.written]
        yield _event(tokens=pieces, letters=letters.text, end=letters.result)


def _event(**told: Any) -> JsonObject:
    return WritingNews.model_validate(told).model_dump(exclude_none=True)


def _chances(tokenizer: Tokenizer, written: Written) -> JsonObject:
    """How likely a token was, and the others at its place."""
    others = [
        {**vars(view_token(tokenizer, each.id)), "probability": math.exp(each.log_probability)}
        for each in written.alternatives
    ]
    probability = math.exp(written.log_probability)
    return {"probability": probability, "rank": written.rank, "above": written.above, "others": others}


class ReadRequest(AboutModel):
    """A text that a model did not write."""

    prompt: str | Ids = ""


class ReadPiece(SpelledPiece):
    """A token of a text that was read; nothing is known of the first, which follows nothing."""

    probability: float | None
    rank: int | None


class ReadTold(WireAnswer):
    """A text as a model reads it: how likely it found each token, given those before."""

    tokens: list[ReadPiece]


@of_model(router, "/read", ReadTold)
def read(served: Served, _: OnProgress, body: ReadRequest) -> JsonObject:
    """How likely a model finds each token of a text, given those before it."""
    batcher, tokenizer = writer_of(served), tokenizer_of(served)
    ids = _ids(served, batcher, body.prompt)
    characters, found = tokenizer.characters(), [(None, None), *_likelihoods(batcher, ids, tokenizer.vocab_size)]
    tokens = [
        vars(view_token(tokenizer, token)) | {"adds": characters.push(token), "probability": probability, "rank": rank}
        for token, (probability, rank) in zip(ids, found, strict=True)
    ]
    return {"tokens": tokens}


class LogitsRequest(ReadRequest):
    """What the next token follows."""


class LogitsHead(WireAnswer):
    """What stands before the numbers."""

    vocabulary: int
    prompt: list[int]
    seen: list[int]
    ends: list[int]
    best: list[TokenPiece]


@router.post(
    "/logits",
    response_class=Response,
    responses={200: {"model": LogitsHead, "content": {"application/octet-stream": {}}}},
)
async def logits(request: Request, body: LogitsRequest) -> Response:
    """The scores of every token that could come next: a head in JSON, then float32, all of it little-endian.

    The head's length comes first, in four bytes; the head is filled up with spaces so that the numbers are aligned.
    """
    state = state_of(request)
    async with state.registry.use(body.model) as served:
        batcher, tokenizer = writer_of(served), tokenizer_of(served)

        def work(_: OnProgress) -> bytes:
            ids = _ids(served, batcher, body.prompt)
            scores = _scores(batcher, ids, tokenizer.vocab_size)
            check_size(served, len(scores), Message("no vocabulary should be as large"))
            return _packed(tokenizer, ids, scores)

        content = await served.turns.run(request, state.settings.limits.seconds, work)
    return Response(content, media_type="application/octet-stream")


def _packed(tokenizer: Tokenizer, ids: Sequence[int], scores: NDArray[np.float32]) -> bytes:
    ends = _ends(tokenizer)
    best = [view_token(tokenizer, int(token)) for token in np.argsort(-scores, kind="stable")[:_SPELLED]]
    head = {"vocabulary": len(scores), "prompt": ids, "seen": sorted(set(ids) - set(ends)), "ends": ends, "best": best}
    told = LogitsHead.model_validate(head).model_dump_json().encode()
    told += b" " * (-len(told) % 4)
    return struct.pack("<I", len(told)) + told + scores.astype("<f4").tobytes()


def _ids(served: Served, batcher: Batcher, prompt: str | Sequence[int]) -> list[int]:
    """The tokens that a prompt is read as."""
    tokenizer, context = tokenizer_of(served), batcher.engine.model.config.context_length
    if isinstance(prompt, str):
        count_tokens(served, prompt, context - 1, "prompt")  # one place is for the mark that begins a document
        ids, _ = encode_prompt(tokenizer, prompt, len(prompt))
    else:
        ids = list(prompt[-context:])
    check_ids(tokenizer, ids, "prompt")
    if not ids:
        raise RefusedError(
            "the prompt is empty, and this vocabulary has no mark to begin with; write one", param="prompt"
        )
    return ids


def _ends(tokenizer: Tokenizer) -> list[int]:
    """The tokens that end a text, as the engine has it."""
    return sorted({tokenizer.special[role] for role in ("eos", "end") if role in tokenizer.special})


def _scores(batcher: Batcher, ids: Sequence[int], vocab_size: int) -> NDArray[np.float32]:
    """The logits of what comes next, of the very weights that write: (V,)."""
    model = batcher.engine.model
    with torch.no_grad():
        given = torch.tensor([ids], device=model.tokens.weight.device)
        scores = model.head(model.hidden(given)[:, -1])[0, :vocab_size].float()  # (V,)
    if not bool(scores.isfinite().all()):
        raise KothaError(NO_NUMBERS)
    found: NDArray[np.float32] = scores.cpu().numpy()
    return found


def _likelihoods(batcher: Batcher, ids: Sequence[int], vocab_size: int) -> list[tuple[float, int]]:
    """The probability and the rank of each token but the first, by the very weights that write."""
    model, found = batcher.engine.model, []
    with torch.no_grad():
        given = torch.tensor([ids], device=model.tokens.weight.device)
        hidden = model.hidden(given)[0, :-1]  # (T, C)
        for start in range(0, len(hidden), _SCORED):
            scores = model.head(hidden[start : start + _SCORED])[:, :vocab_size].float()  # (t, V)
            if not bool(scores.isfinite().all()):
                raise KothaError(NO_NUMBERS)
            those = given[0, start + 1 : start + 1 + len(scores), None]
            mine = scores.gather(-1, those)  # (t, 1)
            shares, ranks = (mine - scores.logsumexp(-1, keepdim=True)).exp(), 1 + (scores > mine).sum(-1)
            found += list(zip(shares[:, 0].tolist(), ranks.tolist(), strict=True))
    return found
