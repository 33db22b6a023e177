"""GPT: a decoder that predicts the next token.

The config selects GPT-2's classic layout (LayerNorm, learned positions, GELU) or Qwen3's modern one (RMSNorm, rotary
positions, QK-norm, SwiGLU). A tied head shares the token embedding's matrix.
"""

from torch import Tensor, nn

from kotha.model.block import Block, Stack
from kotha.model.cache_interface import Cache
from kotha.model.config import GPTConfig
from kotha.model.initialization import initialize
from kotha.model.inputs import positions_of
from kotha.model.masks import decoder_mask
from kotha.model.position import make_positions


class GPT(nn.Module):
    """Maps tokens to logits for the next token: (B, T) -> (B, T, V)."""

    def __init__(self, config: GPTConfig) -> None:
        super().__init__()
        self.config = config
        self.tokens = nn.Embedding(config.vocab_size, config.d_model)
        self.positions = make_positions(config)
        self.dropout = nn.Dropout(config.dropout)
        self.stack = Stack(config, [Block(config) for _ in range(config.n_layers)])
        self.head = nn.Linear(config.d_model, config.vocab_size, bias=config.head_bias)
        initialize(self, config)
        if config.tied_head:
            self.head.weight = self.tokens.weight

    def forward(self, tokens: Tensor, real: Tensor | None = None, cache: Cache | None = None) -> Tensor:
        """Logits: (B, T) -> (B, T, V). ``real`` (B, T) is False at padding."""
        logits: Tensor = self.head(self.hidden(tokens, real, cache))
        return logits

    def hidden(self, tokens: Tensor, real: Tensor | None = None, cache: Cache | None = None) -> Tensor:
        """Return the input to the head, for losses that compute logits in chunks: (B, T) -> (B, T, C)."""
        positions = positions_of(tokens, self.config, cache)
        mask = decoder_mask(real) if cache is None else cache.mask(tokens.shape[1])
        x = self.positions(self.tokens(tokens), positions)  # (B, T, C)
        y: Tensor = self.stack(self.dropout(x), mask, self.positions.rotation(positions), cache)
        return y
