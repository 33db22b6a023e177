"""Sizes with which a lesson takes a second or two: enough to test the measurements, but not to learn."""

import torch
from torch import nn

from kotha.course.lessons.training_data import Sizes

TINY = Sizes(
    documents=14, held_out=4, context_length=16, d_model=16, n_layers=2, n_heads=2, batch_size=4, steps=8, vocab_size=96
)


def changed(model: nn.Module) -> torch.Tensor:
    """Return how much the output at each position changes with the last token: (T,)."""
    torch.manual_seed(0)
    tokens = torch.randint(5, 40, (1, 8))
    other = tokens.clone()
    other[0, -1] = (tokens[0, -1] + 1) % 40
    return (model(tokens) - model(other)).abs().amax(dim=-1)[0]


def loud(model: nn.Module) -> nn.Module:
    """Return an untrained model with larger weights, so that its outputs differ between positions."""
    with torch.no_grad():
        for weight in model.parameters():
            weight.mul_(8 if weight.dim() > 1 else 1)
    return model
