"""``/api/tokenize``, ``/api/detokenize``, ``/api/next``: a text as letters and tokens, and what could follow it."""

import itertools
import math

from fastapi import APIRouter, Request, Response
from pydantic import BaseModel, Field

from kotha.generation.answers import Chance
from kotha.generation.answers import Request as WritingRequest
from kotha.generation.settings import SamplingSettings
from kotha.i18n.message import OnProgress
from kotha.server.api.requests import AboutModel, TokenPiece, count_tokens, looked, tokenizer_of
from kotha.server.errors import RefusedError, UnsupportedByModelError
from kotha.server.model_registry import Served
from kotha.server.state import client_of, state_of
from kotha.server.wire import Ids
from kotha.text.akshara import aksharas
from kotha.text.tokenizer.view import view

router = APIRouter(prefix="/api", tags=["Text"])


class TokenizeRequest(AboutModel):
    """A text to be cut."""

    text: str = Field(description="As it is; the tokenizer normalizes it.")


class Tokenized(BaseModel):
    """A text's letters, as a reader counts them, and its tokens."""

    letters: list[str] = Field(description="As a reader counts them (grapheme clusters).")
    tokens: list[TokenPiece] = Field(description="As the model reads them.")
    bytes: int = Field(description="Of the text in UTF-8.")


class DetokenizeRequest(AboutModel):
    """Tokens to be joined."""

    tokens: Ids = Field(description="Their ids, in order.")


class Detokenized(BaseModel):
    """The text of tokens."""

    text: str = Field(description="Special tokens are spelled out.")


class NextRequest(AboutModel):
    """A text, and how many of the likeliest tokens after it are wanted."""

    text: str = Field("", description="What comes before; an empty one asks how a text begins.")
    count: int = Field(10, ge=1, le=100, description="Of the likeliest tokens.")
    temperature: float = Field(
        1.0, gt=0, le=2, description="1: as the model says; any other: shares among the tokens that are told."
    )


class Likely(BaseModel):
    """A token that could come, and how likely."""

    id: int = Field(description="Its number in the vocabulary.")
    text: str = Field(description="As it reads.")
    probability: float = Field(description="From 0 to 1.")


class LikelyTokens(BaseModel):
    """The likeliest tokens, best first."""

    tokens: list[Likely] = Field(description="The likeliest first.")


@router.post("/tokenize", response_model=Tokenized)
async def tokenize(request: Request, body: TokenizeRequest) -> Response:
    """A text as letters and as tokens."""
    most = state_of(request).settings.limits.cut_characters
    if len(body.text) > most:
        raise RefusedError(
            "the text is longer than {most:,} characters; cut a part of it at a time", param="text", most=most
        )

    def work(served: Served, _: OnProgress) -> Tokenized:
        pieces = view(tokenizer_of(served), body.text)
        tokens = [TokenPiece(id=piece.id, text=piece.text, part=piece.is_part) for piece in pieces]
        return Tokenized(letters=aksharas(body.text), tokens=tokens, bytes=len(body.text.encode()))

    return await looked(request, body.model, work)


@router.post("/detokenize")
async def detokenize(request: Request, body: DetokenizeRequest) -> Detokenized:
    """The text of some tokens."""
    state = state_of(request)
    async with state.registry.use(body.model) as served:
        tokenizer = tokenizer_of(served)
    wrong = next((token for token in body.tokens if not 0 <= token < tokenizer.vocab_size), None)
    if wrong is not None:
        raise RefusedError(
            "token id {wrong} is outside the vocabulary of {vocab_size:,}",
            param="tokens",
            wrong=wrong,
            vocab_size=tokenizer.vocab_size,
        )
    return Detokenized(text=tokenizer.decode(body.tokens, skip_special=False))


@router.post("/next")
async def next_token(request: Request, body: NextRequest) -> LikelyTokens:
    """What could come after a text, and how likely the model finds it."""
    state = state_of(request)
    async with state.registry.use(body.model) as served:
        if served.batcher is None:
            raise UnsupportedByModelError(
                "{name} is a {family} and writes no text", name=served.name, family=served.model.config.family
            )
        context = served.batcher.engine.model.config.context_length
        count_tokens(served, body.text, context - 1)  # one place is for the mark that begins a document
        # Whatever token is written: a text that ended here would tell nothing.
        special = set(tokenizer_of(served).special.values())
        plain = next(token for token in itertools.count() if token not in special)
        forced = SamplingSettings(forced=(plain,), repetition_penalty=None)
        one = WritingRequest(prompt=body.text, tokens=1, settings=forced, alternatives=body.count)
        result = await served.batcher.submit(one, client_of(request)).result()
    return LikelyTokens(tokens=_at_temperature(list(result.written[0].alternatives), body.temperature))


def _at_temperature(found: list[Chance], temperature: float) -> list[Likely]:
    """Probabilities as a temperature makes them, among those that are told."""
    best = 0.0 if temperature == 1.0 else max(each.log_probability for each in found)
    weights = [math.exp((each.log_probability - best) / temperature) for each in found]
    total = 1.0 if temperature == 1.0 else sum(weights)
    return [
        Likely(id=each.id, text=each.text, probability=weight / total)
        for each, weight in zip(found, weights, strict=True)
    ]
