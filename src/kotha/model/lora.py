"""LoRA: weights stay as they are, and a small product is learned beside each (Hu et al. 2021,
https://arxiv.org/abs/2106.09685).

A matrix W of attention or feed-forward becomes W + scale B A, where A is (rank, in) and B (out, rank): of 512 x 512
numbers, rank 8 learns 8,192. B begins as zeros, so the model begins as it was. Applied, the two products are taken one
after the other, and the sum is never built; merged, it is, and the model is one as any other. The matrices keep their
names, with ``low_rank_down`` and ``low_rank_up`` beside them.
"""

import math
from collections.abc import Sequence

import torch
from torch import Tensor, nn
from torch.nn.functional import linear

from kotha.errors import ConfigError

DOWN, UP = "low_rank_down", "low_rank_up"


class LowRankLinear(nn.Linear):
    """A linear layer whose own weights stay, with a product of two narrow matrices beside them."""

    def __init__(self, base: nn.Linear, rank: int, scale: float) -> None:
        super().__init__(base.in_features, base.out_features, base.bias is not None, device="meta")
        self.weight, self.bias, self.scale = base.weight, base.bias, scale
        self.low_rank_down = nn.Parameter(base.weight.new_empty(rank, base.in_features))
        self.low_rank_up = nn.Parameter(base.weight.new_zeros(base.out_features, rank))
        nn.init.kaiming_uniform_(self.low_rank_down, a=math.sqrt(5))

    def forward(self, x: Tensor) -> Tensor:
        """(..., in) -> (..., out)."""
        beside = linear(linear(x, self.low_rank_down), self.low_rank_up)
        return super().forward(x) + self.scale * beside

    def merged(self) -> Tensor:
        """The one matrix that says the same: -> (out, in)."""
        return self.weight + self.scale * (self.low_rank_up @ self.low_rank_down)


def add_low_rank(model: nn.Module, rank: int, alpha: float, whole: Sequence[str] = ()) -> None:
    """Put the products beside every matrix of attention and feed-forward; nothing else learns but what is ``whole``.

    ``whole`` are the beginnings of names, such as ``head.``; the scale is ``alpha / rank``.

    >>> model = nn.ModuleDict({"blocks": nn.Sequential(nn.Linear(4, 4)), "head": nn.Linear(4, 2)})
    >>> add_low_rank(model, rank=1, alpha=2.0, whole=["head."])
    >>> [name for name, each in model.named_parameters() if each.requires_grad]
    ['blocks.0.low_rank_down', 'blocks.0.low_rank_up', 'head.weight', 'head.bias']
    """
    for parameter in model.parameters():
        parameter.requires_grad = False
    for name, base in list(model.named_modules()):
        if type(base) is not nn.Linear or "blocks" not in name.split("."):
            continue
        narrowest = min(base.in_features, base.out_features)
        if rank >= narrowest:
            raise ConfigError(
                "lora={rank} must be less than {narrowest}, the smaller dimension of {name}; use a smaller "
                "rank, such as 8",
                rank=rank,
                narrowest=narrowest,
                name=name,
            )
        parent, _, own = name.rpartition(".")
        setattr(model.get_submodule(parent), own, LowRankLinear(base, rank, alpha / rank))
    for name, parameter in model.named_parameters():
        if name.startswith(tuple(whole)) and whole:
            parameter.requires_grad = True


def is_low_rank(name: str) -> bool:
    """Whether a parameter is one of the narrow matrices, by its name."""
    return name.rpartition(".")[2] in (DOWN, UP)


@torch.no_grad()
def merged_weights(model: nn.Module) -> dict[str, Tensor]:
    """The weights of a plain model that says the same, each once, by its first name."""
    adapted = {name: each for name, each in model.named_modules() if isinstance(each, LowRankLinear)}
    merged = {f"{name}.weight": each.merged() for name, each in adapted.items()}
    named = model.named_parameters()
    return {name: merged.get(name, each).detach() for name, each in named if not is_low_rank(name)}


def learned_whole(family: str) -> tuple[str, ...]:
    """What of a model learns whole beside the products, by the beginnings of its names: a head that is new."""
    return ("head.", "body.pooler.") if family.endswith("-classifier") else ()
