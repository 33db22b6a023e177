"""A running average of the weights (EMA): smoother than any single step, and what is evaluated and kept.

Each update moves the average a little towards the weights (an exponential moving average). Early on it forgets faster,
so that the first random weights do not linger.
"""

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import Tensor, nn

from kotha.training.distributed import local


class Average:
    """The average of those of a model's parameters that learn, in float32."""

    def __init__(self, model: nn.Module, decay: float) -> None:
        self._decay = decay
        self.updates = 0
        self.tensors = {name: each.detach().float().clone() for name, each in _learning(model)}

    @torch.no_grad()
    def update(self, model: nn.Module) -> None:
        """Take the weights of this moment in."""
        self.updates += 1
        decay = min(self._decay, (1 + self.updates) / (10 + self.updates))
        weights = [local(each).float() for _, each in _learning(model)]
        torch._foreach_lerp_([local(each) for each in self.tensors.values()], weights, 1 - decay)

    def load(self, tensors: dict[str, Tensor], updates: int) -> None:
        """Go on from a saved average."""
        self.updates = updates
        for name, each in self.tensors.items():
            local(each).copy_(local(tensors[name]))


def _learning(model: nn.Module) -> Iterator[tuple[str, nn.Parameter]]:
    return ((name, each) for name, each in model.named_parameters() if each.requires_grad)


@contextmanager
def swapped_weights(model: nn.Module, tensors: dict[str, Tensor]) -> Iterator[None]:
    """The model with other weights, for the length of a block; those that are not given stay."""
    kept = {name: each.detach().clone() for name, each in model.named_parameters() if name in tensors}
    copy_into(model, tensors)
    try:
        yield
    finally:
        copy_into(model, kept)


@torch.no_grad()
def copy_into(model: nn.Module, tensors: dict[str, Tensor]) -> None:
    """Give a model's parameters the values of tensors of the same names; of sharded ones, the part that is here."""
    parameters = dict(model.named_parameters())
    for name, each in tensors.items():
        local(parameters[name]).copy_(local(each))
