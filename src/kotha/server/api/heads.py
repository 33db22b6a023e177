"""What a model's parts hold by themselves: each head, and what it is worth (``/api/inside/heads``); some of them
switched off (``silence``); words as points (``embeddings``).
"""

from dataclasses import replace

from fastapi import APIRouter
from pydantic import Field

from kotha.api.asked import continuation, read_asked
from kotha.artifacts.run_folder import find_data, run_config
from kotha.errors import DataError
from kotha.i18n.message import Message, OnProgress
from kotha.inside.embeddings import Dot, Neighbour, nearest_words, word_map
from kotha.inside.heads.importance import without_heads
from kotha.inside.heads.measuring import TextSource
from kotha.inside.heads.overlap import Likeness, Sharing
from kotha.inside.heads.study import heads_view
from kotha.inside.view import to_json
from kotha.model.bert import BERT
from kotha.model.gpt import GPT
from kotha.server.api.requests import (
    AboutModel,
    Heads,
    Looked,
    LookRequest,
    ToldAnswer,
    WireAnswer,
    check_family,
    check_reads,
    check_texts,
    read_as,
    route,
    watching,
)
from kotha.server.errors import RefusedError, check_most, refusing
from kotha.server.model_registry import Served
from kotha.server.wire import JsonObject

router = APIRouter(prefix="/api", tags=["Inside"])
_TOKENS = 512


class HeadsRequest(AboutModel):
    """The text to study heads on; left out, what the run held out, if its data are still there."""

    text: str | None = None
    tokens: int | None = Field(None, ge=9, le=1_000_000)


class HeadStudied(WireAnswer):
    """A head: its kind, the evidence in words, and what the loss rises by without it."""

    head: str
    kind: str
    score: float | None
    threshold: float | None
    evidence: str
    example: str
    scores: dict[str, float]
    distance: float
    ablation_nats: float
    gradient_nats: float
    symmetry: float
    most_similar: Likeness | None


class HeadsStudied(WireAnswer):
    """Every head, and the loss of the whole model on this text."""

    text: str
    loss_nats: float
    passages: int
    tokens: int
    heads: list[HeadStudied]
    sharing: list[Sharing]


@route(router, "/inside/heads", HeadsStudied, shares=True)  # between two heads nothing is hooked in
def heads(served: Served, on_progress: OnProgress, body: HeadsRequest) -> JsonObject:
    """What each head does, how much it matters, and which one it resembles; a pass over the text for each head."""
    check_reads(served)
    only = Message("heads are measured on a text, by a GPT or a BERT")
    check_family(served, isinstance(served.model.model, GPT | BERT), only)
    most, path = served.limits.studied, served.model.path
    tokens = body.tokens or min(_TOKENS, most)
    check_most(tokens, most, Message("tokens"), "tokens")
    if body.text is not None:
        check_texts(served, [body.text], "text")
    elif path is None or find_data(run_config(path), path) is None:
        raise RefusedError("{name} knows no data that is still there; give a text", param="text", name=served.name)
    source = TextSource(text=body.text, run=path, tokens=tokens)
    with refusing(DataError, param="text"):  # an empty text
        view = heads_view(served.apart, source, name=served.name, weights=served.head_weights, on_progress=on_progress)
    return {**view.to_dict(), "text": "the text" if body.text is not None else "what the run held out"}


class SilenceRequest(LookRequest):
    """Which heads, and what shall be read; a GPT may also go on with it."""

    heads: Heads = Field(min_length=1, max_length=4096)
    generate: int | None = Field(None, ge=1, le=4096)


class Heard(WireAnswer):
    """What a model says of it."""

    answers: list[ToldAnswer]
    nats: list[float]
    loss_nats: float | None
    written: str | None


class Silenced(Looked):
    """The whole model, and the same without some heads."""

    heads: list[str]
    whole: Heard
    without: Heard


@route(router, "/inside/silence", Silenced)
def silence(served: Served, on_progress: OnProgress, body: SilenceRequest) -> JsonObject:
    """Switch heads off and see: what the model then says next, how well it foretells the text, how it goes on."""
    only = Message("only a GPT goes on with a text; leave generate out")
    check_family(served, body.generate is None or isinstance(served.model.model, GPT), only)
    with watching(served, on_progress) as bundle:
        wanted = body.to_input(served, body.generate)
        given = read_asked(bundle, replace(wanted, generate=None))
        go_on = None if body.generate is None else lambda: continuation(bundle, wanted)
        whole, without = without_heads(bundle.model, given, body.heads, go_on)
    return {**read_as(bundle, given), "heads": body.heads, "whole": to_json(whole), "without": to_json(without)}


class EmbeddingsRequest(AboutModel):
    """How many words shall be on the map, and which one is looked for."""

    word: str | None = Field(None, max_length=80)
    count: int = Field(300, ge=3, le=2000)
    neighbours: int = Field(12, ge=1, le=100)


class EmbeddingWord(WireAnswer):
    """The word that was looked for, and its neighbours."""

    text: str
    pieces: list[str]
    neighbours: list[Neighbour]


class EmbeddingsMap(WireAnswer):
    """Words in the plane in which their vectors spread most, and what share of the spread that is."""

    width: int
    vocabulary: int
    shares: tuple[float, float]
    dots: list[Dot]
    word: EmbeddingWord | None


@route(router, "/inside/embeddings", EmbeddingsMap)
def embeddings(served: Served, body: EmbeddingsRequest) -> JsonObject:
    """A map of the most frequent words (PCA), and the neighbours of one of them by cosine, less what all share."""
    check_reads(served)
    only = Message("it has no words; ask a model that reads text")
    check_family(served, served.model.tokenizer is not None, only)
    table, word, chosen = served.embeddings, None, []
    if body.word is not None:
        found = table.find(body.word)
        near = nearest_words(table, found, body.neighbours)
        chosen = [found, *(table.find(each.text) for each in near)]
        word = {"text": found.text, "pieces": found.pieces, "neighbours": near}
    vocabulary, width = table.vectors.shape
    return {**vars(word_map(table, chosen, body.count)), "width": width, "vocabulary": vocabulary, "word": word}
