"""Models with one part removed or replaced, built from parts of ``kotha.model``.

Each model is built as a normal GPT; then one part is replaced, and all weights are initialized again.
"""

import torch
from torch import Tensor, nn

from kotha.model.block import Block, Part, Stack
from kotha.model.cache_interface import Cache
from kotha.model.config import GPTConfig
from kotha.model.gpt import GPT
from kotha.model.initialization import initialize
from kotha.model.inputs import positions_of
from kotha.model.masks import encoder_mask
from kotha.model.position import NoPositions


class LooksAhead(GPT):
    """A GPT without the causal mask: every position attends to the full text, including the token to predict."""

    def hidden(self, tokens: Tensor, real: Tensor | None = None, cache: Cache | None = None) -> Tensor:
        """Return the input to the head: (B, T) -> (B, T, C)."""
        positions = positions_of(tokens, self.config)
        x = self.positions(self.tokens(tokens), positions)  # (B, T, C)
        y: Tensor = self.stack(self.dropout(x), encoder_mask(real), self.positions.rotation(positions))
        return y


class Filler(LooksAhead):
    """An encoder that predicts masked tokens; the mask token has a row in the embedding, but is never predicted.

    To generate text, a mask token is appended and replaced by the prediction, one token at a time.
    """

    def __init__(self, config: GPTConfig) -> None:
        super().__init__(config.replace(vocab_size=config.vocab_size + 1))
        self.hole = config.vocab_size
        self.head = nn.Linear(config.d_model, config.vocab_size, bias=False)
        initialize(self, config)

    def forward(self, tokens: Tensor, real: Tensor | None = None, cache: Cache | None = None) -> Tensor:
        """Append a mask token and return the logits; the last row predicts the next token: (B, T) -> (B, T, V)."""
        holes = torch.full_like(tokens[:, :1], self.hole)
        tokens = torch.cat((tokens, holes), dim=1)[:, -self.config.context_length :]
        logits: Tensor = self.head(self.hidden(tokens))
        return logits


class JoinedPositions(NoPositions):
    """Position embeddings that are concatenated to the token vectors instead of added."""

    def __init__(self, context_length: int, width: int) -> None:
        super().__init__()
        self.table = nn.Embedding(context_length, width)

    def forward(self, x: Tensor, positions: Tensor) -> Tensor:
        """Append the position embeddings: (B, T, C - width) -> (B, T, C)."""
        return torch.cat((x, self.table(positions).expand(*x.shape[:-1], -1)), dim=-1)


def with_joined_positions(config: GPTConfig, width: int) -> GPT:
    """Build a GPT whose vectors encode the position in ``width`` numbers and the token in the other numbers."""
    model = GPT(config)
    model.tokens = nn.Embedding(config.vocab_size, config.d_model - width)
    model.positions = JoinedPositions(config.context_length, width)
    initialize(model, config)
    return model


class OneWayBlock(Block):
    """A block without residual connections: the output of a part replaces its input."""

    def _residual(self, x: Tensor, norm: Part, part: Part) -> Tensor:
        drop: Part = self.dropout
        return drop(part(norm(x)))


def without_residuals(config: GPTConfig) -> GPT:
    """Build a GPT without residual connections."""
    model = GPT(config)
    model.stack = Stack(config, [OneWayBlock(config) for _ in range(config.n_layers)])
    initialize(model, config)
    return model
