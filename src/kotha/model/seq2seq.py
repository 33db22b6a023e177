"""Seq2Seq: the encoder-decoder transformer (Vaswani et al. 2017, https://arxiv.org/abs/1706.03762).

The source, the target and the head share one embedding table.
"""

import math
from collections.abc import Iterable
from typing import cast

from torch import Tensor, nn

from kotha.model.attention import Attention, KeysValues
from kotha.model.block import Block, Stack
from kotha.model.cache_interface import Cache
from kotha.model.config import Seq2SeqConfig
from kotha.model.initialization import initialize
from kotha.model.inputs import positions_of
from kotha.model.masks import decoder_mask, encoder_mask
from kotha.model.position import make_positions


class Seq2Seq(nn.Module):
    """Maps source and target to logits for the next target token: (B, S) and (B, T) -> (B, T, V)."""

    def __init__(self, config: Seq2SeqConfig) -> None:
        super().__init__()
        self.config = config
        self.tokens = nn.Embedding(config.vocab_size, config.d_model)
        self.positions = make_positions(config)
        self.dropout = nn.Dropout(config.dropout)
        self.encoder = Stack(config, [Block(config) for _ in range(config.n_layers)])
        self.decoder = Stack(config, [Block(config, cross=Attention(config)) for _ in range(config.n_decoder_layers)])
        self.head = nn.Linear(config.d_model, config.vocab_size, bias=config.head_bias)
        initialize(self, config)
        self.head.weight = self.tokens.weight

    def forward(self, source: Tensor, target: Tensor, real: Tensor | None = None) -> Tensor:
        """Logits: (B, S), (B, T) -> (B, T, V). ``real`` (B, S) is False at the source's padding.

        Padding after the target needs no mask, because earlier tokens do not attend to it.
        """
        logits: Tensor = self.head(self.hidden(source, target, real))
        return logits

    def hidden(self, source: Tensor, target: Tensor, real: Tensor | None = None) -> Tensor:
        """Return the input to the head: (B, S), (B, T) -> (B, T, C)."""
        return self.decode(target, self.encode(source, real), real)

    def encode(self, source: Tensor, real: Tensor | None = None) -> Tensor:
        """Return contextual vectors for the source tokens: (B, S) -> (B, S, C)."""
        x, positions = self._embed(source)
        y: Tensor = self.encoder(x, encoder_mask(real), self.positions.rotation(positions))
        return y

    def project_kv(self, encoded: Tensor) -> list[KeysValues]:
        """Project the encoded source, (B, S, C), to the keys and values of each decoder layer."""
        blocks = cast("Iterable[Block]", self.decoder.blocks)
        return [block.cross.project_kv(encoded) for block in blocks if block.cross is not None]

    def decode(
        self,
        target: Tensor,
        memories: Tensor | list[KeysValues],
        real: Tensor | None = None,
        cache: Cache | None = None,
    ) -> Tensor:
        """Return the input to the head: (B, T) -> (B, T, C). ``memories`` come from ``encode`` or ``project_kv``."""
        x, positions = self._embed(target, cache)
        mask = decoder_mask(None) if cache is None else cache.mask(target.shape[1])
        rotation = self.positions.rotation(positions)
        y: Tensor = self.decoder(x, mask, rotation, cache, memories, encoder_mask(real))
        return y

    def _embed(self, tokens: Tensor, cache: Cache | None = None) -> tuple[Tensor, Tensor]:
        """Return token vectors and positions: (B, T) -> (B, T, C) and (T,)."""
        positions = positions_of(tokens, self.config, cache)
        x = self.tokens(tokens) * math.sqrt(self.config.d_model)
        return self.dropout(self.positions(x, positions)), positions
