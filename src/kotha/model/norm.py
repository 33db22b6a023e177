"""Norms: torch's LayerNorm, and RMSNorm with a readable reference implementation.

Unlike LayerNorm, RMSNorm subtracts no mean and has no bias: it only divides by the root mean square (Zhang and Sennrich
2019, https://arxiv.org/abs/1910.07467).
"""

import torch
from torch import Tensor, nn

from kotha.model.config import BlockConfig


class RMSNorm(nn.Module):
    """Scale each vector to a root mean square of 1, then by learned weights: (..., C) -> (..., C)."""

    def __init__(self, width: int, eps: float) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))
        self.eps = eps

    def forward(self, x: Tensor) -> Tensor:
        """Compute ``rms_norm`` in a single kernel."""
        weight = self.weight.to(x.dtype)  # under autocast x has a narrower type, but the kernel requires equal types
        return nn.functional.rms_norm(x, weight.shape, weight, self.eps)


def rms_norm(x: Tensor, weight: Tensor, eps: float) -> Tensor:
    """The readable reference implementation of RMSNorm: (..., C) -> (..., C).

    >>> rms_norm(torch.tensor([3.0, -3.0]), torch.ones(2), eps=1e-9)
    tensor([ 1., -1.])
    """
    mean_square = x.float().pow(2).mean(dim=-1, keepdim=True)  # (..., 1)
    return (x.float() * torch.rsqrt(mean_square + eps)).to(x.dtype) * weight


def make_norm(config: BlockConfig) -> nn.Module:
    """Return the norm module for a config, over the model's width."""
    if config.norm == "rms":
        return RMSNorm(config.d_model, config.norm_eps)
    return nn.LayerNorm(config.d_model, config.norm_eps)
