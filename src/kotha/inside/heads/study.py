"""A study of all heads: kind, importance and likeness, from one text.

Passages show where heads look; batches and a loss show what they are worth. ``study`` takes both from its caller and
knows neither how a text becomes batches nor what a model is trained for; ``measuring.py`` makes them.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from torch import nn

from kotha.i18n.message import Message, OnProgress
from kotha.inside.heads.attention_patterns import Passage, look
from kotha.inside.heads.importance import Batch, Loss, by_ablation, by_gradient, mean_loss
from kotha.inside.heads.kinds import HeadKind, Witness
from kotha.inside.heads.overlap import HeadWeights, Likeness, Resemblance, SharedRank, head_weights, nearest_heads
from kotha.inside.hook_points import attentions


@dataclass(frozen=True)
class HeadReport:
    """All that is known of one head."""

    head: str
    kind: HeadKind
    ablation: float  # what the loss rises by without it, in nats
    gradient: float  # how steeply the loss falls with it, in nats
    symmetry: float  # of W_Q W_K^T: 1 symmetric, one half by chance
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
    weights: Mapping[str, HeadWeights] | None = None,
    on_progress: OnProgress | None = None,
) -> Study:
    """Look at every head of a model on passages, and measure what it is worth on batches.

    Who studies a model on several texts keeps its ``weights`` (``overlap.head_weights``): they tell the same each time.
    """
    weights = weights or head_weights(model)
    witness, resemblance = Witness(model, rare, punctuation), Resemblance()
    for done, passage in enumerate(passages):
        sights = look(model, passage)
        witness.read(sights)
        resemblance.read(sights)
        if on_progress is not None:
            on_progress(Message("looking"), done + 1, len(passages))
    witness.probe(repeats)
    whole = mean_loss(model, batches, loss)
    ablation, gradient = by_ablation(model, batches, loss, on_progress, whole), by_gradient(model, batches, loss)
    kinds = {each.head: each for each in witness.verdicts()}
    reports, sharing = [], []
    for done, (name, attention) in enumerate(attentions(model).items()):
        if on_progress is not None:
            on_progress(Message("comparing"), done, len(weights))
        likenesses = nearest_heads(resemblance, name, weights[name])
        for place, number in enumerate(attention.heads):
            head = f"{name}.{number}"
            figures = (ablation[head], gradient[head], weights[name].symmetries[place])
            reports.append(HeadReport(head, kinds[head], *figures, likenesses.get(head)))
        sharing.append(Sharing(name, *weights[name].shared_ranks))
    return Study(reports, sharing, whole, len(passages), sum(len(passage.tokens) for passage in passages))
