"""Models with one part left out or put otherwise: the family's own parts, swapped.

A GPT is built as ever, a part of it is exchanged, and its weights start anew by the family's own rule.
"""

from torch import Tensor

from kotha.model.cache import Cache
from kotha.model.gpt import GPT
from kotha.model.inputs import positions_of
from kotha.model.masks import looking_around


class LooksAhead(GPT):
    """A GPT without the causal mask: every position sees the whole text, also what it is to guess."""

    def hidden(self, tokens: Tensor, real: Tensor | None = None, cache: Cache | None = None) -> Tensor:
        """What the head reads: (B, T) -> (B, T, C)."""
        positions = positions_of(tokens, self.config)
        x = self.positions(self.tokens(tokens), positions)  # (B, T, C)
        y: Tensor = self.stack(self.dropout(x), looking_around(real), self.positions.rotation(positions))
        return y
