"""How much a head matters, asked in two ways (ablation, and a gradient by its gate), both in nats.

By **ablation**: the loss when the head is silent, less the loss as it is. It is what removing this head alone would
cost, and takes a pass over the text for each head. Below zero, the model does better without it.

By **gradient**: how steeply the loss falls as the head is turned up, ``|sum of output * d loss / d output|``, for each
example by itself and then on average (Michel et al. 2019, https://arxiv.org/abs/1905.10650). One pass forward and back
serves all heads; it is the slope at the whole model, so it can miss what only shows when a head is gone. As in the
paper the figures of a layer can be divided by their common length, which compares heads of a layer, not layers.

Neither says what several heads cost together: two that do the same are each worth little while the other is there.
The loss is whatever the caller measures: a function of the model and a batch that gives a mean.
"""

import math
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import torch
from torch import Tensor, nn

from kotha.errors import UsageError
from kotha.inside.heads.silence import every_head, gated, silence
from kotha.inside.sites import attentions
from kotha.model.evaluating import evaluating
from kotha.wording import OnProgress

Batch = TypeVar("Batch")
Loss = Callable[[Any, Batch], Tensor]


def mean_loss(model: nn.Module, batches: Sequence[Batch], loss: Loss[Batch]) -> float:
    """The loss of a model that is not learning, in nats; every batch counts as much."""
    if not batches:
        raise UsageError("there is nothing to measure on; give a text")
    with evaluating(model), torch.no_grad():
        return sum(loss(model, batch).double().item() for batch in batches) / len(batches)


def by_ablation(
    model: nn.Module,
    batches: Sequence[Batch],
    loss: Loss[Batch],
    on_progress: OnProgress | None = None,
    whole: float | None = None,
) -> dict[str, float]:
    """What the loss rises by, in nats, when each head alone is silent; ``whole`` is the loss, where it is known."""
    heads, found = every_head(model), {}
    whole = mean_loss(model, batches, loss) if whole is None else whole
    for done, head in enumerate(heads):
        with silence(model, [head]):
            found[head] = mean_loss(model, batches, loss) - whole
        if on_progress is not None:
            on_progress("silencing", done + 1, len(heads))
    return found


def by_gradient(
    model: nn.Module, batches: Sequence[Batch], loss: Loss[Batch], per_layer: bool = False
) -> dict[str, float]:
    """How steeply the loss falls with each head, in nats; ``per_layer`` divides by the length of a layer's figures."""
    if not batches:
        raise UsageError("there is nothing to measure on; give a text")
    sums = {name: torch.zeros(len(attention.heads)) for name, attention in attentions(model).items()}
    for batch in batches:
        for name, slopes in _slopes(model, batch, loss).items():
            # The loss is the mean of its rows, so a row's own slope is as many times larger as there are rows.
            sums[name] += slopes.abs().sum(dim=0).cpu() / len(batches)
    if per_layer:
        sums = {name: each / max(each.norm().item(), math.ulp(0.0)) for name, each in sums.items()}
    return dict(zip(every_head(model), torch.cat(list(sums.values())).tolist(), strict=True))


def _slopes(model: nn.Module, batch: Batch, loss: Loss[Batch]) -> dict[str, Tensor]:
    """The derivative of a batch's loss by a gate on each row's heads, for each attention: (B, H)."""
    gates: dict[str, Tensor] = {}

    def gate(name: str, outputs: Tensor) -> Tensor:
        gates[name] = torch.ones_like(outputs[:, :, :1, :1], requires_grad=True)
        return gates[name]

    with evaluating(model), gated(model, attentions(model), gate), torch.enable_grad():
        found = loss(model, batch)
        slopes = torch.autograd.grad(found, list(gates.values()))
    return {name: slope.detach()[:, :, 0, 0].float() for name, slope in zip(gates, slopes, strict=True)}


def least_important(importance: dict[str, float], count: int) -> list[str]:
    """The heads to remove first, least important first; every attention keeps its most important one.

    >>> least_important({"blocks.0.attention.0": 0.1, "blocks.0.attention.1": 0.3, "blocks.1.attention.0": 0.0}, 1)
    ['blocks.0.attention.0']
    """
    kept: dict[str, str] = {}
    for head in sorted(importance, key=lambda head: importance[head]):
        kept[head.rpartition(".")[0]] = head  # the last one stands
    free = sorted(importance.keys() - set(kept.values()), key=lambda head: (importance[head], head))
    if not 1 <= count <= len(free):
        raise UsageError(
            f"{count} heads cannot be removed; of {len(importance)} heads 1 to {len(free)} can go, as every attention "
            "keeps one"
        )
    return free[:count]
