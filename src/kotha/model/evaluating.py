"""Evaluation mode for a ``with`` block: no dropout, and activations that overflow become visible."""

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import Tensor, nn

from kotha.errors import NotFiniteError
from kotha.model.norm import RMSNorm

_INNER = ("query_norm", "key_norm")


@contextmanager
def evaluating(model: nn.Module) -> Iterator[None]:
    """Put a model in evaluation mode for the ``with`` block, then restore its mode."""
    was_training = model.training
    if was_training:  # eval() visits all modules, which is slow compared with one decoding step
        model.eval()
    try:
        yield
    finally:
        if was_training:
            model.train()


@contextmanager
def overflow_as_nan(*modules: nn.Module) -> Iterator[None]:
    """Make norms return NaN for a vector whose squares overflow; NaN then reaches the logits.

    Otherwise they would divide it by infinity. The result, zero, looks valid: the loss of such a model is that of a
    uniform guess. Norms of queries and keys are not changed, because fused attention ignores NaN.
    """
    named = (each for module in modules for each in module.named_modules())
    norms = (each for name, each in named if isinstance(each, RMSNorm | nn.LayerNorm) and not name.endswith(_INNER))
    handles = [each.register_forward_hook(_add_overflow) for each in norms]
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()


def _add_overflow(_: nn.Module, inputs: tuple[Tensor, ...], output: Tensor) -> Tensor:
    squares = inputs[0].float().square().sum(dim=-1, keepdim=True)  # (..., 1)
    return output + (squares * 0).to(output.dtype)  # infinity times 0 is NaN


def check_finite(values: Tensor) -> Tensor:
    """Return values of a model, such as logits; raise an error if one is NaN or infinite."""
    if not torch.isfinite(values).all():
        raise NotFiniteError
    return values
