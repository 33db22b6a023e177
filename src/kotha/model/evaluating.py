"""Evaluation mode for a while, and then as before: nothing is dropped while a model is measured, watched or writes."""

from collections.abc import Iterator
from contextlib import contextmanager

from torch import nn


@contextmanager
def evaluating(model: nn.Module) -> Iterator[None]:
    """Without dropout inside the block, whatever happens there."""
    was_training = model.training
    if was_training:  # eval() walks through all modules, which a single step would feel
        model.eval()
    try:
        yield
    finally:
        if was_training:
            model.train()
