"""Muon: momentum, taken to the nearest orthogonal matrix, so that every direction moves equally far.

The nearest orthogonal matrix is approached by five steps of a Newton-Schulz iteration: an odd polynomial of the matrix
that pushes all its singular values towards one (Jordan et al. 2024, https://kellerjordan.github.io/posts/muon/).

``torch.optim.Muon`` is the same, always in bfloat16. A CPU without bfloat16 products is many times slower at that, and
rounds differently once oneDNN has failed at one of them; here the iteration is in float32 on a CPU. A test compares
the two.
"""

import math
from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch import Tensor, nn

from kotha.train.distributed import rowwise

_COEFFICIENTS = (3.4445, -4.7750, 2.0315)
_STEPS = 5


class Muon(torch.optim.Optimizer):
    """For matrices only; the learning rate is scaled so that its updates are as large as AdamW's."""

    def __init__(
        self, params: Iterable[nn.Parameter], lr: float, weight_decay: float = 0.1, momentum: float = 0.95
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
            for parameter in group["params"]:
                if parameter.grad is not None:
                    self._move(parameter, parameter.grad, group)

    def _move(self, parameter: nn.Parameter, gradient: Tensor, group: dict[str, Any]) -> None:
        state = self.state[parameter]
        if "momentum" not in state:
            state["momentum"] = torch.zeros_like(gradient)
        momentum: Tensor = state["momentum"].lerp_(gradient, 1 - group["momentum"])
        ahead = gradient.lerp(momentum, group["momentum"])  # Nesterov: a look in the direction of the momentum
        parameter.mul_(1 - group["lr"] * group["weight_decay"])
        as_adamw = 0.2 * math.sqrt(max(parameter.shape))  # AdamW's updates have a root mean square of about 0.2
        update = rowwise(orthogonalize, ahead)  # it needs the whole matrix, wherever its rows are kept
        parameter.add_(update.to(parameter.dtype), alpha=-group["lr"] * as_adamw)


def orthogonalize(matrix: Tensor) -> Tensor:
    """Nearly the nearest orthogonal matrix: (m, n) -> (m, n), singular values between about 0.7 and 1.2."""
    a, b, c = _COEFFICIENTS
    x = matrix.bfloat16() if matrix.is_cuda else matrix.float()
    tall = x.shape[0] > x.shape[1]
    x = x.mT if tall else x  # so that x @ x.mT is the smaller product
    x = x / x.norm().clamp(min=1e-7)
    for _ in range(_STEPS):
        square = x @ x.mT
        x = a * x + (b * square + c * square @ square) @ x
    result: Tensor = x.mT if tall else x
    return result
