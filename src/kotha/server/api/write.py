"""``/api/write``, ``/api/read``, ``/api/logits``: a text token by token, and all that could have stood at each place.

A prompt is a text, or token ids: who goes on from the middle of what was written sends the ids that stand there, so
that nothing is cut anew. Of ids beyond the context the end is read, as the engine does.
"""

import asyncio
import json
import math
import secrets
import struct
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack
from typing import Annotated, Any

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
from kotha.generation.settings import SamplingSettings
from kotha.i18n.message import Message, OnProgress
from kotha.server.api.requests import (
    AboutModel,
    TokenPiece,
    WireAnswer,
    checked_size,
    count_tokens,
    looked,
    tokenizer_of,
)
from kotha.server.batching import Batcher, Ticket
from kotha.server.errors import RefusedError
from kotha.server.model_registry import Served
from kotha.server.openai.writing import events, in_time
from kotha.server.state import client_of, state_of
from kotha.server.wire import Ids
from kotha.text.tokenizer.prompt import encode_prompt
from kotha.text.tokenizer.tokenizer import Tokenizer
from kotha.text.tokenizer.view import view_token

router = APIRouter(prefix="/api", tags=["Text"])

_USUAL = SamplingSettings()
_SEEDS = 1 << 31
# Pieces that are spelled with a distribution: more than anybody looks at.
_SPELLED = 256
# Positions whose scores are held at a time: with a large vocabulary each is half a megabyte.
_SCORED = 64

TextOrIds = Annotated[str | Ids, Field(description="What stands so far: a text, or token ids, which are taken as is.")]


class WriteRequest(AboutModel):
    """A text to go on with."""

    prompt: TextOrIds = ""
    max_tokens: int = Field(40, ge=1, description="Written at most.")
    temperature: float = Field(_USUAL.temperature, ge=0, le=2, description="0 always takes the best token.")
    top_k: int | None = Field(_USUAL.top_k, ge=1, description="Draw among so many of the best tokens.")
    top_p: float | None = Field(None, gt=0, le=1, description="Draw among the fewest best with this probability.")
    min_p: float | None = Field(
        None, gt=0, le=1, description="Draw among those at least this share as likely as the best."
    )
    repetition_penalty: float | None = Field(
        _USUAL.repetition_penalty, gt=0, le=10, description="Above 1, what was said becomes less likely."
    )
    seed: int | None = Field(None, ge=0, lt=_SEEDS, description="The same seed gives the same text.")
    others: int = Field(8, ge=0, description="So many of the likeliest tokens are told at each place.")

    def settings(self, seed: int) -> SamplingSettings:
        """How it is drawn with this seed."""
        return SamplingSettings(
            temperature=self.temperature,
            top_k=self.top_k,
            top_p=self.top_p,
            min_p=self.min_p,
            repetition_penalty=self.repetition_penalty,
            seed=seed,
        )


class SpelledPiece(TokenPiece):
    """A token of the prompt."""

    adds: str = Field(description="The characters of the text that it completes; none where the next one does.")


class OtherPiece(TokenPiece):
    """A token that could have stood at a place."""

    probability: float = Field(description="As the model gave it, before any setting acted.")


class WrittenPiece(SpelledPiece):
    """A token that was written."""

    probability: float = Field(description="As the model gave it, before any setting acted.")
    rank: int = Field(description="1: no other was likelier.")
    above: float = Field(description="The probability of all that were likelier, together.")
    others: list[OtherPiece] = Field(description="The likeliest at its place, best first; it may be among them.")


class ReadRequest(AboutModel):
    """A text that a model did not write."""

    prompt: TextOrIds = ""


class ReadPiece(SpelledPiece):
    """A token of a text that was read; nothing is known of the first, which follows nothing."""

    probability: float | None = Field(description="As the model gave it to what stands there.")
    rank: int | None = Field(description="1: no other was likelier.")


class ReadTold(WireAnswer):
    """A text as a model reads it: how likely it found each token, given those before."""

    tokens: list[ReadPiece] = Field(description="In their order, the mark that begins a document among them.")


class WritingEnd(WireAnswer):
    """Why a text ended."""

    stopped: StopReason = Field(description="The model ended it, or its length was reached.")
    tokens: int = Field(description="How many were written.")
    tokens_per_second: float = Field(description="From its place in the batch on.")


class WritingNews(WireAnswer):
    """One event of the stream: first what was read, then what is written, then why it ended."""

    prompt: list[SpelledPiece] | None = Field(
        default=None, description="With the first event: the prompt as it was read."
    )
    ends: list[int] = Field(default=[], description="With the first event: the tokens that end a text.")
    seed: int | None = Field(default=None, description="With the first event: the seed that is drawn by.")
    tokens: list[WrittenPiece] = Field(default=[], description="Those that were written since the last event.")
    letters: str = Field(default="", description="The letters that are certain now: no sign can change them any more.")
    end: WritingEnd | None = Field(default=None, description="With the last event.")


class LogitsRequest(AboutModel):
    """What the next token follows."""

    prompt: TextOrIds = ""


class LogitsHead(WireAnswer):
    """What stands before the numbers."""

    vocabulary: int = Field(description="How many numbers follow.")
    prompt: list[int] = Field(description="The tokens that the next one follows.")
    seen: list[int] = Field(description="Those of them that a repetition penalty counts, once each.")
    ends: list[int] = Field(description="The tokens that end a text.")
    best: list[TokenPiece] = Field(description=f"The likeliest {_SPELLED}, best first, as they read.")


@router.post(
    "/write",
    response_class=StreamingResponse,
    responses={200: {"model": WritingNews, "content": {"text/event-stream": {}}}},
)
async def write(request: Request, body: WriteRequest) -> StreamingResponse:
    """Go on with a text, as server-sent events: each token, its probability, and what else could have stood there."""
    state = state_of(request)
    limits = state.settings.limits
    for param, count, most in (
        ("max_tokens", body.max_tokens, limits.tokens),
        ("others", body.others, limits.alternatives),
    ):
        if count > most:
            raise RefusedError(
                "{field}={count:,} is more than {most:,}, which is the most",
                param=param,
                field=param,
                count=count,
                most=most,
            )
    async with AsyncExitStack() as stack:
        served = await stack.enter_async_context(state.registry.use(body.model))
        batcher = _writer(served)
        ids = await asyncio.to_thread(_ids, served, batcher, body.prompt)
        seed = secrets.randbelow(_SEEDS) if body.seed is None else body.seed
        how = body.settings(seed)
        one = WritingRequest(prompt=tuple(ids), tokens=body.max_tokens, settings=how, alternatives=body.others)
        ticket = batcher.submit(one, client_of(request))
        news = in_time(_news(tokenizer_of(served), ids, seed, ticket), limits.seconds)
        return StreamingResponse(_held(news, ticket, stack.pop_all()), media_type="text/event-stream; charset=utf-8")


@router.post("/read", response_model=ReadTold)
async def read(request: Request, body: ReadRequest) -> Response:
    """How likely a model finds each token of a text, given those before it."""

    def work(served: Served, _: OnProgress) -> ReadTold:
        batcher = _writer(served)
        tokenizer, ids = tokenizer_of(served), _ids(served, batcher, body.prompt)
        characters, found = tokenizer.characters(), [(None, None), *_likelihoods(batcher, ids, tokenizer.vocab_size)]
        return ReadTold(
            tokens=[
                ReadPiece(**_viewed(tokenizer, token), adds=characters.push(token), probability=probability, rank=rank)
                for token, (probability, rank) in zip(ids, found, strict=True)
            ]
        )

    return await looked(request, body.model, work)


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
        batcher = _writer(served)

        def work(_: OnProgress) -> bytes:
            ids = _ids(served, batcher, body.prompt)
            scores = _scores(batcher, ids, tokenizer_of(served).vocab_size)
            checked_size(len(scores), state.settings.limits, Message("no vocabulary should be as large"))
            return _packed(_head(tokenizer_of(served), ids, scores), scores)

        content = await served.turns.run(request, state.settings.limits.seconds, work)
    return Response(content, media_type="application/octet-stream")


def _writer(served: Served) -> Batcher:
    """The batch of a model that writes."""
    if served.batcher is None:
        family = served.model.config.family
        raise RefusedError(
            "{name} is a {family} and writes no text",
            param="model",
            code="model_not_found",
            name=served.name,
            family=family,
        )
    return served.batcher


def _ids(served: Served, batcher: Batcher, prompt: str | Sequence[int]) -> list[int]:
    """The tokens that a prompt is read as."""
    tokenizer, context = tokenizer_of(served), batcher.engine.model.config.context_length
    if isinstance(prompt, str):
        count_tokens(served, prompt, context - 1, "prompt")  # one place is for the mark that begins a document
        ids, _ = encode_prompt(tokenizer, prompt, len(prompt))
    else:
        ids = list(prompt[-context:])
    wrong = next((token for token in ids if token >= tokenizer.vocab_size), None)
    if wrong is not None:
        raise RefusedError(
            "token id {wrong} is outside the vocabulary of {vocab_size:,}",
            param="prompt",
            wrong=wrong,
            vocab_size=tokenizer.vocab_size,
        )
    if not ids:
        raise RefusedError(
            "the prompt is empty, and this vocabulary has no mark to begin with; write one", param="prompt"
        )
    return ids


async def _held(news: AsyncIterator[dict[str, Any]], ticket: Ticket, stack: AsyncExitStack) -> AsyncIterator[str]:
    """A stream that holds on to its model until it ends, however it ends."""
    async with stack:
        try:
            async for event in events(news):
                yield event
        finally:
            ticket.cancel()


async def _news(tokenizer: Tokenizer, ids: Sequence[int], seed: int, ticket: Ticket) -> AsyncIterator[dict[str, Any]]:
    """What was read, what is written, and why it ended."""
    characters = tokenizer.characters()

    def spelled(token: int) -> dict[str, Any]:
        return {**_viewed(tokenizer, token), "adds": characters.push(token)}

    read = [SpelledPiece(**spelled(token)) for token in ids]
    yield WritingNews(prompt=read, ends=_ends(tokenizer), seed=seed).model_dump(exclude_none=True)
    async for letters in ticket:
        pieces = [WrittenPiece(**spelled(each.id), **_chances(tokenizer, each)) for each in letters.written]
        news = WritingNews(tokens=pieces, letters=letters.text)
        if letters.result is not None:
            result = letters.result
            news.end = WritingEnd(
                stopped=result.stopped, tokens=result.tokens, tokens_per_second=result.tokens_per_second
            )
        yield news.model_dump(exclude_none=True)


def _ends(tokenizer: Tokenizer) -> list[int]:
    """The tokens that end a text, as the engine has it."""
    return sorted({tokenizer.special[role] for role in ("eos", "end") if role in tokenizer.special})


def _viewed(tokenizer: Tokenizer, token: int) -> dict[str, Any]:
    piece = view_token(tokenizer, token)
    return {"id": piece.id, "text": piece.text, "part": piece.is_part}


def _chances(tokenizer: Tokenizer, written: Written) -> dict[str, Any]:
    """How likely a token was, and the others at its place."""
    others = [
        OtherPiece(**_viewed(tokenizer, each.id), probability=math.exp(each.log_probability))
        for each in written.alternatives
    ]
    probability = math.exp(written.log_probability)
    return {"probability": probability, "rank": written.rank, "above": written.above, "others": others}


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


def _head(tokenizer: Tokenizer, ids: Sequence[int], scores: NDArray[np.float32]) -> LogitsHead:
    ends = _ends(tokenizer)
    best = np.argsort(-scores, kind="stable")[:_SPELLED]
    return LogitsHead(
        vocabulary=len(scores),
        prompt=list(ids),
        seen=sorted(set(ids) - set(ends)),
        ends=ends,
        best=[TokenPiece(**_viewed(tokenizer, int(token))) for token in best],
    )


def _packed(head: LogitsHead, scores: NDArray[np.float32]) -> bytes:
    told = json.dumps(head.model_dump(), ensure_ascii=False).encode()
    told += b" " * (-len(told) % 4)
    return struct.pack("<I", len(told)) + told + scores.astype("<f4").tobytes()
