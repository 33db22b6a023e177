"""Attention maps: who looks at whom, in every head of every layer, under its causal mask and without.

For each attention the weights (H, T, S) of one pass, and beside them what the same queries and keys would give under
the other mask: a head that may not look ahead, as if it might (the notes' GPT against BERT), and the other way round.
Nobody looks so in the model; it shows what the mask takes away.

A text that the model goes on with needs one pass too: no position sees what comes after it, so the row from which a
token was written is the same row when more follows. ``WrittenToken`` says which row that is, and what else could have
stood there.

What it does not do: draw (``page.py``) or write text (``request.py``).
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from kotha.errors import UsageError
from kotha.inside.hook_points import attentions
from kotha.inside.inputs import ModelInput, Piece
from kotha.inside.trace import Trace, trace
from kotha.model.attention import Attention
from kotha.model.family import Model
from kotha.model.gpt import GPT

# Weights that one page or one JSON may hold: some 40 MB of text, which a browser still opens at once.
MOST_WEIGHTS = 16_000_000
_ALTERNATIVES = 5
# The strongest looks of a head that its summary names.
_LOOKS = 3


@dataclass(frozen=True)
class AttentionMap:
    """The weights of one attention."""

    name: str  # blocks.0.attention, decoder.1.cross
    queries: str  # the line of pieces that look
    keys: str  # the line of pieces that are looked at
    heads: tuple[int, ...]  # the heads' names; where some were pruned, the others keep theirs
    weights: Tensor  # (H, T, S); each row sums to one
    is_causal: bool
    other: Tensor | None  # the same heads under the other mask, (H, T, S); a look at another text has none


@dataclass(frozen=True)
class WrittenToken:
    """One token that the model wrote."""

    row: int  # the position that it was written from
    token: int
    probability: float
    best: tuple[tuple[int, float], ...]  # what else could have been written: (id, probability), likeliest first


@dataclass(frozen=True)
class AttentionMaps:
    """Every map of one pass."""

    family: str
    given: ModelInput
    maps: tuple[AttentionMap, ...]
    steps: tuple[WrittenToken, ...] = ()

    def line(self, name: str) -> tuple[Piece, ...]:
        """The pieces of a line."""
        return self.given.lines[name]

    def to_dict(self) -> dict[str, Any]:
        """All of it, ready for JSON; weights to six places."""
        return {
            "family": self.family,
            "lines": self.given.lines_to_dict(),
            "written_from": self.given.written_from,
            "maps": [
                {
                    "name": each.name,
                    "queries": each.queries,
                    "keys": each.keys,
                    "heads": list(each.heads),
                    "causal": each.is_causal,
                    "weights": each.weights.double().mul(1e6).round().div(1e6).tolist(),
                }
                for each in self.maps
            ],
            "steps": [
                {**vars(step), "best": [{"id": id, "probability": share} for id, share in step.best]}
                for step in self.steps
            ],
        }


@dataclass(frozen=True)
class HeadSummary:
    """What one head does with a text, in a line."""

    name: str
    head: int
    looks: tuple[tuple[int, int, float], ...]
    """The strongest looks: (query, key, weight), of positions that had a choice."""
    on_itself: float | None
    on_previous: float | None
    on_first: float  # mean weight on these; a look at another text knows no itself
    entropy_bits: float  # mean over positions: 0 looks at one place, log2 S at all alike


def attention_maps(model: Model, given: ModelInput, chosen: Iterable[str] | None = None) -> AttentionMaps:
    """Every attention's weights over an input; ``chosen`` are layers such as ``blocks.0``."""
    wanted = None if chosen is None else list(chosen)
    _refuse_large(model, given, wanted)
    places = ["*.queries", "*.keys", "*.weights"]
    places += ["logits"] if given.written_from is not None else []
    with trace(model, layers=wanted, places=places) as seen:
        given.pass_through(model)
    causal = isinstance(model, GPT)
    maps = [
        _map(given, name, attention, name.endswith(".attention") and (causal or name.startswith("decoder")), seen)
        for name, attention in attentions(model).items()
        if f"{name}.weights" in seen
    ]
    steps = () if given.written_from is None else _steps(given, seen["logits"][0])
    return AttentionMaps(model.config.family, given, tuple(maps), steps)


def summarize(each: AttentionMap) -> list[HeadSummary]:
    """Each head of a map in a line."""
    alike = each.queries == each.keys
    found = []
    for head, weights in zip(each.heads, each.weights, strict=True):  # (T, S)
        n_queries, n_keys = weights.shape
        chosen = weights.clone()
        if each.is_causal and n_queries > 1:
            chosen[0] = 0  # the first position has nobody to choose from; what is 0 is no look
        best, places = chosen.flatten().topk(min(_LOOKS, chosen.numel()))
        ranked = zip(places.tolist(), best.tolist(), strict=True)
        looks = tuple((place // n_keys, place % n_keys, share) for place, share in ranked if share > 0)
        on_itself = float(weights.diagonal().mean()) if alike else None
        on_previous = float(weights.diagonal(-1).mean()) if alike and n_queries > 1 else None
        on_first = float(weights[1 if alike and n_queries > 1 else 0 :, 0].mean())
        entropy = float(torch.special.entr(weights).sum(-1).mean() / math.log(2))
        found.append(HeadSummary(each.name, head, looks, on_itself, on_previous, on_first, entropy))
    return found


def _map(given: ModelInput, name: str, attention: Attention, is_causal: bool, seen: Trace) -> AttentionMap:
    queries, keys = given.lines_of(name)
    q, k, weights = (seen[f"{name}.{place}"] for place in ("queries", "keys", "weights"))
    other = None
    if queries == keys and given.grid is None:
        with torch.no_grad():
            other = attention.weigh(q, k, None if is_causal else "causal")[0].float().cpu()
    return AttentionMap(name, queries, keys, attention.heads, weights[0].float().cpu(), is_causal, other)


def _steps(given: ModelInput, logits: Tensor) -> tuple[WrittenToken, ...]:
    """What the model said at each row that it wrote from: (T, V) -> steps."""
    pieces = list(given.lines.values())[-1]
    first = given.written_from
    assert first is not None, "asked for the steps of a text that was given whole"
    chances = logits.float().softmax(dim=-1)  # (T, V)
    steps = []
    for place in range(first, len(pieces)):
        row, token = chances[place - 1], pieces[place].id
        assert token is not None, "what was written has an id"
        best, ids = row.topk(min(_ALTERNATIVES, len(row)))
        ranked = tuple(zip(ids.tolist(), best.tolist(), strict=True))
        steps.append(WrittenToken(place - 1, token, float(row[token]), ranked))
    return tuple(steps)


def _refuse_large(model: Model, given: ModelInput, wanted: list[str] | None) -> None:
    total = 0
    for name, attention in attentions(model).items():
        if wanted is None or name.rpartition(".")[0] in wanted:
            queries, keys = (len(given.lines[line]) for line in given.lines_of(name))
            total += len(attention.heads) * queries * keys * (2 if given.grid is None else 1)
    if total > MOST_WEIGHTS:
        raise UsageError(
            "{n:,} weights are more than a page can hold ({most:,}); "
            "use a shorter text, or name fewer layers, such as 0 and 1",
            n=total,
            most=MOST_WEIGHTS,
        )
