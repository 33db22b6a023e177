"""Attention maps for every head in every layer, with and without the causal mask, and word alignment for translations.

A map holds the weights (H, T, S) from one forward pass, and also the weights that the same queries and keys would
produce under the other mask: no mask for a causal head, the causal mask for a bidirectional one. The model does not use
this second set; it is recorded to show the effect of the mask.

Generated text needs only one pass, because in a causal model the row that a token was generated from does not change
when more tokens follow. ``WrittenToken`` records that row and the most likely tokens at that step.

An alignment shows which source words the model attended to while it generated each word of a translation. It is the
cross-attention of one decoder layer, averaged over the heads. The default is the second-to-last layer, which aligns
best in deep models (https://arxiv.org/abs/1909.02074). Attention weights suggest causes but do not prove them.
"""

import base64
import math
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Any

import torch
from torch import Tensor

from kotha.artifacts.model_folder import Bundle
from kotha.errors import UsageError
from kotha.inside.hook_points import attentions
from kotha.inside.inputs import ModelInput, Piece, TokenPrediction, Write, read
from kotha.inside.trace import Trace, trace
from kotha.inside.view import View, to_json, view_of
from kotha.model.attention import Attention
from kotha.model.family import Model
from kotha.model.gpt import GPT
from kotha.model.seq2seq import Seq2Seq

# Limit for one page or JSON file: about 40 MB of text, which a browser can still open quickly.
MOST_WEIGHTS = 16_000_000
# The largest value of the 16-bit integers that encode weights on pages.
STEPS = 65_535
_ALTERNATIVES = 5
# Strongest weights listed in the summary of a head.
_LOOKS = 3


@dataclass(frozen=True)
class AttentionMap:
    """The weights of one attention module."""

    name: str  # blocks.0.attention, decoder.1.cross
    queries: str  # name of the sequence of the queries, such as "target" (see ``ModelInput.lines``)
    keys: str  # name of the sequence of the keys
    heads: tuple[int, ...]  # head numbers; heads left after pruning keep theirs
    causal: bool
    weights: Tensor  # (H, T, S); each row sums to one
    other: Tensor | None = field(repr=False)  # the same heads under the other mask; None for cross-attention


@dataclass(frozen=True)
class WrittenToken:
    """One token that the model generated."""

    row: int  # the position that it was generated from
    token: int
    probability: float
    best: tuple[TokenPrediction, ...]  # the most likely tokens at this step, best first


@dataclass(frozen=True)
class AttentionMaps:
    """All attention maps from one forward pass."""

    family: str
    lines: dict[str, tuple[Piece, ...]]
    written_from: int | None
    maps: tuple[AttentionMap, ...]
    steps: tuple[WrittenToken, ...]
    given: ModelInput = field(repr=False)


@dataclass(frozen=True)
class HeadSummary:
    """A one-line summary of what one head does with a text."""

    head: int
    looks: tuple[tuple[int, int, float], ...]
    """The strongest weights as (query, key, weight), among positions with more than one key to attend to."""
    on_itself: float | None
    on_previous: float | None
    on_first: float  # mean weights; on_itself and on_previous are None for cross-attention
    entropy_bits: float  # mean over positions: 0 for a single key, log2 S for uniform weights


def attention_maps(model: Model, given: ModelInput, chosen: Iterable[str] | None = None) -> AttentionMaps:
    """Return every attention module's weights for an input; ``chosen`` limits them to layers such as ``blocks.0``."""
    wanted = None if chosen is None else list(chosen)
    _check_size(model, given, wanted)
    places = ["*.queries", "*.keys", "*.weights"]
    places += ["logits"] if given.written_from is not None else []
    with trace(model, layers=wanted, hook_points=places) as seen:
        given.pass_through(model)
    maps = []
    for name, attention in attentions(model).items():
        if f"{name}.weights" in seen:
            causal = name.endswith(".attention") and (isinstance(model, GPT) or name.startswith("decoder"))
            maps.append(_map(given, name, attention, causal, seen))
    steps = () if given.written_from is None else _steps(given, given.written_from, seen["logits"][0])
    return AttentionMaps(model.config.family, given.lines, given.written_from, tuple(maps), steps, given)


def summarize(each: AttentionMap) -> list[HeadSummary]:
    """Summarize each head in a map."""
    alike = each.queries == each.keys
    found = []
    for head, weights in zip(each.heads, each.weights, strict=True):  # (T, S)
        n_queries, n_keys = weights.shape
        chosen = weights.clone()
        if each.causal and n_queries > 1:
            chosen[0] = 0  # the first position can attend only to itself
        best, places = chosen.flatten().topk(min(_LOOKS, chosen.numel()))
        ranked = zip(places.tolist(), best.tolist(), strict=True)
        looks = tuple((*divmod(place, n_keys), share) for place, share in ranked if share > 0)
        on_itself = float(weights.diagonal().mean()) if alike else None
        on_previous = float(weights.diagonal(-1).mean()) if alike and n_queries > 1 else None
        on_first = float(weights[1 if alike and n_queries > 1 else 0 :, 0].mean())
        entropy = float(entropy_bits(weights).mean())
        found.append(HeadSummary(head, looks, on_itself, on_previous, on_first, entropy))
    return found


def entropy_bits(weights: Tensor) -> Tensor:
    """Return the entropy of each row of weights in bits: (..., S) -> (...)."""
    bits: Tensor = torch.special.entr(weights).sum(-1) / math.log(2)
    return bits


def _map(given: ModelInput, name: str, attention: Attention, causal: bool, seen: Trace) -> AttentionMap:
    queries, keys = given.lines_of(name)
    q, k, weights = (seen[f"{name}.{place}"] for place in ("queries", "keys", "weights"))
    other = None
    if queries == keys and given.grid is None:
        with torch.no_grad():
            other = attention.weigh(q, k, None if causal else "causal")[0].float().cpu()
    return AttentionMap(name, queries, keys, attention.heads, causal, weights[0].float().cpu(), other)


def _steps(given: ModelInput, first: int, logits: Tensor) -> tuple[WrittenToken, ...]:
    """Return the prediction at each row that a token was generated from: (T, V) -> steps."""
    chances = logits.float().softmax(dim=-1)  # (T, V)
    steps = []
    for row, piece in enumerate(given.last_line[first:], first - 1):
        assert piece.id is not None, "generated tokens have ids"
        best = given.likeliest(chances[row], _ALTERNATIVES)
        steps.append(WrittenToken(row, piece.id, float(chances[row, piece.id]), best))
    return tuple(steps)


def _check_size(model: Model, given: ModelInput, wanted: list[str] | None) -> None:
    total = 0
    for name, attention in attentions(model).items():
        if wanted is None or name.rpartition(".")[0] in wanted:
            queries, keys = (len(given.lines[line]) for line in given.lines_of(name))
            total += len(attention.heads) * queries * keys * (2 if given.grid is None else 1)
    if total > MOST_WEIGHTS:
        raise UsageError(
            "{n:,} weights exceed the limit of {most:,} per page; use a shorter text, or select fewer "
            "layers, such as 0 and 1",
            n=total,
            most=MOST_WEIGHTS,
        )


# -- the page ---------------------------------------------------------------------------------------------------------


def attention_view(bundle: Bundle, given: ModelInput, chosen: Iterable[str] | None = None) -> View[AttentionMaps]:
    """Show the attention weights for an input; ``chosen`` names layers such as ``blocks.0`` (default: all)."""
    found = attention_maps(bundle.model, given, chosen)

    def page() -> dict[str, Any]:
        packed = [
            {**vars(each), "shape": each.weights.shape, "weights": _packed(each.weights), "other": _packed(each.other)}
            for each in found.maps
        ]
        image = None if given.grid is None else _image(given.inputs[0][0])
        data: dict[str, Any] = to_json(replace(found, maps=()))
        return {**data, "grid": given.grid, "one": STEPS, "maps": packed, "image": image}

    return view_of("attention", given.title, found, page, given.remarks)


def _packed(weights: Tensor | None) -> str | None:
    """Encode weights between 0 and 1 as little-endian 16-bit integers in base64."""
    return None if weights is None else _base64((weights.numpy() * STEPS).round().astype("<u2"))


def _image(image: Tensor) -> dict[str, Any]:
    """Rescale an image input to RGB pixels in row order: (n_channels, height, width) -> RGB."""
    low, high = float(image.min()), float(image.max())
    low, high = (-1.0, 1.0) if low >= -1 and high <= 1 else (low, high)
    bright = ((image - low) / (high - low) * 255).round().clamp(0, 255).to(torch.uint8)
    bright = bright if len(bright) in (1, 3) else bright.float().mean(0, keepdim=True).round().to(torch.uint8)  # gray
    pixels = bright.expand(3, -1, -1).permute(1, 2, 0).contiguous().numpy()
    return {"height": pixels.shape[0], "width": pixels.shape[1], "pixels": _base64(pixels)}


def _base64(array: Any) -> str:
    return base64.b64encode(array.tobytes()).decode()


# -- alignment --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Alignment:
    """The source, the translation, and the attention weights between their pieces."""

    source: tuple[str, ...]
    written: tuple[str, ...]
    weights: Tensor  # (written, source); each row sums to one
    strongest: tuple[int, ...]  # for each written piece, the source position with the largest weight
    layer: int
    pieces: dict[str, tuple[Piece, ...]] = field(repr=False)  # source and written, as shown on a page


def alignment_view(
    bundle: Bundle, text: str, target: str | None = None, layer: int | None = None, write: Write | None = None
) -> View[Alignment]:
    """Align a translation with its source; the translation is ``target``, or the model generates it with ``write``."""
    model = bundle.model
    if not isinstance(model, Seq2Seq):
        raise UsageError(
            "this is a {family} model; only a Seq2Seq can align a translation with its source",
            family=bundle.config.family,
        )
    chosen = max(0, model.config.n_decoder_layers - 2) if layer is None else layer
    given = read(model, bundle.tokenizer, text, target=target, write=write if target is None else None)
    maps = attention_maps(model, given, [f"decoder.{chosen}"])
    (cross,) = (each for each in maps.maps if each.name.endswith(".cross"))
    # Row t holds the weights used to write token t + 1; the last row writes the end token.
    pieces = {"source": given.lines["source"], "written": given.lines["target"][1:]}
    weights = cross.weights.mean(dim=0)[: len(pieces["written"])]
    source, written = (tuple(piece.text for piece in line) for line in pieces.values())
    found = Alignment(source, written, weights, tuple(weights.argmax(dim=-1).tolist()), chosen, pieces)
    data = lambda: to_json(found) | to_json(pieces)
    return view_of("alignment", text, found, data, given.remarks, made_by="kotha translate")
