"""Inspect a model: attention weights (``/api/inside/attention``, ``alignment``), predictions by layer (``lens``),
the residual stream (``flow``), each head and its importance (``heads``), the effect of silencing heads (``silence``),
a map of word embeddings (``embeddings``), and a description of the model (``/api/models/{name}``).
"""

from dataclasses import dataclass, replace
from typing import Annotated

from fastapi import APIRouter
from pydantic import Field

from kotha.api.model_input import continuation, read_input, translator
from kotha.artifacts.own_text import own_opening
from kotha.artifacts.run_folder import find_data, run_config
from kotha.errors import DataError
from kotha.i18n.message import Message, OnProgress, Text
from kotha.inside.attention import HeadSummary, WrittenToken, alignment_view, attention_view, summarize
from kotha.inside.embeddings import Dot, Neighbour, nearest_words, word_map
from kotha.inside.flow import QUESTION, FinalAnswer, Station, flow_view
from kotha.inside.heads.importance import ModelAnswers, without_heads
from kotha.inside.heads.measuring import TextSource
from kotha.inside.heads.study import Study, heads_view
from kotha.inside.hook_points import attentions, choose_layers
from kotha.inside.inputs import Piece
from kotha.inside.lens import Lens, lens_view
from kotha.inside.view import to_json
from kotha.model.classifier import TextClassifier
from kotha.model.config import ViTConfig
from kotha.server.api.requests import (
    AblationRequest,
    AboutModel,
    Heads,
    InputRequest,
    InputResponse,
    WireResponse,
    check_lengths,
    check_size,
    check_texts,
    read_as,
    route,
    watching,
)
from kotha.server.errors import RefusedError, refusing
from kotha.server.json_requests import JsonObject, NamedModel
from kotha.server.model_registry import ServedModel

router = APIRouter(prefix="/api", tags=["Inside"])
LayerName = Annotated[str, Field(max_length=80)] | Annotated[int, Field(ge=0, le=100_000)]


class AttentionSite(WireResponse):
    """An attention layer and its heads; pruning does not renumber the remaining heads."""

    name: str
    heads: list[int]


class AboutServed(WireResponse):
    """The family and sizes of a model."""

    name: str
    family: str
    parameters: int
    vocab_size: int | None
    context_length: int | None
    image_size: int | None
    labels: list[str]
    supports_chat: bool
    attentions: list[AttentionSite]


@route(router, "/models/{name}", AboutServed, method="GET", reads=True)
def about(served: ServedModel, name: NamedModel) -> JsonObject:
    """Return a model's family, sizes, and the names of its attention layers and heads."""
    model, config = served.model.model, served.model.config
    labels = config.class_names if isinstance(config, ViTConfig) else getattr(config, "labels", ())
    sizes = {each: getattr(config, each, None) for each in ("family", "vocab_size", "context_length", "image_size")}
    return {
        **sizes,
        "name": name,
        "parameters": sum(each.numel() for each in model.parameters()),
        "labels": labels,
        "supports_chat": served.supports_chat,
        "attentions": [{"name": each, "heads": found.heads} for each, found in attentions(model).items()],
    }


class AttentionRequest(AblationRequest):
    """An input, and the layers to report."""

    layers: list[LayerName] = Field([], max_length=1100)


class AttentionWeights(WireResponse):
    """The weights of one attention layer by head, query and key; each row sums to one."""

    name: str
    queries: str
    keys: str
    heads: list[int]
    causal: bool
    shape: tuple[int, int, int]
    weights: list[list[list[float]]]
    summaries: list[HeadSummary]


class AttentionResponse(InputResponse):
    """The attention weights of every head."""

    written_from: int | None
    maps: list[AttentionWeights]
    steps: tuple[WrittenToken, ...]


@route(router, "/inside/attention", AttentionResponse)
def attention(served: ServedModel, on_progress: OnProgress, body: AttentionRequest) -> JsonObject:
    """Return every head's attention weights on a text or an image, to six decimal places."""
    options = body.to_input(served)
    with watching(served, on_progress, body.silenced) as bundle:
        view = attention_view(bundle, read_input(bundle, options), choose_layers(bundle.model, body.layers))
    advice = Message("use a shorter text, or request fewer layers, such as 0 and 1")
    check_size(served, sum(each.weights.numel() for each in view.found.maps), advice)
    maps = [
        {**vars(each), "shape": each.weights.shape, "weights": to_json(each.weights), "summaries": summarize(each)}
        for each in view.found.maps
    ]
    return {**vars(view.found), "maps": maps, **read_as(bundle, view.found.given)}


class AlignmentRequest(AboutModel):
    """A text, and optionally its translation."""

    text: str = Field(min_length=1)
    target: str | None = None
    layer: int | None = Field(None, ge=0, le=10_000)
    beams: int = Field(4, ge=1, le=16)


class AlignmentTable(WireResponse):
    """Weights from each generated piece to each source piece; each row sums to one."""

    source: tuple[Piece, ...]
    written: tuple[Piece, ...]
    weights: list[list[float]]
    strongest: list[int]
    layer: int
    remarks: list[Text]


@route(router, "/inside/alignment", AlignmentTable)
def alignment(served: ServedModel, on_progress: OnProgress, body: AlignmentRequest) -> JsonObject:
    """Align a text with its translation by a Seq2Seq's cross-attention, averaged over the heads in a layer."""
    check_lengths(served, body, served.limits.positions)
    with watching(served, on_progress) as bundle:
        view = alignment_view(bundle, body.text, body.target, body.layer, translator(bundle, body.beams))
    return {**view.to_dict(), **view.found.pieces, "remarks": view.remarks}


@dataclass(frozen=True)
class LogitLens(Lens):
    """Every layer's prediction at every position in the sequence that the model predicts."""

    remarks: tuple[Text, ...]


@route(router, "/inside/lens", LogitLens)
def lens(served: ServedModel, on_progress: OnProgress, body: AblationRequest) -> JsonObject:
    """Return what each layer would predict at every position if the model ended there (the logit lens)."""
    options = body.to_input(served)
    with watching(served, on_progress, body.silenced) as bundle:
        view = lens_view(bundle, read_input(bundle, options))
    return {**vars(view.found), "remarks": view.remarks}


class FlowStations(InputResponse):
    """The stages of the forward pass in order, and the predictions."""

    stations: tuple[Station, ...]
    answers: tuple[FinalAnswer, ...]


@route(router, "/inside/flow", FlowStations)
def flow(served: ServedModel, on_progress: OnProgress, body: AblationRequest) -> JsonObject:
    """Return shapes and statistics of the activations at every stage, for a text or an image."""
    options = body.to_input(served)
    with watching(served, on_progress, body.silenced) as bundle:
        usual = own_opening(served.model.path, served.model.tokenizer) or QUESTION
        given = read_input(bundle, options, usual)
        view = flow_view(bundle, given)
    return {**vars(view.found), **read_as(bundle, given)}


class HeadsRequest(AboutModel):
    """The text on which heads are measured (default: the run's held-out text, if the server finds it)."""

    text: str | None = None
    tokens: int = Field(512, ge=9, le=4096)


@route(router, "/inside/heads", Study, shares=True)  # no hooks are installed between the passes for two heads
def heads(served: ServedModel, on_progress: OnProgress, body: HeadsRequest) -> Study:
    """Return what each head does, its importance, and the head most similar to it; takes one pass per head."""
    path = served.model.path
    if isinstance(served.model.model, TextClassifier):
        raise RefusedError("{name} is a classifier; inspect the model that it was fine-tuned from", name=served.name)
    if body.text is not None:
        check_texts(served, [body.text], "text")
    elif path is None or find_data(run_config(path), path) is None:
        raise RefusedError("the training data of {name} was not found; give a text", param="text", name=served.name)
    source = TextSource(text=body.text, run=path, tokens=body.tokens)
    with refusing(DataError, param="text"):  # an empty text
        view = heads_view(served.apart, source, name=served.name, weights=served.head_weights, on_progress=on_progress)
    return replace(view.found, text="the text" if body.text is not None else "what the run held out")


class SilenceRequest(InputRequest):
    """An input and the heads to silence; a GPT can also generate a continuation."""

    heads: Heads = Field(min_length=1, max_length=4096)
    generate: int | None = Field(None, ge=1, le=128)


class Silenced(InputResponse):
    """Results of the complete model and of the model without some heads."""

    heads: list[str]
    whole: ModelAnswers
    without: ModelAnswers


@route(router, "/inside/silence", Silenced)
def silence(served: ServedModel, on_progress: OnProgress, body: SilenceRequest) -> JsonObject:
    """Silence heads; return the next token, the loss on the text and a continuation, with and without them."""
    with watching(served, on_progress) as bundle:
        options = body.to_input(served, body.generate)
        given = read_input(bundle, replace(options, generate=None))
        go_on = None if body.generate is None else lambda: continuation(bundle, options)
        whole, without = without_heads(bundle.model, given, body.heads, go_on)
    return {**read_as(bundle, given), "heads": body.heads, "whole": whole, "without": without}


class EmbeddingsRequest(AboutModel):
    """The size of the map, and a word to find."""

    word: str | None = Field(None, max_length=80)
    count: int = Field(300, ge=3, le=2000)
    neighbours: int = Field(12, ge=1, le=100)


class EmbeddingWord(WireResponse):
    """The requested word and its neighbours."""

    text: str
    pieces: list[str]
    neighbours: list[Neighbour]


class EmbeddingsMap(WireResponse):
    """Words in the plane of the first two principal components, and the share of variance that each explains."""

    width: int
    vocabulary: int
    shares: tuple[float, float]
    dots: list[Dot]
    word: EmbeddingWord | None


@route(router, "/inside/embeddings", EmbeddingsMap)
def embeddings(served: ServedModel, body: EmbeddingsRequest) -> JsonObject:
    """Return a map of the most frequent words (PCA), and the nearest neighbours of one word by centred cosine."""
    table, word, chosen = served.embeddings, None, []
    if body.word is not None:
        found = table.find(body.word)
        near = nearest_words(table, found, body.neighbours)
        chosen = [found, *(table.find(each.text) for each in near)]
        word = {"text": found.text, "pieces": found.pieces, "neighbours": near}
    vocabulary, width = table.vectors.shape
    return {**vars(word_map(table, chosen, body.count)), "width": width, "vocabulary": vocabulary, "word": word}
