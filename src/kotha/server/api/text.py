"""A text as letters and tokens (``/api/tokenize``, ``detokenize``), what could follow it (``/api/next``), and how a
tokenizer fits it (``/api/card``).
"""

import itertools
import math

from fastapi import APIRouter, Request
from pydantic import BaseModel, Field

from kotha.generation.answers import Request as WritingRequest
from kotha.generation.settings import SamplingSettings
from kotha.i18n.message import Message, OnProgress
from kotha.server.api.requests import (
    AboutModel,
    Example,
    Likely,
    TokenPiece,
    WireAnswer,
    check_ids,
    count_tokens,
    of_model,
    tokenizer_of,
    writer_of,
)
from kotha.server.errors import check_most
from kotha.server.model_registry import Served
from kotha.server.state import client_of, state_of
from kotha.server.wire import Ids, JsonObject
from kotha.text.akshara import aksharas
from kotha.text.tokenizer.card import measure
from kotha.text.tokenizer.view import ends_inside, view, view_token

router = APIRouter(prefix="/api", tags=["Text"])


class TokenizeRequest(AboutModel):
    """A text to be cut."""

    text: str


class Tokenized(WireAnswer):
    """A text's letters, as a reader counts them, and its tokens."""

    letters: list[str]
    tokens: list[TokenPiece]
    bytes: int


@of_model(router, "/tokenize", Tokenized)
def tokenize(served: Served, _: OnProgress, body: TokenizeRequest) -> JsonObject:
    """A text as letters and as tokens."""
    check_most(len(body.text), served.limits.cut_characters, Message("characters"), "text")
    tokens = view(tokenizer_of(served), body.text)
    return {"letters": aksharas(body.text), "tokens": tokens, "bytes": len(body.text.encode())}


class CardRequest(AboutModel):
    """A text to be cut and measured on."""

    text: Example


class CutPiece(TokenPiece):
    """A token of the text."""

    bytes: int
    cut: bool


class TokenizerCard(WireAnswer):
    """A text in pieces, and how well the tokenizer fits it."""

    kind: str
    vocab_size: int
    letters: list[str]
    pieces: list[CutPiece]
    words: int
    tokens_per_word: float
    bytes_per_token: float
    unknown_rate: float
    split_aksharas: float
    round_trip: bool


@of_model(router, "/card", TokenizerCard)
def card(served: Served, _: OnProgress, body: CardRequest) -> JsonObject:
    """Where a tokenizer cuts a text, letter by letter, and its report card."""
    check_most(len(body.text), served.limits.cut_characters, Message("characters"), "text")
    tokenizer = tokenizer_of(served)
    ids = tokenizer.encode(body.text)
    measured = vars(measure(served.name, tokenizer, [body.text]))
    pieces = [
        vars(view_token(tokenizer, token)) | {"bytes": len(tokenizer.token_bytes(token)), "cut": cut}
        for token, cut in zip(ids, ends_inside(tokenizer, body.text, ids), strict=True)
    ]
    return measured | {"letters": aksharas(body.text), "pieces": pieces, "round_trip": measured["round_trip"] == 1.0}


class DetokenizeRequest(AboutModel):
    """Tokens to be joined."""

    tokens: Ids


class Detokenized(BaseModel):
    """The text of tokens."""

    text: str


@router.post("/detokenize")
async def detokenize(request: Request, body: DetokenizeRequest) -> Detokenized:
    """The text of some tokens."""
    async with state_of(request).registry.use(body.model) as served:
        tokenizer = tokenizer_of(served)
    check_ids(tokenizer, body.tokens, "tokens")
    return Detokenized(text=tokenizer.decode(body.tokens, skip_special=False))


class NextRequest(AboutModel):
    """A text, and how many of the likeliest tokens after it are wanted."""

    text: str = ""
    count: int = Field(10, ge=1, le=100)
    temperature: float = Field(1.0, gt=0, le=2)


class LikelyTokens(BaseModel):
    """The likeliest tokens, best first."""

    tokens: list[Likely]


@router.post("/next")
async def next_token(request: Request, body: NextRequest) -> LikelyTokens:
    """What could come after a text, and how likely the model finds it."""
    async with state_of(request).registry.use(body.model) as served:
        batcher = writer_of(served)
        # One place is for the mark that begins a document.
        count_tokens(served, body.text, batcher.engine.model.config.context_length - 1)
        # Whatever token is written: a text that ended here would tell nothing.
        special = set(tokenizer_of(served).special.values())
        plain = next(token for token in itertools.count() if token not in special)
        forced = SamplingSettings(forced=(plain,), repetition_penalty=None)
        one = WritingRequest(prompt=body.text, tokens=1, settings=forced, alternatives=body.count)
        result = await batcher.submit(one, client_of(request)).result()
    found, temperature = result.written[0].alternatives, body.temperature
    # At another temperature, shares among those that are told.
    best = 0.0 if temperature == 1.0 else max(each.log_probability for each in found)
    weights = [math.exp((each.log_probability - best) / temperature) for each in found]
    total = 1.0 if temperature == 1.0 else sum(weights)
    shares = zip(found, weights, strict=True)
    return LikelyTokens(tokens=[Likely(id=each.id, text=each.text, probability=w / total) for each, w in shares])
