"""A GPT with constructed weights: a previous-token head, and an induction head in the next layer that uses it.

A token is a one-hot vector of size V, and a position is a one-hot vector of size P. Another V numbers contain the
previous token, which the first layer writes. LayerNorm only shifts and scales such vectors, which does not change the
result here.
"""

from typing import Any

import torch

from kotha.model.config import GPTConfig
from kotha.model.gpt import GPT

V, P = 40, 64
SHARP = 60.0


@torch.no_grad()
def wired(**changes: Any) -> GPT:
    """Head 0 in layer 0: previous token. Head 1 in layer 1: induction. The other heads attend uniformly."""
    torch.manual_seed(0)
    config = GPTConfig(
        vocab_size=V,
        context_length=P,
        d_model=2 * V + P,
        d_head=P,
        d_ff=4,
        n_layers=2,
        n_heads=2,
        tied_head=False,
        attention_bias=False,
        **changes,
    )
    model = GPT(config).eval()
    tokens, places, before = slice(0, V), slice(V, V + P), slice(V + P, 2 * V + P)
    model.tokens.weight.zero_()
    model.tokens.weight[:, tokens] = torch.eye(V)
    model.positions.table.weight.zero_()
    model.positions.table.weight[:, places] = torch.eye(P)
    for block in model.stack.blocks:
        block.attention.output.weight.zero_()
        block.feedforward.down.weight.zero_()
    first, second = (block.attention for block in model.stack.blocks)
    one, two = slice(0, P), slice(P, 2 * P)
    # Layer 0, head 0: the query at a position matches the position before it; the head copies the token to free
    # dimensions.
    set_head(first, one, query=torch.eye(P).roll(-1, 0), key=torch.eye(P), at=places)
    first.value.weight[one] = 0
    first.value.weight[:V, tokens] = torch.eye(V)
    first.output.weight[before, :V] = torch.eye(V)
    # Layer 1, head 1: the query is the token itself, the key is the token before a position.
    second.query.weight[two] = 0
    second.query.weight[P : P + V, tokens] = SHARP * torch.eye(V)
    second.key.weight[two] = 0
    second.key.weight[P : P + V, before] = torch.eye(V)
    second.value.weight[two] = 0
    second.value.weight[P : P + V, tokens] = torch.eye(V)
    second.output.weight[tokens, P : P + V] = 4 * torch.eye(V)
    model.head.weight.zero_()
    model.head.weight[:, tokens] = torch.eye(V)
    return model


def set_head(attention: Any, rows: slice, query: torch.Tensor, key: torch.Tensor, at: slice) -> None:
    attention.query.weight[rows] = 0
    attention.key.weight[rows] = 0
    attention.query.weight[rows, at] = SHARP * query
    attention.key.weight[rows, at] = key


def random_text(n: int, seed: int = 0) -> torch.Tensor:
    """Draw random tokens, some far more frequent than others: (T,)."""
    chance = torch.Generator().manual_seed(seed)
    return torch.multinomial(1 / torch.arange(1, V + 1), n, replacement=True, generator=chance)
