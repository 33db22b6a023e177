"""What is learned: each objective is a function of a model and a batch that gives the loss in nats."""

from collections.abc import Callable

import torch
from torch import Tensor

from kotha.model.gpt import GPT
from kotha.model.loss import next_token_loss, token_losses

# The body of a model up to its head; compiled or not.
Hidden = Callable[[Tensor], Tensor]


def next_token(model: GPT, hidden: Hidden, sequences: Tensor, label_smoothing: float = 0.0) -> Tensor:
    """Guess each token from those before it: (B, T + 1) -> ().

    ``hidden`` is ``model.hidden`` or its compiled twin; the head is applied inside the loss, a chunk at a time.
    """
    inputs, targets = sequences[:, :-1], sequences[:, 1:]
    return next_token_loss(hidden(inputs), model.head.weight, targets, model.head.bias, label_smoothing=label_smoothing)


@torch.no_grad()
def next_token_sum(model: GPT, hidden: Hidden, sequences: Tensor) -> Tensor:
    """The sum of the same over all targets, for measuring: (B, T + 1) -> ()."""
    inputs, targets = sequences[:, :-1], sequences[:, 1:]
    return token_losses(hidden(inputs), model.head.weight, targets, model.head.bias).double().sum()
