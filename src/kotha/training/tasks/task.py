"""What the loop asks of a task, so that one loop serves them all.

A task makes batches, each a function of seed and step; gives the losses of a batch; and measures a model on examples
that it does not learn from. It knows nothing of optimizers, checkpoints or machines.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import torch
from torch import Tensor, nn

from kotha.errors import ConfigError, KothaError
from kotha.i18n.message import Message
from kotha.model.config import TextConfig
from kotha.text.tokenizer.chat import ChatTemplate
from kotha.text.tokenizer.tokenizer import Tokenizer

Tensors = dict[str, Tensor]
Score = dict[str, float]
# The examples that a message speaks of.
TRAINING, VALIDATION = Message("training"), Message("validation")


@dataclass(frozen=True)
class Batch:
    """Some examples, ready for a model."""

    tensors: Tensors  # what the losses are computed from, by name; the first dimension counts the examples
    targets: dict[str, int]  # how many guesses each part of the loss is the mean of
    tokens: int  # positions that go through the model

    def to(self, device: torch.device) -> Tensors:
        """The tensors on a device; a GPU reads them while it still computes."""
        if device.type != "cuda":
            return self.tensors
        return {name: each.pin_memory().to(device, non_blocking=True) for name, each in self.tensors.items()}


class Task(Protocol):
    """Something to learn, and the examples to learn it from."""

    chat_template: ChatTemplate | None = None  # how a model that learned this takes turns, if it does

    @property
    def name(self) -> str:
        """What it is called in a run's config."""

    def batch(self, step: int, first: int, count: int) -> Batch:
        """``count`` examples of a step's batch, from ``first`` on."""

    def document_ids(self, step: int) -> list[int]:
        """Which documents or examples a step reads, to be named when something is wrong with them."""

    def set_total_steps(self, steps: int) -> None:
        """How many steps there will be, if on the way that becomes another number than the config's."""
        return

    def losses(self, model: Any, tensors: Tensors) -> Tensors:
        """The loss to go down on, in nats: for each part the mean over its targets."""

    @property
    def auxiliary_models(self) -> Sequence[nn.Module]:
        """Models that the losses read beside the one that learns."""
        return ()

    def measure(self, model: Any, tensors: Tensors) -> Tensors:
        """Sums over a batch that a score is made from: nats for each part, and what else counts."""

    def validation(self) -> Sequence[Batch]:
        """The examples that are never learned from."""

    def score(self, sums: dict[str, float], targets: dict[str, int]) -> Score:
        """How well a model does, from what ``measure`` gave, ``loss_nats`` among it."""

    def error(self, score: Score) -> float:
        """What a model still lacks by its score, 0 or more; the one that lacks least is the best."""
        return score["loss_nats"]

    def references(self) -> dict[str, float]:
        """Losses in nats to compare with, by name: what one reaches who knows nothing, or very little."""


class Learner(nn.Module):
    """A model with its task: one module to call and to wrap, in training and in measuring."""

    def __init__(self, model: nn.Module, task: Task) -> None:
        super().__init__()
        self.model = model
        self._task = task

    def forward(self, tensors: Tensors) -> Tensors:
        """Mean losses in training mode; sums to score by otherwise."""
        return (self._task.losses if self.training else self._task.measure)(self.model, tensors)


def check_vocabulary(model: TextConfig, tokenizer: Tokenizer, error: type[KothaError] = ConfigError) -> None:
    """Refuse a tokenizer with more tokens than a model knows."""
    if model.vocab_size < tokenizer.vocab_size:
        raise error(
            "the model knows {n:,} tokens and the tokenizer has {vocab_size:,}; use vocab_size={vocab_size}",
            n=model.vocab_size,
            vocab_size=tokenizer.vocab_size,
        )
