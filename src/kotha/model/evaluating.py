"""Temporary evaluation mode: no dropout during evaluation, inspection and generation."""

from collections.abc import Iterator
from contextlib import contextmanager

from torch import nn


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
