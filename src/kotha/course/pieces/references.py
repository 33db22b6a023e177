"""Our version of each piece, written plainly; a mistake in ``mistakes.json`` replaces parts of these lines.

Shapes: B batch, T positions, C model width, H heads, D head width, V vocabulary. The chapter ``docs/learn/build.md``
teaches the same names. Linear layers have biases here; a learner may leave them out, and ours are then 0.
"""

import math

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy, gelu


class AttentionPiece(nn.Module):
    """One causal head of scaled dot-product attention: (B, T, C) -> (B, T, D)."""

    def __init__(self, d_model: int, d_head: int) -> None:
        super().__init__()
        self.query = nn.Linear(d_model, d_head)
        self.key = nn.Linear(d_model, d_head)
        self.value = nn.Linear(d_model, d_head)

    def forward(self, x: Tensor) -> Tensor:
        """Mix the values of each position and those before it."""
        q, k, v = self.query(x), self.key(x), self.value(x)  # each (B, T, D)
        scores = q @ k.mT / math.sqrt(k.shape[-1])  # (B, T, T)
        future = torch.ones(scores.shape[-2:]).triu(1).bool()
        weights = scores.masked_fill(future, -math.inf).softmax(dim=-1)  # (B, T, T)
        mixed: Tensor = weights @ v  # (B, T, D)
        return mixed


class MultiHeadPiece(nn.Module):
    """Several heads side by side, mixed by one more matrix: (B, T, C) -> (B, T, C)."""

    def __init__(self, d_model: int, n_heads: int) -> None:
        super().__init__()
        self.n_heads = n_heads
        self.query = nn.Linear(d_model, d_model)
        self.key = nn.Linear(d_model, d_model)
        self.value = nn.Linear(d_model, d_model)
        self.output = nn.Linear(d_model, d_model)

    def forward(self, x: Tensor) -> Tensor:
        """Split the projections into heads, attend in each head, join, mix."""
        q, k, v = self.split(self.query(x)), self.split(self.key(x)), self.split(self.value(x))
        scores = q @ k.mT / math.sqrt(k.shape[-1])  # (B, H, T, T)
        future = torch.ones(scores.shape[-2:]).triu(1).bool()
        weights = scores.masked_fill(future, -math.inf).softmax(dim=-1)  # (B, H, T, T)
        mixed = weights @ v  # (B, H, T, D)
        joined: Tensor = self.output(mixed.transpose(1, 2).flatten(2))  # (B, T, C)
        return joined

    def split(self, x: Tensor) -> Tensor:
        """Split the width into heads: (B, T, C) -> (B, H, T, D)."""
        return x.view(*x.shape[:2], self.n_heads, -1).transpose(1, 2)


class FeedForwardPiece(nn.Module):
    """Widen each position, apply GELU, project back: (B, T, C) -> (B, T, C)."""

    def __init__(self, d_model: int, d_ff: int) -> None:
        super().__init__()
        self.up = nn.Linear(d_model, d_ff)
        self.down = nn.Linear(d_ff, d_model)

    def forward(self, x: Tensor) -> Tensor:
        """Apply both layers."""
        y: Tensor = self.down(gelu(self.up(x)))
        return y


class BlockPiece(nn.Module):
    """A pre-norm block, as in GPT-2: (B, T, C) -> (B, T, C)."""

    def __init__(self, d_model: int, n_heads: int, d_ff: int) -> None:
        super().__init__()
        self.attention_norm = nn.LayerNorm(d_model)
        self.attention = MultiHeadPiece(d_model, n_heads)
        self.feedforward_norm = nn.LayerNorm(d_model)
        self.feedforward = FeedForwardPiece(d_model, d_ff)

    def forward(self, x: Tensor) -> Tensor:
        """Add the output of each part to its input."""
        x = x + self.attention(self.attention_norm(x))
        x = x + self.feedforward(self.feedforward_norm(x))
        return x  # noqa: RET504


class GPTPiece(nn.Module):
    """Tokens to logits for the next token: (B, T) -> (B, T, V)."""

    def __init__(
        self, vocab_size: int, context_length: int, d_model: int, n_heads: int, d_ff: int, n_layers: int
    ) -> None:
        super().__init__()
        self.tokens = nn.Embedding(vocab_size, d_model)
        self.positions = nn.Embedding(context_length, d_model)
        self.blocks = nn.ModuleList(BlockPiece(d_model, n_heads, d_ff) for _ in range(n_layers))
        self.norm = nn.LayerNorm(d_model)
        self.head = nn.Linear(d_model, vocab_size, bias=False)

    def forward(self, tokens: Tensor) -> Tensor:
        """Embed, apply all blocks, normalize, compute the scores."""
        places = torch.arange(tokens.shape[1])
        x = self.tokens(tokens) + self.positions(places)
        for block in self.blocks:
            x = block(x)
        logits: Tensor = self.head(self.norm(x))
        return logits


def loss(logits: Tensor, tokens: Tensor) -> Tensor:
    """Mean cross-entropy of each token after the first, predicted from those before it: (B, T, V), (B, T) -> ()."""
    guesses, targets = logits[:, :-1], tokens[:, 1:]
    return cross_entropy(guesses.flatten(0, 1), targets.flatten())


def sampling(logits: Tensor, temperature: float = 1.0, top_k: int | None = None, top_p: float | None = None) -> Tensor:
    """Return the probabilities from which the next token is sampled: (B, V) -> (B, V)."""
    logits = logits / temperature
    if top_k is not None:
        smallest = logits.topk(top_k).values[:, -1:]  # (B, 1)
        logits = logits.masked_fill(logits < smallest, -math.inf)
    if top_p is not None:
        ranked, order = logits.softmax(dim=-1).sort(descending=True)
        before = ranked.cumsum(dim=-1) - ranked  # the probability of all likelier tokens
        rest = (before >= top_p).gather(-1, order.argsort(dim=-1))
        logits = logits.masked_fill(rest, -math.inf)
    return logits.softmax(dim=-1)
