"""A recurrent model beside the transformer (LSTM, Hochreiter and Schmidhuber 1997), of as many parameters."""

import torch
from torch import Tensor, nn

from kotha.model.config import GPTConfig
from kotha.model.gpt import GPT

_WIDEST = 1024


class Recurrent(nn.Module):
    """Tokens one after the other, all that was read in one vector: (B, T) -> (B, T, V)."""

    def __init__(self, vocab_size: int, width: int, n_layers: int) -> None:
        super().__init__()
        self.tokens = nn.Embedding(vocab_size, width)
        self.stack = nn.LSTM(width, width, n_layers, batch_first=True)
        self.head = nn.Linear(width, vocab_size, bias=False)

    def hidden(self, tokens: Tensor) -> Tensor:
        """What the head reads: (B, T) -> (B, T, C)."""
        y: Tensor = self.stack(self.tokens(tokens))[0]
        return y

    def forward(self, tokens: Tensor) -> Tensor:
        """Logits: (B, T) -> (B, T, V)."""
        logits: Tensor = self.head(self.hidden(tokens))
        return logits


def parameters_of(model: nn.Module) -> int:
    """How many numbers a model learns."""
    return sum(each.numel() for each in model.parameters())


def as_large_as(config: GPTConfig) -> Recurrent:
    """The recurrent model of as many layers whose number of parameters comes nearest to a GPT's."""
    with torch.device("meta"):
        wanted = parameters_of(GPT(config))
        # An LSTM layer has 8 width² where a block has 12, so it is the wider one.
        widths = range(1, min(_WIDEST, 2 * config.d_model) + 1)
        sizes = {width: parameters_of(Recurrent(config.vocab_size, width, config.n_layers)) for width in widths}
    best = min(sizes, key=lambda width: abs(sizes[width] - wanted))
    return Recurrent(config.vocab_size, best, config.n_layers)
