"""A model over a text or an image: who looks at whom (``/api/inside/attention``, ``alignment``), what each layer would
say (``lens``), what passes every station (``flow``), some heads switched off (``silence``); and what a model is
(``/api/models/{name}``).
"""

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from typing import Annotated

from fastapi import APIRouter, Request
from pydantic import Field

from kotha.api.asked import Asked, continuation, read_asked, translator
from kotha.i18n.message import Message, OnProgress
from kotha.inside.attention import alignment_view, attention_view, summarize
from kotha.inside.flow import QUESTION, flow_view
from kotha.inside.heads.importance import silence as silent
from kotha.inside.heads.importance import without_heads
from kotha.inside.hook_points import attentions, choose_layers
from kotha.inside.lens import lens_view
from kotha.inside.view import to_json
from kotha.model.config import TextConfig, ViTConfig
from kotha.model.gpt import GPT
from kotha.model.seq2seq import Seq2Seq
from kotha.model.vit import ViT
from kotha.server.api.requests import (
    AboutModel,
    Heads,
    Likely,
    LinePiece,
    Looked,
    LookRequest,
    ToldAnswer,
    WatchRequest,
    WireAnswer,
    check_size,
    count_tokens,
    looking_up,
    of_model,
    read_as,
    refuse_family,
)
from kotha.server.model_registry import Served
from kotha.server.state import state_of
from kotha.server.wire import InEnglish, JsonObject, NamedModel

router = APIRouter(prefix="/api", tags=["Inside"])
LayerName = Annotated[str, Field(max_length=80)] | Annotated[int, Field(ge=0, le=100_000)]
_ADVICE = Message("use a shorter text, or name fewer layers, such as 0 and 1")


class AttentionSite(WireAnswer):
    """An attention and its heads; where some were pruned, the others keep their numbers."""

    name: str
    heads: list[int]


class AboutServed(WireAnswer):
    """A model's family and sizes."""

    name: str
    family: str
    parameters: int
    vocab_size: int | None
    context_length: int | None
    image_size: int | None
    labels: list[str]
    takes_turns: bool
    attentions: list[AttentionSite]


@router.get("/models/{name}")
async def about(request: Request, name: NamedModel) -> AboutServed:
    """What a model is: its family, its sizes, and the names of its attentions and heads."""
    async with state_of(request).registry.use(name) as served:
        model, config = served.model.model, served.model.config
        labels = config.class_names if isinstance(config, ViTConfig) else getattr(config, "labels", ())
        return AboutServed(
            name=served.name,
            family=config.family,
            parameters=sum(each.numel() for each in model.parameters()),
            vocab_size=config.vocab_size if isinstance(config, TextConfig) else None,
            context_length=config.context_length if isinstance(config, TextConfig) else None,
            image_size=config.image_size if isinstance(config, ViTConfig) else None,
            labels=list(labels),
            takes_turns=await asyncio.to_thread(lambda: served.takes_turns),
            attentions=[AttentionSite(name=name, heads=list(each.heads)) for name, each in attentions(model).items()],
        )


class AttentionRequest(WatchRequest):
    """What to read, and which layers to tell of; a GPT may also go on with the text."""

    layers: list[LayerName] = Field([], max_length=1100)
    generate: int | None = Field(None, ge=1, le=4096)
    temperature: float = Field(0.0, ge=0, le=2)
    seed: int = Field(0, ge=0, lt=1 << 63)


class HeadLook(WireAnswer):
    """One head in a line: means over the text, and its strongest looks as (query, key, weight)."""

    head: int
    looks: list[tuple[int, int, float]]
    on_itself: float | None
    on_previous: float | None
    on_first: float
    entropy_bits: float


class AttentionWeights(WireAnswer):
    """The weights of one attention: heads, queries, keys; each row sums to one."""

    name: str
    queries: str
    keys: str
    heads: list[int]
    causal: bool
    shape: tuple[int, int, int]
    weights: list[list[list[float]]]
    summaries: list[HeadLook]


class AttentionStep(WireAnswer):
    """A token that the model wrote, the row that it was written from, and what else could have stood there."""

    row: int
    token: int
    text: str
    probability: float
    best: list[Likely]


class AttentionTold(Looked):
    """Who looks at whom, in every head."""

    written_from: int | None
    maps: list[AttentionWeights]
    steps: list[AttentionStep]


@of_model(router, "/inside/attention", AttentionTold)
def attention(served: Served, on_progress: OnProgress, body: AttentionRequest) -> JsonObject:
    """Who looks at whom over a text or an image: the weights of every head, to six places."""
    how = {} if body.generate is None else {"temperature": body.temperature, "seed": body.seed}
    wanted, bundle = body.to_input(served, body.generate, **how), served.apart
    _check_weights(served, wanted, body.layers)
    with silent(bundle.model, body.silenced), looking_up(bundle.model, on_progress):
        chosen = choose_layers(bundle.model, body.layers)
        view = attention_view(bundle, read_asked(bundle, wanted), chosen)
    check_size(served, sum(each.weights.numel() for each in view.found.maps), _ADVICE)
    found = view.to_dict()
    for step in found["steps"]:
        step["text"] = view.found.given.spell(step["token"])
    for told, each in zip(found["maps"], view.found.maps, strict=True):
        told |= {"shape": each.weights.shape, "summaries": summarize(each)}
    return {**found, **read_as(bundle, view.found.given)}


def _check_weights(served: Served, wanted: Asked, named: Sequence[str | int]) -> None:
    """Refuse weights over a text that is to be written, where they would be too many, before it is written."""
    bundle = served.apart
    if wanted.generate is None or not isinstance(bundle.model, GPT):
        return
    chosen = choose_layers(bundle.model, named)
    given = read_asked(bundle, replace(wanted, generate=None, temperature=0.0, seed=0))
    n_heads = sum(
        len(attention.heads)
        for name, attention in attentions(bundle.model).items()
        if chosen is None or name.rpartition(".")[0] in chosen
    )
    n_positions = len(given.lines["tokens"]) + wanted.generate
    check_size(served, n_heads * n_positions**2, Message("generate fewer tokens, {advice}", advice=_ADVICE))


class AlignmentRequest(AboutModel):
    """A text, and its translation where it is known."""

    text: str = Field(min_length=1)
    target: str | None = None
    layer: int | None = Field(None, ge=0, le=10_000)
    beams: int = Field(4, ge=1, le=16)


class AlignmentTable(WireAnswer):
    """For each piece that was written, how strongly it looked at each of the source; each row sums to one."""

    source: list[LinePiece]
    written: list[LinePiece]
    weights: list[list[float]]
    strongest: list[int]
    layer: int
    remarks: list[InEnglish]


@of_model(router, "/inside/alignment", AlignmentTable)
def alignment(served: Served, on_progress: OnProgress, body: AlignmentRequest) -> JsonObject:
    """Which pieces of a text its translation was written from: a Seq2Seq's cross-attention, mean of a layer's heads."""
    if not isinstance(served.model.model, Seq2Seq):
        raise refuse_family(served, Message("only a Seq2Seq has a source to look at"))
    count_tokens(served, body.text, served.limits.positions)
    if body.target is not None:
        count_tokens(served, body.target, served.limits.positions, "target")
    with looking_up(served.apart.model, on_progress):
        write = translator(served.apart, body.beams)
        view = alignment_view(served.apart, body.text, body.target, body.layer, write)
    return {**view.to_dict(), **view.found.pieces, "remarks": view.remarks}


class LayerOpinion(WireAnswer):
    """What one layer would say at one position, and how far that is from the model's own answer."""

    best: list[Likely]
    rank_of_answer: int
    probability_of_answer: float
    kl_nats: float
    entropy_nats: float


class LensLayer(WireAnswer):
    """A layer's opinions, position by position; the first one is the embedding."""

    layer: str
    positions: list[LayerOpinion]


class LogitLens(WireAnswer):
    """Every layer's opinion at every position of the line that speaks."""

    family: str
    question: str
    positions: list[LinePiece]
    layers: list[LensLayer]
    remarks: list[InEnglish]


@of_model(router, "/inside/lens", LogitLens)
def lens(served: Served, _: OnProgress, body: WatchRequest) -> JsonObject:
    """What each layer would say next, as if the model ended there: the logit lens, at every position."""
    if isinstance(served.model.model, ViT):
        raise refuse_family(served, Message("the lens reads words, and it has classes; look at its attention instead"))
    wanted, bundle = body.to_input(served), served.apart
    with silent(bundle.model, body.silenced):
        view = lens_view(bundle, read_asked(bundle, wanted))
    return {**view.to_dict(), "remarks": view.remarks}


class FlowStation(WireAnswer):
    """What passes one place: its shape and figures, and how long the vector of each position is."""

    layer: str | None
    place: str
    label: str
    kind: str
    shape: list[int]
    mean: float
    std: float
    low: float
    high: float
    norm: float
    norms: list[float]
    entropies: dict[int, float]
    inside: str


class FlowStations(Looked):
    """The stations in the order of the arithmetic, and the answer at the end."""

    stations: list[FlowStation]
    answers: list[ToldAnswer]


@of_model(router, "/inside/flow", FlowStations)
def flow(served: Served, _: OnProgress, body: WatchRequest) -> JsonObject:
    """A text's or an image's way through the model: shapes and figures at every station of the residual stream."""
    wanted, bundle = body.to_input(served), served.apart
    with silent(bundle.model, body.silenced):
        given = read_asked(bundle, wanted, QUESTION)
        view = flow_view(bundle, given)
    return {**view.to_dict(), **read_as(bundle, given)}


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


@of_model(router, "/inside/silence", Silenced)
def silence(served: Served, on_progress: OnProgress, body: SilenceRequest) -> JsonObject:
    """Switch heads off and see: what the model then says next, how well it foretells the text, how it goes on."""
    bundle = served.apart
    if body.generate is not None and not isinstance(bundle.model, GPT):
        raise refuse_family(served, Message("only a GPT goes on with a text; leave generate out"))
    with looking_up(bundle.model, on_progress):
        wanted = body.to_input(served, body.generate)
        given = read_asked(bundle, replace(wanted, generate=None))
        go_on = None if body.generate is None else lambda: continuation(bundle, wanted)
        whole, without = without_heads(bundle.model, given, body.heads, go_on)
    spoken = {"whole": to_json(whole), "without": to_json(without)}
    return {**read_as(bundle, given), "heads": body.heads, **spoken}
