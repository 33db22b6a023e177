"""Sampling for a batch: each row with its own top-k, top-p (nucleus) and min-p, nothing looked at by the host.

The same choices as in ``plain.py``, made on the best few scores only: a row's tokens are ranked, its unlikely end is
cut off, and one number in [0, 1) points into what is left. That number belongs to the row's own seed and step, so a
row draws the same alone or in a batch. A full ranking of a vocabulary costs more than the rest together, so it is made
only where it is needed: a row with top-k needs no more than k places, and on a CPU the others are first tried with a
few hundred, which is enough whenever the number falls on one of them.
"""

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from kotha.generation.settings import SamplingSettings

# How many of the best are ranked first where a whole ranking might not be needed.
_FEW = 256


class Knobs(NamedTuple):
    """The settings of each row: every field (B,)."""

    temperature: Tensor
    top_k: Tensor
    top_p: Tensor
    min_p: Tensor
    penalty: Tensor


def knobs_of(settings: Sequence[SamplingSettings], vocab_size: int) -> Tensor:
    """The ``Knobs`` of rows in one tensor, (5, B); what is off gets the value that changes nothing."""
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


def penalize(logits: Tensor, knobs: Knobs, seen: Tensor) -> Tensor:
    """Scores after the repetition penalty: (B, V) and what each row has said, booleans (B, V) -> (B, V)."""
    penalty = knobs.penalty[:, None]
    return torch.where(seen, torch.where(logits > 0, logits / penalty, logits * penalty), logits)


def draw(logits: Tensor, knobs: Knobs, numbers: Tensor, width: int, greedy: bool = True) -> Tensor:
    """A token for each row: (B, V) and numbers (B,) in [0, 1) -> (B,).

    ``width`` is how many places of the ranking the rows need: the largest top-k, or the vocabulary where a row has
    none, or 1 where every row takes the best. ``greedy``: whether some row does.
    """
    if width == 1:
        return logits.argmax(dim=-1)  # the first where several are best
    few = width > _FEW and logits.device.type == "cpu"
    tokens, certain = _point(logits, knobs, numbers, _FEW if few else width, whole=width >= logits.shape[-1])
    if few and not bool((certain | (knobs.temperature == 0)).all()):
        tokens, _ = _point(logits, knobs, numbers, width)
    return torch.where(knobs.temperature == 0, logits.argmax(dim=-1), tokens) if greedy else tokens


def _point(logits: Tensor, knobs: Knobs, numbers: Tensor, width: int, whole: bool = False) -> tuple[Tensor, Tensor]:
    """What each number falls on among the best ``width`` tokens, and whether it is certain without the others: (B,).

    ``whole``: some row has no top-k, so that its share of all is needed although not all are ranked.
    """
    width, vocab_size = min(width, logits.shape[-1]), logits.shape[-1]
    values, tokens = logits.topk(width)  # (B, width), best first
    heat = knobs.temperature.clamp(min=1e-30)[:, None]
    weights = ((values - values[:, :1]) / heat).exp()  # of the best: 1
    places = torch.arange(width, device=logits.device)
    weights = weights * (places < knobs.top_k[:, None])
    reached = weights.cumsum(dim=-1)
    total = reached[:, -1:]  # what top-p is a share of: all that top-k left
    if whole and width < vocab_size:
        everything = ((logits - values[:, :1]) / heat).exp().sum(dim=-1, keepdim=True)
        total = torch.where(knobs.top_k[:, None] == vocab_size, everything, total)
    kept = (reached - weights < knobs.top_p[:, None] * total) & (weights >= knobs.min_p[:, None]) & (weights > 0)
    reached = (weights * kept).cumsum(dim=-1)
    unranked = knobs.top_k == vocab_size
    closed = (knobs.top_k <= width) | (unranked & ~kept[:, -1])  # nothing beyond the last place would be kept
    open_end = unranked & torch.isinf(knobs.top_p) & (knobs.min_p == 0)  # all beyond it would be
    goal = numbers * torch.where(closed, reached[:, -1], total[:, 0])
    place = (reached <= goal[:, None]).sum(dim=-1)  # the first that goes beyond
    certain = closed | (open_end & (goal < reached[:, -1]))
    last = (kept.sum(dim=-1) - 1).clamp(min=0)  # none is kept of scores that are no numbers; who draws will say so
    place = torch.minimum(place, last)[:, None]  # the sum was rounded down
    return tokens.gather(1, place)[:, 0], certain
