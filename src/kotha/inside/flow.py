"""Flow: one text through the whole model, station by station along the residual stream.

From pieces and ids through embedding and every layer to the answer, each station with the shape of what passes, its
mean, spread and ends, how long the vector of each position is, and how widely each head looks (the workshop's question
12a: from a text to the distribution of the next token). The order of the stations is the order of the arithmetic: norms
come before or after their part as the model has them. The page (``web/src/pages/views/Flow.svelte``) has the labels in
both languages (``report/studio/words/flow.json``).
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

from torch import Tensor, nn

from kotha.artifacts.model_folder import Bundle
from kotha.i18n.message import Message
from kotha.inside.attention import entropy_bits
from kotha.inside.hook_points import AFTER, layers, parts_of, stacks
from kotha.inside.inputs import Likely, ModelInput, Piece
from kotha.inside.trace import Trace, trace
from kotha.inside.view import View, to_json, view_of
from kotha.model.bert import BERT
from kotha.model.block import Block
from kotha.model.config import TextConfig
from kotha.model.family import Model
from kotha.model.vit import ViT
from kotha.report.table import Table

# The workshop's question 12a asks for this text.
QUESTION = "বাংলাদেশ ব্যাংক সুদ বৃদ্ধি"
_BEST = 10
_HEADER = ("station", "shape", "mean", "std", "min", "max", "length", "entropy, bits")
_LABELS = {"attention": "attention", "cross": "attention to the source", "feedforward": "feed-forward"}


@dataclass(frozen=True)
class Station:
    """What passes one place."""

    place: str
    label: str
    kind: str  # value, norm, part (computes what is added) or sum (the way around joins in)
    shape: tuple[int, ...]
    mean: float
    std: float
    low: float
    high: float
    norms: tuple[float, ...]  # how long the vector of each position is
    norm: float  # their mean
    entropies: dict[int, float] = field(default_factory=dict)
    """Of an attention: how widely each head looks, in bits, mean over the positions."""
    inside: str = ""  # shapes that come and go inside the part
    layer: str | None = None  # blocks.0; the start and the end have none


@dataclass(frozen=True)
class FinalAnswer:
    """What the model says in the end, at one place."""

    question: Message
    best: tuple[Likely, ...]  # likeliest first; of a ViT classes


@dataclass(frozen=True)
class Flow:
    """A whole pass."""

    family: str
    lines: dict[str, tuple[Piece, ...]]
    stations: tuple[Station, ...]
    answers: tuple[FinalAnswer, ...]

    def table(self) -> Table:
        """A row of figures for each station, to read."""
        rows = [
            [
                each.place,
                _by(each.shape),
                *(f"{value:.4g}" for value in (each.mean, each.std, each.low, each.high, each.norm)),
                ", ".join(f"{bits:.2f}" for bits in each.entropies.values()) or "-",
            ]
            for each in self.stations
        ]
        return Table(Message("station by station"), [Message(name) for name in _HEADER], rows)


def flow(model: Model, given: ModelInput) -> Flow:
    """Follow an input through a model."""
    with trace(model) as seen:
        output = given.pass_through(model)
    stations: list[Station] = []
    for order, (stack, blocks) in enumerate(stacks(model).items()):
        stations += _start(model, seen, stack, order)
        for name, block in layers(model).items():
            if name.startswith(f"{stack}."):
                stations += (replace(each, layer=name) for each in _layer(seen, name, block))
        if not isinstance(blocks.norm, nn.Identity):
            place = "norm" if stack == "blocks" else f"{stack}.norm"
            stations.append(_measure(place, "last norm", "norm", seen[place]))
    stations += _end(model, seen)
    return Flow(model.config.family, given.lines, tuple(stations), final_answers(model, given, output))


def _start(model: Model, seen: Trace, stack: str, order: int) -> Iterator[Station]:
    """From ids or pixels to the vectors that the first layer reads."""
    entering = f"{stack}.0.residual_in"
    if isinstance(model, ViT):
        yield _measure("patches", "patches, each made a vector", "value", seen["patches"])
        yield _measure(entering, "class token first, places added", "value", seen[entering])
        return
    assert isinstance(model.config, TextConfig), "all but a ViT read text"
    before = {"bert": "sentence and ", "seq2seq": "times the root of the width, "}.get(model.config.family, "")
    places = {"rotary": "places turn queries and keys later", "none": "no places"}
    label = before + places.get(model.config.positions, "places added")
    yield _measure("tokens", "embedding, a row for each id", "value", seen.passes("tokens")[order])
    yield _measure("positions", label, "value", seen.passes("positions")[order])
    if isinstance(model, BERT):
        yield _measure(entering, "norm", "norm", seen[entering])


def _layer(seen: Trace, name: str, block: Block) -> Iterator[Station]:
    """The stations of one layer, in the order of its arithmetic."""
    for part in parts_of(block):
        norm, added = f"{name}.{part}_norm", _part(seen, f"{name}.{part}", part, block)
        if block.norm_order == "post":
            yield added
            yield _measure(norm, "added to the residual, then norm", "sum", seen[norm])
        else:
            yield _measure(norm, "norm", "norm", seen[norm])
            yield added
            place = f"{name}.{AFTER[part]}"
            yield _measure(place, "added to the residual", "sum", seen[place])


def _part(seen: Trace, place: str, part: str, block: Block) -> Station:
    label, values = _LABELS[part], seen[place]
    if part == "feedforward":
        inner = next(each for each in block.feedforward.modules() if isinstance(each, nn.Linear)).out_features
        shapes = f"{values.shape[-1]:,} → {inner:,} → {values.shape[-1]:,} at each position"
        return _measure(place, label, "part", values, inside=shapes)
    queries, keys, weights = (seen[f"{place}.{name}"][0] for name in ("queries", "keys", "weights"))
    bits = entropy_bits(weights.double()).mean(-1).tolist()
    shapes = f"Q {_by(queries.shape)}, K and V {_by(keys.shape)}, weights {_by(weights.shape)}"
    heads = dict(zip(getattr(block, part).heads, bits, strict=True))
    return _measure(place, label, "part", values, inside=shapes, entropies=heads)


def _end(model: Model, seen: Trace) -> Iterator[Station]:
    what = "scores of every class" if isinstance(model, ViT) else "scores of every token"
    logits = seen["logits"] if not isinstance(model, ViT) else seen["logits"][:, None]  # (B, 1, classes)
    n_maps = 2 if isinstance(model, BERT) else 1  # BERT's thinks once more
    within = f"{model.config.d_model:,} → " * n_maps + f"{logits.shape[-1]:,}"
    yield _measure("logits", f"head: {what}", "value", logits, inside=within)
    chances = logits.float().softmax(dim=-1)
    yield _measure("probabilities", "softmax: each row sums to one", "value", chances)


def final_answers(model: Model, given: ModelInput, output: Any) -> tuple[FinalAnswer, ...]:
    """What a model says in the end, from what it gave out: of a BERT at each gap, of others at the last place."""
    if isinstance(model, ViT):
        asked = {Message("what the image shows"): output[0]}
    elif isinstance(model, BERT):
        line = given.last_line
        which = "which word is at position {place}, {text}"
        places = given.masked or (max(0, len(line) - 2),)  # the last word, before the mark that ends the text
        asked = {
            Message(which, place=place + 1, text=line[place].text): output.token_logits[0, place] for place in places
        }
    else:
        asked = {Message("what comes next"): output[0, -1]}
    return tuple(
        FinalAnswer(question, given.likeliest(logits.float().softmax(dim=-1), _BEST))
        for question, logits in asked.items()
    )


def _measure(place: str, label: str, kind: str, values: Tensor, **more: Any) -> Station:
    """Shape and figures of what passes: (1, T, C) -> Station."""
    each = values[0].double()  # (T, C)
    figures = (float(each.mean()), float(each.std(correction=0)), float(each.min()), float(each.max()))
    norms = each.norm(dim=-1).tolist()
    return Station(place, label, kind, tuple(each.shape), *figures, tuple(norms), sum(norms) / len(norms), **more)


def _by(shape: Iterable[int]) -> str:
    return "×".join(f"{size:,}" for size in shape)


# -- views ------------------------------------------------------------------------------------------------------------


def flow_view(bundle: Bundle, given: ModelInput) -> View[Flow]:
    """A text or an image through a model."""
    found = flow(bundle.model, given)
    beside = {"grid": given.grid, "masked": given.masked}
    return view_of("flow", given.title, found, lambda: to_json(found) | beside, given.remarks)
