"""How much arithmetic (FLOPs) a token is, part by part, counted on the built model without its memory.

A weight that multiplies takes 2 operations for each position, a product and a sum, and twice that going back: once for
its input's gradient, once for its own (only the latter in the first layer of a ViT, whose images need none). Embeddings
are looked up, which is no work. In attention, queries meet keys and weights meet values: this part grows with the
square of the length. All S positions count, also those that a causal mask hides; a kernel that skips them does half of
that part. Norms, bends and the softmax are left out.

The rule of thumb is 6 N operations a token for N parameters (Kaplan et al. 2020, https://arxiv.org/abs/2001.08361). It
counts tables that are looked up as work and leaves out the square; ``Work`` tells both.
"""

from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

from torch import nn

from kotha.model.config import (
    BERTClassifierConfig,
    BERTConfig,
    GPTClassifierConfig,
    ModelConfig,
    Seq2SeqConfig,
    ViTConfig,
)
from kotha.model.family import build
from kotha.model.parameters import count_parameters
from kotha.training.plan.activations import positions
from kotha.training.tasks.masked_words import CHOSEN

_FORWARD, _TRAINING = 2, 6
_PATCHES = 4  # of training: images need no gradients
PARTS = ("attention_matrices", "attention_scores", "feedforward", "head", "patches")


@dataclass(frozen=True)
class Work:
    """Floating-point operations for each position that is read; a Seq2Seq's source and target both count as read."""

    forward: dict[str, float]  # going forward, by part
    parameters: int

    @cached_property
    def training(self) -> dict[str, float]:
        """Forward and backward, by part."""
        times = {"patches": _PATCHES / _FORWARD}
        return {part: times.get(part, _TRAINING / _FORWARD) * value for part, value in self.forward.items()}

    @property
    def forward_per_token(self) -> float:
        """One position through the model."""
        return sum(self.forward.values())

    @property
    def training_per_token(self) -> float:
        """One position through the model and back."""
        return sum(self.training.values())

    @property
    def rule_of_thumb(self) -> float:
        """6 N, to compare with the count."""
        return _TRAINING * self.parameters

    def to_dict(self, tokens_per_step: int) -> dict[str, Any]:
        """Ready for JSON, with what a step takes."""
        return {
            "forward_per_token": self.forward,
            "training_per_token": self.training,
            "forward_per_token_total": self.forward_per_token,
            "training_per_token_total": self.training_per_token,
            "per_step": self.training_per_token * tokens_per_step,
            "rule_of_thumb_per_token": self.rule_of_thumb,
            "rule_of_thumb_ratio": self.rule_of_thumb / self.training_per_token,
        }


@lru_cache(maxsize=64)
def count_work(model: ModelConfig, context_length: int) -> Work:
    """Operations of a model on sequences of a length, by part.

    A BERT's word head works on the guessed places only. A Seq2Seq reads as long a source as its target.
    """
    n = positions(model, context_length)
    products = dict.fromkeys(PARTS, 0)
    for name, module in build(model, "meta").named_modules():
        if isinstance(module, nn.Linear):
            products[_part(name)] += _positions_met(model, name, n) * module.weight.numel()
    n_heads = sum(len(model.heads_of(name)) for name in model.attentions())  # of all attentions together
    products["attention_scores"] = 2 * n_heads * model.d_head * n * n  # queries with keys, weights with values
    read = 2 * n if isinstance(model, Seq2SeqConfig) else n
    forward = {part: _FORWARD * value / read for part, value in products.items()}
    return Work(forward, count_parameters(model).total)


def _part(name: str) -> str:
    if ".attention." in name or ".cross." in name:
        return "attention_matrices"
    if ".feedforward." in name:
        return "feedforward"
    return "patches" if name.startswith("patches") else "head"


def _positions_met(model: ModelConfig, name: str, n_positions: int) -> int:
    """Positions of one example that a layer works on."""
    match model, name.removeprefix("body.").split(".")[0]:
        case GPTClassifierConfig() | BERTClassifierConfig(), "head" | "pooler":
            return 1
        case BERTConfig(), "transform" | "head":
            return int(CHOSEN * n_positions)
        case (BERTConfig(), "pooler" | "pair_head") | (ViTConfig(), "head"):
            return 1
        case ViTConfig(), "patches":
            return n_positions - 1
    return n_positions
