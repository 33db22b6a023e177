"""``/api/inside/attention`` and ``/api/inside/alignment``: who looks at whom."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from fastapi import Request, Response
from pydantic import Field

from kotha.api.asked import Asked, read_asked, translator
from kotha.artifacts.model_folder import Bundle
from kotha.i18n.message import Message, OnProgress
from kotha.inside.attention import AttentionMap, alignment_view, attention_view, summarize
from kotha.inside.heads.importance import silence
from kotha.inside.hook_points import attentions, choose_layers
from kotha.model.gpt import GPT
from kotha.model.seq2seq import Seq2Seq
from kotha.server.api.inside.looking import (
    LayerName,
    LikelyAnswer,
    LinePiece,
    Looked,
    WatchRequest,
    inside_router,
    looking_up,
    read_as,
    spelling,
)
from kotha.server.api.requests import AboutModel, WireAnswer, checked_size, count_tokens, looked, refuse_family
from kotha.server.model_registry import Served
from kotha.server.settings import Limits
from kotha.server.state import state_of
from kotha.server.wire import InEnglish

router = inside_router()
_ADVICE = Message("use a shorter text, or name fewer layers, such as 0 and 1")


class AttentionRequest(WatchRequest):
    """What to read, and which layers to tell of; a GPT may also go on with the text."""

    layers: list[LayerName] = Field([], max_length=1100, description="0, or decoder.1; all if left out.")
    generate: int | None = Field(None, ge=1, le=4096, description="Tokens that the model adds.")
    temperature: float = Field(0.0, ge=0, le=2, description="Of what it adds; 0 takes the best token.")
    seed: int = Field(0, ge=0, lt=1 << 63, description="Of what it adds: the same seed draws the same.")


class HeadLook(WireAnswer):
    """One head in a line: means over the text, and its strongest looks as (query, key, weight)."""

    head: int = Field(description="Its number.")
    looks: list[tuple[int, int, float]] = Field(description="The strongest, as (query, key, weight).")
    on_itself: float | None = Field(
        description="Mean weight on the same position; null where queries and keys are two texts."
    )
    on_previous: float | None = Field(description="Mean weight on the position before; null likewise.")
    on_first: float = Field(description="Mean weight on the first position.")
    entropy_bits: float = Field(description="How widely it looks: 0 at one place, log2 of the keys at all alike.")


class AttentionWeights(WireAnswer):
    """The weights of one attention: heads, queries, keys; each row sums to one."""

    name: str = Field(description="Of the attention: blocks.0.attention.")
    queries: str = Field(description="The line that looks.")
    keys: str = Field(description="The line that is looked at.")
    heads: list[int] = Field(description="Their numbers, in the order of the weights.")
    causal: bool = Field(description="Whether nobody looks ahead.")
    shape: tuple[int, int, int] = Field(description="Heads, queries, keys.")
    weights: list[list[list[float]]] = Field(description="By head, query and key.")
    summaries: list[HeadLook] = Field(description="Each head in a line.")


class AttentionStep(WireAnswer):
    """A token that the model wrote, the row that it was written from, and what else could have stood there."""

    row: int = Field(description="The position that it was written from.")
    token: int = Field(description="Its id.")
    text: str = Field(description="As it reads.")
    probability: float = Field(description="How likely it was.")
    best: list[LikelyAnswer] = Field(description="What else could have stood there, the likeliest first.")


class AttentionTold(Looked):
    """Who looks at whom, in every head."""

    written_from: int | None = Field(description="Where the pieces begin that the model wrote itself.")
    maps: list[AttentionWeights] = Field(description="An attention each.")
    steps: list[AttentionStep] = Field(description="What the model wrote, token by token; empty where it only read.")


@router.post("/attention", response_model=AttentionTold)
async def attention(request: Request, body: AttentionRequest) -> Response:
    """Who looks at whom over a text or an image: the weights of every head, to six places."""
    limits = state_of(request).settings.limits

    def work(served: Served, on_progress: OnProgress) -> AttentionTold:
        how = {} if body.generate is None else {"temperature": body.temperature, "seed": body.seed}
        wanted, bundle = body.to_input(served, limits, body.generate, **how), served.apart
        _check_size(bundle, wanted, body.layers, limits)
        with silence(bundle.model, body.silenced), looking_up(bundle.model, on_progress):
            chosen = choose_layers(bundle.model, body.layers)
            view = attention_view(bundle, read_asked(bundle, wanted), chosen)
        checked_size(sum(each.weights.numel() for each in view.found.maps), limits, _ADVICE)
        spell, found = spelling(bundle), view.to_dict()
        for step in found["steps"]:
            step["text"] = spell(step["token"])
            step["best"] = [{**each, "text": spell(each["id"])} for each in step["best"]]
        for told, each in zip(found["maps"], view.found.maps, strict=True):
            told |= {"shape": each.weights.shape, "summaries": _summaries(each)}
        return AttentionTold.model_validate({**found, **read_as(bundle, view.found.given)})

    return await looked(request, body.model, work)


def _check_size(bundle: Bundle, wanted: Asked, named: Sequence[str | int], limits: Limits) -> None:
    """Refuse weights over a text that is to be written, where they would be too many, before it is written."""
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
    checked_size(n_heads * n_positions**2, limits, Message("generate fewer tokens, {advice}", advice=_ADVICE))


def _summaries(each: AttentionMap) -> list[dict[str, Any]]:
    return [{name: value for name, value in vars(head).items() if name != "name"} for head in summarize(each)]


class AlignmentRequest(AboutModel):
    """A text, and its translation where it is known."""

    text: str = Field(min_length=1, description="What is translated.")
    target: str | None = Field(None, description="Its translation; left out, the model writes one.")
    layer: int | None = Field(None, ge=0, le=10_000, description="Of the decoder; left out, the last but one.")
    beams: int = Field(4, ge=1, le=16, description="Translations that are followed side by side.")


class AlignmentTable(WireAnswer):
    """For each piece that was written, how strongly it looked at each of the source; each row sums to one."""

    source: list[LinePiece] = Field(description="The pieces of the text.")
    written: list[LinePiece] = Field(description="The pieces of the translation.")
    weights: list[list[float]] = Field(
        description="A row for each piece that was written, a column for each of the source."
    )
    strongest: list[int] = Field(description="The place in the source that each looked at most.")
    layer: int = Field(description="The decoder's layer that was looked at.")
    remarks: list[InEnglish] = Field(description="What to know about how it was taken.")


@router.post("/alignment", response_model=AlignmentTable)
async def alignment(request: Request, body: AlignmentRequest) -> Response:
    """Which pieces of a text its translation was written from: a Seq2Seq's cross-attention, mean of a layer's heads."""
    limits = state_of(request).settings.limits

    def work(served: Served, on_progress: OnProgress) -> AlignmentTable:
        if not isinstance(served.model.model, Seq2Seq):
            raise refuse_family(served, Message("only a Seq2Seq has a source to look at"))
        count_tokens(served, body.text, limits.positions)
        if body.target is not None:
            count_tokens(served, body.target, limits.positions, "target")
        with looking_up(served.apart.model, on_progress):
            write = translator(served.apart, body.beams)
            view = alignment_view(served.apart, body.text, body.target, body.layer, write)
        pieces = {name: [vars(piece) for piece in getattr(view.found, name)] for name in ("source", "written")}
        return AlignmentTable.model_validate({**view.to_dict(), **pieces, "remarks": list(map(str, view.remarks))})

    return await looked(request, body.model, work)
