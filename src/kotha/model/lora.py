"""LoRA: train low-rank updates to frozen weight matrices (Hu et al. 2021, https://arxiv.org/abs/2106.09685).

A matrix W in an attention or feed-forward layer becomes W + scale B A, where A is (rank, in) and B (out, rank). For a
512 x 512 matrix, rank 8 means 8,192 trainable parameters. B starts at zero, so the model's output is unchanged at
first. In training, A and B are applied one after the other. Merging adds scale B A to W and gives an ordinary model.
The matrices keep their names; A and B are stored next to them as ``low_rank_down`` and ``low_rank_up``.
"""

import math
from collections.abc import Sequence

import torch
from torch import Tensor, nn
from torch.nn.functional import linear

from kotha.errors import ConfigError
from kotha.i18n.message import Option

DOWN, UP = "low_rank_down", "low_rank_up"


class LowRankLinear(nn.Linear):
    """A linear layer with frozen weights and a trainable low-rank update."""

    def __init__(self, base: nn.Linear, rank: int, scale: float) -> None:
        super().__init__(base.in_features, base.out_features, base.bias is not None, device="meta")
        self.weight, self.bias, self.scale = base.weight, base.bias, scale
        self.low_rank_down = nn.Parameter(base.weight.new_empty(rank, base.in_features))
        self.low_rank_up = nn.Parameter(base.weight.new_zeros(base.out_features, rank))
        nn.init.kaiming_uniform_(self.low_rank_down, a=math.sqrt(5))

    def forward(self, x: Tensor) -> Tensor:
        """(..., in) -> (..., out)."""
        update = linear(linear(x, self.low_rank_down), self.low_rank_up)
        return super().forward(x) + self.scale * update

    def merged(self) -> Tensor:
        """Return the weight with the update added: (out, in)."""
        return self.weight + self.scale * (self.low_rank_up @ self.low_rank_down)


def add_low_rank(model: nn.Module, rank: int, alpha: float, whole: Sequence[str] = ()) -> None:
    """Add low-rank updates to all attention and feed-forward matrices, and freeze the other parameters.

    Parameters whose names start with a prefix in ``whole``, such as ``head.``, are trained in full. The scale is
    ``alpha / rank``.

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
                "{rank} must be less than {narrowest}, the smaller dimension of {name}; use a smaller rank, such as 8",
                rank=Option("lora", rank),
                narrowest=narrowest,
                name=name,
            )
        parent, _, own = name.rpartition(".")
        setattr(model.get_submodule(parent), own, LowRankLinear(base, rank, alpha / rank))
    for name, parameter in model.named_parameters():
        if name.startswith(tuple(whole)) and whole:
            parameter.requires_grad = True


def is_low_rank(name: str) -> bool:
    """Return whether a parameter name is that of a low-rank matrix."""
    return name.rpartition(".")[2] in (DOWN, UP)


@torch.no_grad()
def merged_weights(model: nn.Module) -> dict[str, Tensor]:
    """Return the weights of the equivalent ordinary model, with a shared weight only under its first name."""
    adapted = {name: each for name, each in model.named_modules() if isinstance(each, LowRankLinear)}
    merged = {f"{name}.weight": each.merged() for name, each in adapted.items()}
    named = model.named_parameters()
    return {name: merged.get(name, each).detach() for name, each in named if not is_low_rank(name)}


def fully_trained_prefixes(family: str) -> tuple[str, ...]:
    """Return the name prefixes of the parameters that LoRA trains in full: those of a newly added head."""
    return ("head.", "body.pooler.") if family.endswith("-classifier") else ()
