"""Muon: momentum, taken to the nearest orthogonal matrix, so that every direction moves equally far.

The nearest orthogonal matrix is approached by five steps of a Newton-Schulz iteration: an odd polynomial of the matrix
that pushes all its singular values towards one (Jordan et al. 2024, https://kellerjordan.github.io/posts/muon/).

``torch.optim.Muon`` is the same, always in bfloat16. A CPU without bfloat16 products is many times slower at that, and
rounds differently once oneDNN has failed at one of them; here the iteration is in float32 on a CPU. A test compares
the two.
"""

import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from kotha.training.distributed import rowwise

_COEFFICIENTS = (3.4445, -4.7750, 2.0315)
_STEPS = 5


class Muon(torch.optim.Optimizer):
    """For matrices only; the learning rate is scaled so that its updates are as large as AdamW's."""

    def __init__(
        self, params: Iterable[nn.Parameter], lr: float | Tensor, weight_decay: float = 0.1, momentum: float = 0.95
    ) -> None:
        super().__init__(params, {"lr": lr, "weight_decay": weight_decay, "momentum": momentum})
        for group in self.param_groups:
            for parameter in group["params"]:
                assert parameter.dim() == 2, f"Muon is for matrices, not for shape {tuple(parameter.shape)}"

    @torch.no_grad()
    def step(self, closure: Callable[[], float] | None = None) -> Any:
        """Move every matrix that has a gradient."""
        assert closure is None, "this optimizer computes no losses"
        for group in self.param_groups:
            moving = [each for each in group["params"] if each.grad is not None]
            for alike in _batches(moving):
                self._move(alike, group)

    def _move(self, parameters: Sequence[nn.Parameter], group: dict[str, Any]) -> None:
        """Move matrices of one shape, all in one batch."""
        ahead = self._look_ahead(parameters, group["momentum"])
        # A sharded matrix is alone: it is needed whole, wherever its rows are kept.
        alone = len(ahead) == 1
        updates = rowwise(orthogonalize, ahead[0]) if alone else orthogonalize(torch.stack(ahead))
        as_adamw = 0.2 * math.sqrt(max(parameters[0].shape))  # AdamW's updates have a root mean square of about 0.2
        moves = updates.to(parameters[0].dtype) * (group["lr"] * as_adamw)
        weights = [each.data for each in parameters]
        torch._foreach_mul_(weights, 1 - group["lr"] * group["weight_decay"])
        torch._foreach_sub_(weights, [moves] if alone else [*moves])

    def _look_ahead(self, parameters: Sequence[nn.Parameter], share: float) -> list[Tensor]:
        """Nesterov: a look in the direction of the momentum."""
        gradients = [each.grad for each in parameters if each.grad is not None]
        for parameter, gradient in zip(parameters, gradients, strict=True):
            if "momentum" not in self.state[parameter]:
                self.state[parameter]["momentum"] = torch.zeros_like(gradient)
        momenta: list[Tensor] = [self.state[each]["momentum"] for each in parameters]
        torch._foreach_lerp_(momenta, gradients, 1 - share)
        if len(gradients) == 1:  # a sharded matrix is alone, and torch 2.11 has no such sum of lists of them
            return [gradients[0].lerp(momenta[0], share)]
        return [*torch._foreach_lerp(gradients, momenta, share)]


def _batches(parameters: Sequence[nn.Parameter]) -> Iterable[Sequence[nn.Parameter]]:
    """Matrices that can be made orthogonal together: on a GPU all of one shape, elsewhere each alone."""
    by_shape: dict[object, list[nn.Parameter]] = {}
    for place, each in enumerate(parameters):
        together = each.is_cuda and not hasattr(each, "full_tensor")
        by_shape.setdefault(each.shape if together else place, []).append(each)
    return by_shape.values()


def orthogonalize(matrix: Tensor) -> Tensor:
    """Nearly the nearest orthogonal matrix: (m, n) or (b, m, n) -> the same; singular values of about 0.7 to 1.2."""
    a, b, c = _COEFFICIENTS
    x = matrix.bfloat16() if matrix.is_cuda else matrix.float()
    tall = x.shape[-2] > x.shape[-1]
    x = x.mT if tall else x  # so that x @ x.mT is the smaller product
    x = x / x.norm(dim=(-2, -1), keepdim=True).clamp(min=1e-7)
    add_product = torch.addmm if x.dim() == 2 else torch.baddbmm  # a sum and a product, in one pass over memory
    for _ in range(_STEPS):  # a x + (b s + c s s) x, where s is x x^T
        square = x @ x.mT
        x = add_product(x, add_product(square, square, square, beta=b, alpha=c), x, beta=a)
    result: Tensor = x.mT if tall else x
    return result
