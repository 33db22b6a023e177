"""A study of all heads: kind, importance and likeness, from one text.

Passages show where heads look; batches and a loss show what they are worth. ``study`` takes both from its caller and
knows neither how a text becomes batches nor what a model is trained for; ``measuring.py`` makes them.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from torch import nn

from kotha.inside.heads.importance import Batch, Loss, by_ablation, by_gradient, mean_loss
from kotha.inside.heads.kinds import HeadKind, Witness
from kotha.inside.heads.overlap import (
    Overlap,
    Resemblance,
    SharedRank,
    head_overlap,
    nearest_heads,
    shared_rank,
    symmetry,
)
from kotha.inside.heads.sight import Passage, look
from kotha.inside.sites import attentions
from kotha.wording import OnProgress


@dataclass(frozen=True)
class Likeness:
    """The head of the same attention that looks most alike."""

    head: str
    alike: float
    """1: they look at the very same places."""
    overlap: Overlap


@dataclass(frozen=True)
class HeadReport:
    """All that is known of one head."""

    head: str
    kind: HeadKind
    ablation: float
    """What the loss rises by without it, in nats."""
    gradient: float
    """How steeply the loss falls with it, in nats."""
    symmetry: float
    """Of W_Q W_K^T: 1 symmetric, one half by chance."""
    likeness: Likeness | None


@dataclass(frozen=True)
class Sharing:
    """How many directions the heads of an attention need together."""

    attention: str
    queries: SharedRank
    keys: SharedRank
    values: SharedRank


@dataclass(frozen=True)
class Study:
    """What was found, and on how much."""

    heads: list[HeadReport]
    sharing: list[Sharing]
    loss_nats: float
    passages: int
    tokens: int


def study(
    model: nn.Module,
    passages: Sequence[Passage],
    batches: Sequence[Batch],
    loss: Loss[Batch],
    *,
    repeats: Sequence[Passage] = (),
    rare: Sequence[int] = (),
    punctuation: Sequence[int] = (),
    on_progress: OnProgress | None = None,
) -> Study:
    """Look at every head of a model on passages, and measure what it is worth on batches."""
    witness, resemblance = Witness(model, rare, punctuation), Resemblance()
    for done, passage in enumerate(passages):
        sights = look(model, passage)
        witness.read(sights)
        resemblance.read(sights)
        if on_progress is not None:
            on_progress("looking", done + 1, len(passages))
    witness.probe(repeats)
    whole = mean_loss(model, batches, loss)
    ablation, gradient = by_ablation(model, batches, loss, on_progress, whole), by_gradient(model, batches, loss)
    likeness = _likeness(model, resemblance)
    symmetries = {
        f"{name}.{number}": symmetry(attention, place)
        for name, attention in attentions(model).items()
        for place, number in enumerate(attention.heads)
    }
    reports = [
        HeadReport(
            each.head, each, ablation[each.head], gradient[each.head], symmetries[each.head], likeness.get(each.head)
        )
        for each in witness.verdicts()
    ]
    sharing = [
        Sharing(name, *(shared_rank(part.weight) for part in (attention.query, attention.key, attention.value)))
        for name, attention in attentions(model).items()
    ]
    return Study(reports, sharing, whole, len(passages), sum(len(passage.tokens) for passage in passages))


def _likeness(model: Any, resemblance: Resemblance) -> dict[str, Likeness]:
    found = {}
    for name, attention in attentions(model).items():
        for head, (other, alike) in nearest_heads(resemblance, name, attention).items():
            here, there = (attention.heads.index(int(each.rpartition(".")[2])) for each in (head, other))
            found[head] = Likeness(other, alike, head_overlap(attention, here, there))
    return found
