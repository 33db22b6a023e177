"""Models with one part left out or put otherwise: the family's own parts, swapped.

A GPT is built as ever, a part of it is exchanged, and its weights start anew by the family's own rule.
"""

import torch
from torch import Tensor, nn

from kotha.model.block import Block, Part, Stack
from kotha.model.cache import Cache
from kotha.model.config import GPTConfig
from kotha.model.gpt import GPT
from kotha.model.initialization import initialize
from kotha.model.inputs import positions_of
from kotha.model.masks import looking_around
from kotha.model.position import NoPositions


class LooksAhead(GPT):
    """A GPT without the causal mask: every position sees the whole text, also what it is to guess."""

    def hidden(self, tokens: Tensor, real: Tensor | None = None, cache: Cache | None = None) -> Tensor:
        """What the head reads: (B, T) -> (B, T, C)."""
        positions = positions_of(tokens, self.config)
        x = self.positions(self.tokens(tokens), positions)  # (B, T, C)
        y: Tensor = self.stack(self.dropout(x), looking_around(real), self.positions.rotation(positions))
        return y


class Filler(LooksAhead):
    """An encoder that fills holes: its table of tokens has one row more, the hole's; nobody answers with a hole.

    It writes as well as it can: a hole behind the text is filled, and again.
    """

    def __init__(self, config: GPTConfig) -> None:
        super().__init__(config.replace(vocab_size=config.vocab_size + 1))
        self.hole = config.vocab_size
        self.head = nn.Linear(config.d_model, config.vocab_size, bias=False)
        initialize(self, config)

    def forward(self, tokens: Tensor, real: Tensor | None = None, cache: Cache | None = None) -> Tensor:
        """Scores for the token behind a text, at the last place: (B, T) -> (B, T, V)."""
        holes = torch.full_like(tokens[:, :1], self.hole)
        tokens = torch.cat((tokens, holes), dim=1)[:, -self.config.context_length :]
        logits: Tensor = self.head(self.hidden(tokens))
        return logits


class JoinedPositions(NoPositions):
    """A row for each position, put behind the token's own numbers instead of onto them."""

    def __init__(self, context_length: int, width: int) -> None:
        super().__init__()
        self.table = nn.Embedding(context_length, width)

    def forward(self, x: Tensor, positions: Tensor) -> Tensor:
        """Tokens that are narrower by the width of the positions: (B, T, C - width) -> (B, T, C)."""
        return torch.cat((x, self.table(positions).expand(*x.shape[:-1], -1)), dim=-1)


def with_joined_positions(config: GPTConfig, width: int) -> GPT:
    """A GPT, as wide as ever, in which so many numbers of a vector tell the place and the others the token."""
    model = GPT(config)
    model.tokens = nn.Embedding(config.vocab_size, config.d_model - width)
    model.positions = JoinedPositions(config.context_length, width)
    initialize(model, config)
    return model


class OneWayBlock(Block):
    """A block without residual connections: what a part makes replaces what came in."""

    def _around(self, x: Tensor, norm: Part, part: Part) -> Tensor:
        drop: Part = self.dropout
        return drop(part(norm(x)))


def without_residuals(config: GPTConfig) -> GPT:
    """A GPT of such blocks."""
    model = GPT(config)
    model.stack = Stack(config, [OneWayBlock(config) for _ in range(config.n_layers)])
    initialize(model, config)
    return model
