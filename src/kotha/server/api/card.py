"""``/api/card``: how a model's tokenizer cuts a text, and its report card on it."""

from fastapi import APIRouter, Request, Response
from pydantic import Field

from kotha.i18n.message import OnProgress
from kotha.server.api.requests import EXAMPLE, AboutModel, WireAnswer, looked, tokenizer_of
from kotha.server.errors import RefusedError
from kotha.server.model_registry import Served
from kotha.server.state import state_of
from kotha.text.akshara import aksharas
from kotha.text.tokenizer.card import measure
from kotha.text.tokenizer.view import ends_inside, view_token

router = APIRouter(prefix="/api", tags=["Text"])


class CardRequest(AboutModel):
    """A text to be cut and measured on."""

    text: str = Field(examples=[EXAMPLE], description="As it is typed; the tokenizer makes it uniform itself.")


class CutPiece(WireAnswer):
    """A token of the text."""

    id: int = Field(description="Its number in the vocabulary.")
    text: str = Field(description="How it reads: spaces as ␣, a sign without its letter on ◌, bytes as hex.")
    part: bool = Field(description="Whether it is only part of a character.")
    bytes: int = Field(description="How many bytes of text it stands for.")
    cut: bool = Field(description="Whether its end falls inside a letter.")


class TokenizerCard(WireAnswer):
    """A text in pieces, and how well the tokenizer fits it."""

    kind: str = Field(description="How it was made: unigram, bpe, wordpiece, …")
    vocab_size: int = Field(description="How many different tokens there are.")
    letters: list[str] = Field(description="The text as a reader counts letters.")
    pieces: list[CutPiece] = Field(description="The tokens in their order.")
    words: int = Field(description="What white space separates.")
    tokens_per_word: float = Field(description="Lower is a longer context and a faster model.")
    bytes_per_token: float = Field(description="Bytes of text that a token stands for, in the mean.")
    unknown_rate: float = Field(description="Share of tokens that lost what they stood for.")
    split_aksharas: float = Field(description="Share of boundaries that fall inside a letter.")
    round_trip: bool = Field(description="Whether the tokens give exactly the text back.")


@router.post("/card", response_model=TokenizerCard)
async def card(request: Request, body: CardRequest) -> Response:
    """Where a tokenizer cuts a text, letter by letter, and its report card."""
    most = state_of(request).settings.limits.cut_characters
    if len(body.text) > most:
        raise RefusedError(
            "the text is longer than {most:,} characters; cut a part of it at a time", param="text", most=most
        )

    def work(served: Served, _: OnProgress) -> TokenizerCard:
        tokenizer = tokenizer_of(served)
        ids = tokenizer.encode(body.text)
        measured = measure(served.name, tokenizer, [body.text])
        pieces = [
            CutPiece(id=token, text=seen.text, part=seen.is_part, bytes=len(tokenizer.token_bytes(token)), cut=cut)
            for token, cut in zip(ids, ends_inside(tokenizer, body.text, ids), strict=True)
            for seen in [view_token(tokenizer, token)]
        ]
        return TokenizerCard(
            kind=measured.kind,
            vocab_size=measured.vocab_size,
            letters=aksharas(body.text),
            pieces=pieces,
            words=measured.words,
            tokens_per_word=measured.tokens_per_word,
            bytes_per_token=measured.bytes_per_token,
            unknown_rate=measured.unknown_rate,
            split_aksharas=measured.split_aksharas,
            round_trip=measured.round_trip == 1.0,
        )

    return await looked(request, body.model, work)
