"""Sample tokens for a batch, where each row has its own settings, without synchronizing with the host.

The result is the same as in ``plain.py``, but only the best few logits are ranked. Top-k, top-p (nucleus) and min-p
exclude unlikely tokens, and one random number in [0, 1) selects from the rest. This number depends only on the row's
seed and step, so a row gives the same result alone or in a batch. Ranking the whole vocabulary would take longer than
all other operations together; with top-k only k tokens are ranked. On a CPU, ``row_sampling.py`` avoids the full
ranking for all settings.
"""

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from kotha.generation.settings import SamplingSettings


class SamplerParameters(NamedTuple):
    """The settings of each row; every field has shape (B,)."""

    temperature: Tensor
    top_k: Tensor
    top_p: Tensor
    min_p: Tensor
    penalty: Tensor


def sampler_parameters(settings: Sequence[SamplingSettings], vocab_size: int) -> Tensor:
    """Return the ``SamplerParameters`` of rows as one tensor, (5, B); disabled settings get values without effect."""
    rows = [
        (
            each.temperature,
            min(each.top_k or vocab_size, vocab_size),
            torch.inf if each.top_p is None else each.top_p,
            each.min_p or 0.0,
            each.repetition_penalty or 1.0,
        )
        for each in settings
    ]
    return torch.tensor(rows, dtype=torch.float32).T


def penalize(logits: Tensor, knobs: SamplerParameters, seen: Tensor) -> Tensor:
    """Apply the repetition penalty: logits (B, V) and a mask of the tokens present in each row (B, V) -> (B, V)."""
    penalty = knobs.penalty[:, None]
    return torch.where(seen, torch.where(logits > 0, logits / penalty, logits * penalty), logits)


def draw(logits: Tensor, knobs: SamplerParameters, numbers: Tensor, width: int, greedy: bool = True) -> Tensor:
    """Sample a token for each row: logits (B, V) and random numbers (B,) in [0, 1) -> (B,).

    ``width`` is the number of tokens to rank: the largest top-k, the vocabulary size if a row has no top-k, or 1 if all
    rows are greedy. ``greedy`` must be True if any row is greedy.
    """
    if width == 1:
        return logits.argmax(dim=-1)  # the first of equal logits
    values, ranked = logits.topk(min(width, logits.shape[-1]))  # (B, width), best first
    heat = knobs.temperature.clamp(min=1e-30)[:, None]
    weights = ((values - values[:, :1]) / heat).exp()  # 1 for the most likely token
    weights = weights * (torch.arange(weights.shape[1], device=logits.device) < knobs.top_k[:, None])
    reached = weights.cumsum(dim=-1)
    total = reached[:, -1:]  # the total that top-p refers to, after top-k
    kept = (reached - weights < knobs.top_p[:, None] * total) & (weights >= knobs.min_p[:, None]) & (weights > 0)
    reached = (weights * kept).cumsum(dim=-1)
    goal = numbers[:, None] * reached[:, -1:]
    rank = (reached <= goal).sum(dim=-1)  # the first whose cumulative weight exceeds the goal
    last = (kept.sum(dim=-1) - 1).clamp(min=0)  # NaN logits exclude all tokens; the caller reports this
    tokens = ranked.gather(1, torch.minimum(rank, last)[:, None])[:, 0]  # rounding may make the sum too small
    return torch.where(knobs.temperature == 0, logits.argmax(dim=-1), tokens) if greedy else tokens
