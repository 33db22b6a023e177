"""Flow: the values computed for one input at every step of the model, from the token embedding to the prediction.

A station is a measured hook point. A station records the shape of the values, their mean, standard deviation and range,
the length of the vector at each position and, for attention, the entropy of each head. Stations are in the order of
computation, so norms come before or after their part, as in the model. Together they answer question 12a of the
workshop (from a text to the next-token distribution). The page (``web/src/pages/views/Flow.svelte``) takes its labels
in both languages from ``report/studio/words/flow.json``.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

from torch import Tensor, nn

from kotha.artifacts.model_folder import Bundle
from kotha.i18n.message import Message
from kotha.inside.attention import entropy_bits
from kotha.inside.hook_points import AFTER, layers, parts_of, stacks
from kotha.inside.inputs import ModelInput, Piece, TokenPrediction
from kotha.inside.trace import Trace, trace
from kotha.inside.view import View, to_json, view_of
from kotha.model.bert import BERT
from kotha.model.block import Block
from kotha.model.config import TextConfig
from kotha.model.family import Model
from kotha.model.vit import ViT
from kotha.report.table import Table

# The text of the workshop's question 12a.
QUESTION = "বাংলাদেশ ব্যাংক সুদ বৃদ্ধি"
_BEST = 10
_HEADER = ("station", "shape", "mean", "std", "min", "max", "length", "entropy, bits")
_LABELS = {"attention": "attention", "cross": "attention to the source", "feedforward": "feed-forward"}


@dataclass(frozen=True)
class Station:
    """Statistics of the values at one hook point."""

    hook_point: str
    label: str
    kind: str  # value, norm, part (computes an update) or sum (adds the update to the residual stream)
    shape: tuple[int, ...]
    mean: float
    std: float
    low: float
    high: float
    norms: tuple[float, ...]  # length of the vector at each position
    norm: float  # their mean
    entropies: dict[int, float] = field(default_factory=dict)
    """For attention: entropy of each head's weights in bits, averaged over positions."""
    inside: str = ""  # shapes of intermediate values inside the part
    layer: str | None = None  # such as blocks.0; None before the first layer and after the last


@dataclass(frozen=True)
class FinalAnswer:
    """The model's final prediction at one position."""

    question: Message
    best: tuple[TokenPrediction, ...]  # best first; for a ViT, classes


@dataclass(frozen=True)
class Flow:
    """All stations of one forward pass, with the model's predictions."""

    family: str
    lines: dict[str, tuple[Piece, ...]]
    stations: tuple[Station, ...]
    answers: tuple[FinalAnswer, ...]

    def table(self) -> Table:
        """Return a table with a row of statistics for each station."""
        rows = [
            [
                each.hook_point,
                _by(each.shape),
                *(f"{value:.4g}" for value in (each.mean, each.std, each.low, each.high, each.norm)),
                ", ".join(f"{bits:.2f}" for bits in each.entropies.values()) or "-",
            ]
            for each in self.stations
        ]
        return Table(Message("station by station"), [Message(name) for name in _HEADER], rows)


def flow(model: Model, given: ModelInput) -> Flow:
    """Run the model on an input and measure every station."""
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
    """Yield the stations from ids or pixels to the input of the first layer."""
    entering = f"{stack}.0.residual_in"
    if isinstance(model, ViT):
        yield _measure("patches", "patches, each projected to a vector", "value", seen["patches"])
        yield _measure(entering, "class token first, positions added", "value", seen[entering])
        return
    assert isinstance(model.config, TextConfig), "every model but a ViT takes text"
    before = {"bert": "sentence and ", "seq2seq": "times the root of the width, "}.get(model.config.family, "")
    places = {"rotary": "positions rotate queries and keys later", "none": "no positions"}
    label = before + places.get(model.config.positions, "positions added")
    yield _measure("tokens", "embedding, a row for each id", "value", seen.passes("tokens")[order])
    yield _measure("positions", label, "value", seen.passes("positions")[order])
    if isinstance(model, BERT):
        yield _measure(entering, "norm", "norm", seen[entering])


def _layer(seen: Trace, name: str, block: Block) -> Iterator[Station]:
    """Yield the stations in one layer, in the order of computation."""
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
    n_maps = 2 if isinstance(model, BERT) else 1  # BERT's head has a transform before its projection
    within = f"{model.config.d_model:,} → " * n_maps + f"{logits.shape[-1]:,}"
    yield _measure("logits", f"head: {what}", "value", logits, inside=within)
    chances = logits.float().softmax(dim=-1)
    yield _measure("probabilities", "softmax: each row sums to one", "value", chances)


def final_answers(model: Model, given: ModelInput, output: Any) -> tuple[FinalAnswer, ...]:
    """Return the model's final predictions: at each masked position for a BERT, otherwise at the last position."""
    if isinstance(model, ViT):
        questions = {Message("what the image shows"): output[0]}
    elif isinstance(model, BERT):
        line = given.last_line
        which = "which word is at position {place}, {text}"
        places = given.masked or (max(0, len(line) - 2),)  # the last word, before [SEP]
        questions = {
            Message(which, place=place + 1, text=line[place].text): output.token_logits[0, place] for place in places
        }
    else:
        questions = {Message("what comes next"): output[0, -1]}
    return tuple(
        FinalAnswer(question, given.likeliest(logits.float().softmax(dim=-1), _BEST))
        for question, logits in questions.items()
    )


def _measure(place: str, label: str, kind: str, values: Tensor, **more: Any) -> Station:
    """Return the statistics of the values at a hook point: (1, T, C) -> Station."""
    each = values[0].double()  # (T, C)
    figures = (float(each.mean()), float(each.std(correction=0)), float(each.min()), float(each.max()))
    norms = each.norm(dim=-1).tolist()
    return Station(place, label, kind, tuple(each.shape), *figures, tuple(norms), sum(norms) / len(norms), **more)


def _by(shape: Iterable[int]) -> str:
    return "×".join(f"{size:,}" for size in shape)


# -- views ------------------------------------------------------------------------------------------------------------


def flow_view(bundle: Bundle, given: ModelInput) -> View[Flow]:
    """Show the values computed for a text or an image at every step of a model."""
    found = flow(bundle.model, given)
    extra = {"grid": given.grid, "masked": given.masked}
    return view_of("flow", given.title, found, lambda: to_json(found) | extra, given.remarks)
