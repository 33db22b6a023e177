"""BERT: an encoder with heads for masked words and for sentence pairs.

Devlin et al. 2018, https://arxiv.org/abs/1810.04805.
"""

from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn.functional import gelu

from kotha.i18n.message import Message
from kotha.model.block import Block, Stack
from kotha.model.config import BERTConfig
from kotha.model.initialization import initialize
from kotha.model.inputs import check_ids, positions_of
from kotha.model.masks import encoder_mask
from kotha.model.norm import make_norm
from kotha.model.position import make_positions


class BERTOutput(NamedTuple):
    """The outputs of BERT's heads."""

    token_logits: Tensor  # logits for the token at each position: (B, T, V)
    pair_logits: Tensor  # logits for whether the second sentence follows the first (0) or not (1): (B, 2)
    pooled: Tensor  # one vector for the whole text: (B, C)


class BERT(nn.Module):
    """Maps tokens to logits for each position and for the sentence pair."""

    def __init__(self, config: BERTConfig) -> None:
        super().__init__()
        self.config = config
        self.tokens = nn.Embedding(config.vocab_size, config.d_model)
        self.segments = nn.Embedding(config.n_segments, config.d_model)
        self.positions = make_positions(config)
        self.embedding_norm = make_norm(config)
        self.dropout = nn.Dropout(config.dropout)
        self.stack = Stack(config, [Block(config) for _ in range(config.n_layers)])
        self.pooler = nn.Linear(config.d_model, config.d_model)
        self.pair_head = nn.Linear(config.d_model, 2)
        self.transform = nn.Linear(config.d_model, config.d_model)
        self.transform_norm = make_norm(config)
        self.head = nn.Linear(config.d_model, config.vocab_size)
        initialize(self, config)
        self.head.weight = self.tokens.weight

    def forward(self, tokens: Tensor, segments: Tensor | None = None, real: Tensor | None = None) -> BERTOutput:
        """Apply both heads; ``segments`` (B, T) are sentence numbers, ``real`` (B, T) is False at padding."""
        hidden = self.hidden(tokens, segments, real)
        pooled = self.pool(hidden)
        return BERTOutput(self.head(self.guess(hidden)), self.pair_head(pooled), pooled)

    def hidden(self, tokens: Tensor, segments: Tensor | None = None, real: Tensor | None = None) -> Tensor:
        """Return contextual vectors for all tokens: (B, T) -> (B, T, C)."""
        positions = positions_of(tokens, self.config)
        segments = torch.zeros_like(tokens) if segments is None else segments
        check_ids(segments, self.config.n_segments, what=Message("segment id"), table=Message("the segment table"))
        x = self.positions(self.tokens(tokens) + self.segments(segments), positions)  # (B, T, C)
        x = self.dropout(self.embedding_norm(x))
        y: Tensor = self.stack(x, encoder_mask(real), self.positions.rotation(positions))
        return y

    def guess(self, hidden: Tensor) -> Tensor:
        """Return the input to the masked-word head: (B, T, C) -> (B, T, C)."""
        y: Tensor = self.transform_norm(gelu(self.transform(hidden)))
        return y

    def pool(self, hidden: Tensor) -> Tensor:
        """Return one vector for the text, computed from its first token: (B, T, C) -> (B, C)."""
        y: Tensor = self.pooler(hidden[:, 0]).tanh()
        return y
