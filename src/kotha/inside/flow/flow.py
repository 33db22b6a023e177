"""Flow: one text through the whole model, station by station along the residual stream.

From pieces and ids through embedding and every layer to the answer, each station with the shape of what passes, its
mean, spread and ends, how long the vector of each position is, and how widely each head looks (the workshop's question
12a: from a text to the distribution of the next token). The order of the stations is the order of the arithmetic: norms
come before or after their part as the model has them.

What it does not do: draw; see ``page.py``.
"""

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn

from kotha.inside.hook_points import layers, stacks
from kotha.inside.inputs import ModelInput
from kotha.inside.trace import Trace, trace
from kotha.model.bert import BERT
from kotha.model.block import Block
from kotha.model.config import TextConfig
from kotha.model.family import Model
from kotha.model.vit import ViT

_BEST = 10
_START = {
    "tokens": "Text into vectors",
    "source": "Source into vectors",
    "target": "Target into vectors",
    "patches": "Image into vectors",
}


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
    entropies: dict[int, float] = field(default_factory=dict)
    """Of an attention: how widely each head looks, in bits, mean over the positions."""
    inside: str = ""  # shapes that come and go inside the part

    @property
    def norm(self) -> float:
        """The mean length of a vector."""
        return sum(self.norms) / len(self.norms)

    @property
    def size(self) -> str:
        """The shape, as one reads it."""
        return _by(self.shape)


@dataclass(frozen=True)
class Stage:
    """Stations that belong together: the start, one layer, the end."""

    title: str
    line: str  # the line of pieces whose vectors pass
    stations: tuple[Station, ...]
    layer: str | None = None  # blocks.0; the start and the end have none

    @property
    def bits(self) -> float | None:
        """How widely its heads look, in bits, on average."""
        found = [each for station in self.stations for each in station.entropies.values()]
        return sum(found) / len(found) if found else None


@dataclass(frozen=True)
class FinalAnswer:
    """What the model says in the end, at one place."""

    question: str
    best: tuple[tuple[int, float], ...]  # (id, probability), likeliest first; of a ViT the id is a class


@dataclass(frozen=True)
class Flow:
    """A whole pass."""

    family: str
    given: ModelInput
    stages: tuple[Stage, ...]
    answers: tuple[FinalAnswer, ...]

    def to_dict(self, spell: Callable[[int], str]) -> dict[str, Any]:
        """All of it, ready for JSON; ``spell`` turns an id into text."""
        return {
            "family": self.family,
            "lines": self.given.lines_to_dict(),
            "stations": [
                {"layer": stage.layer, **vars(station), "norm": station.norm}
                for stage in self.stages
                for station in stage.stations
            ],
            "answers": [
                {
                    "question": answer.question,
                    "best": [{"id": id, "text": spell(id), "probability": share} for id, share in answer.best],
                }
                for answer in self.answers
            ],
        }


def flow(model: Model, given: ModelInput) -> Flow:
    """Follow an input through a model."""
    with trace(model) as seen:
        output = given.pass_through(model)
    stages = []
    for order, (stack, blocks) in enumerate(stacks(model).items()):
        line = list(given.lines)[order]
        stages.append(Stage(_START[line], line, _start(model, seen, stack, order)))
        named = [(name, block) for name, block in layers(model).items() if name.startswith(f"{stack}.")]
        for number, (name, block) in enumerate(named):
            what = "Layer" if stack == "blocks" else f"{stack.capitalize()} layer"
            stages.append(Stage(f"{what} {number}", line, _layer(seen, name, block), name))
        prefix = "" if stack == "blocks" else f"{stack}."
        if not isinstance(blocks.norm, nn.Identity):
            stages.append(Stage("The last norm", line, (_station(seen, f"{prefix}norm", "last norm", "norm"),)))
    stages.append(Stage("Vectors into an answer", line, _end(model, seen)))
    return Flow(model.config.family, given, tuple(stages), final_answers(model, given, output))


def _start(model: Model, seen: Trace, stack: str, order: int) -> tuple[Station, ...]:
    """From ids or pixels to the vectors that the first layer reads."""
    entering = f"{stack}.0.residual_in"
    if isinstance(model, ViT):
        cut = _station(seen, "patches", "patches, each made a vector", "value")
        return cut, _station(seen, entering, "class token first, places added", "value")
    assert isinstance(model.config, TextConfig), "all but a ViT read text"
    before = {"bert": "sentence and ", "seq2seq": "times the root of the width, "}.get(model.config.family, "")
    places = {"rotary": "places turn queries and keys later", "none": "no places"}
    label = before + places.get(model.config.positions, "places added")
    tokens = _measure("tokens", "embedding, a row for each id", "value", seen.passes("tokens")[order])
    added = _measure("positions", label, "value", seen.passes("positions")[order])
    normed = (_station(seen, entering, "norm", "norm"),) if isinstance(model, BERT) else ()
    return tokens, added, *normed


def _layer(seen: Trace, name: str, block: Block) -> tuple[Station, ...]:
    """The stations of one layer, in the order of its arithmetic."""
    parts = ["attention", *(["cross"] if block.cross is not None else []), "feedforward"]
    labels = {"attention": "attention", "cross": "attention to the source", "feedforward": "feed-forward"}
    sums = {"attention": f"{name}.residual_mid", "feedforward": f"{name}.residual_out"}
    stations = []
    for part in parts:
        norm = _station(seen, f"{name}.{part}_norm", "norm", "norm")
        added = _part(seen, f"{name}.{part}", labels[part], block)
        if block.norm_order == "post":
            stations += [added, _station(seen, f"{name}.{part}_norm", "added to the residual, then norm", "sum")]
        else:
            # What follows the look at the source has no name of its own: it is what leaves less what is added last.
            place = sums.get(part, f"{name}.residual_out - feedforward")
            after = seen[place] if part in sums else seen[f"{name}.residual_out"] - seen[f"{name}.feedforward"]
            stations += [norm, added, _measure(place, "added to the residual", "sum", after)]
    return tuple(stations)


def _part(seen: Trace, place: str, label: str, block: Block) -> Station:
    if place.endswith("feedforward"):
        width = seen[place].shape[-1]
        inner = next(each for each in block.feedforward.modules() if isinstance(each, nn.Linear)).out_features
        return _measure(place, label, "part", seen[place], inside=f"{width:,} → {inner:,} → {width:,} at each position")
    queries, keys, weights = (seen[f"{place}.{name}"][0] for name in ("queries", "keys", "weights"))
    bits = (torch.special.entr(weights.double()).sum(-1).mean(-1) / math.log(2)).tolist()
    shapes = f"Q {_by(queries.shape)}, K and V {_by(keys.shape)}, weights {_by(weights.shape)}"
    attention = block.cross if place.endswith("cross") else block.attention
    assert attention is not None, "it was traced"
    return _measure(place, label, "part", seen[place], dict(zip(attention.heads, bits, strict=True)), shapes)


def _end(model: Model, seen: Trace) -> tuple[Station, ...]:
    what = "scores of every class" if isinstance(model, ViT) else "scores of every token"
    logits = seen["logits"] if not isinstance(model, ViT) else seen["logits"][:, None]  # (B, 1, classes)
    width = model.config.d_model
    n_maps = 2 if isinstance(model, BERT) else 1  # BERT's thinks once more
    within = f"{width:,} → " * n_maps + f"{logits.shape[-1]:,}"
    chances = logits.float().softmax(dim=-1)
    return (
        _measure("logits", f"head: {what}", "value", logits, inside=within),
        _measure("probabilities", "softmax: each row sums to one", "value", chances),
    )


def final_answers(model: Model, given: ModelInput, output: Any) -> tuple[FinalAnswer, ...]:
    """What a model says in the end, from what it gave out: of a BERT at each gap, of others at the last place."""
    if isinstance(model, ViT):
        return (_answer("what the image shows", output[0]),)
    if not isinstance(model, BERT):
        return (_answer("what comes next", output[0, -1]),)
    (line,) = given.lines.values()
    words = output.token_logits[0]
    places = given.masked or (max(0, len(line) - 2),)  # the last word, before the mark that ends the text
    return tuple(
        _answer(f"which word stands at position {place + 1}, {line[place].text}", words[place]) for place in places
    )


def _answer(question: str, logits: Tensor) -> FinalAnswer:
    best, ids = logits.float().softmax(dim=-1).topk(min(_BEST, len(logits)))
    return FinalAnswer(question, tuple(zip(ids.tolist(), best.tolist(), strict=True)))


def _station(seen: Trace, place: str, label: str, kind: str) -> Station:
    return _measure(place, label, kind, seen[place])


def _measure(
    place: str, label: str, kind: str, values: Tensor, entropies: dict[int, float] | None = None, inside: str = ""
) -> Station:
    """Shape and figures of what passes: (1, T, C) -> Station."""
    each = values[0].double()  # (T, C)
    figures = (float(each.mean()), float(each.std(correction=0)), float(each.min()), float(each.max()))
    norms = tuple(each.norm(dim=-1).tolist())
    return Station(place, label, kind, tuple(each.shape), *figures, norms, entropies or {}, inside)


def _by(shape: Iterable[int]) -> str:
    return "×".join(f"{size:,}" for size in shape)
