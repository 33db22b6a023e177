"""Sights: where every head of a model looks, passage by passage, and passages made to be looked at.

Beside a text's own passages there is a probe: random tokens that come twice. In such a text nothing can be known but
from its first half, so a head that finds the earlier place shows itself (Olsson et al. 2022,
https://arxiv.org/abs/2209.11895). The halves of each probe stand at another distance: a head that merely looks so many
tokens back cannot pass for one that recognises.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor, nn

from kotha.errors import UsageError
from kotha.inside.sites import attentions
from kotha.inside.trace import trace
from kotha.model.evaluating import evaluating

# Long enough to find something again, short enough to be quick.
_PROBES, _SHORTEST, _LONGEST = 6, 6, 40
FEWEST_PROBED = 2 * _SHORTEST


@dataclass(frozen=True)
class Passage:
    """Tokens that a model reads; of a Seq2Seq, source and target."""

    tokens: Tensor
    """(T,)."""
    source: Tensor | None = None
    """(S,)."""


@dataclass(frozen=True)
class Sight:
    """Where the heads of one attention looked in a passage."""

    attention: str
    weights: Tensor
    """How much: (H, T, S)."""
    allowed: Tensor
    """Who may look at whom: (T, S)."""
    asking: Tensor
    """The tokens that look: (T,)."""
    asked: Tensor
    """The tokens that are looked at: (S,)."""
    crosses: bool
    """Whether these are two texts."""

    @cached_property
    def n_allowed(self) -> Tensor:
        """How many places each token has to choose from: (T,)."""
        return self.allowed.sum(dim=-1)

    @property
    def offsets(self) -> Tensor:
        """How far each place is ahead: (T, S); -1 is the token before."""
        return torch.arange(len(self.asked))[None] - torch.arange(len(self.asking))[:, None]


@torch.no_grad()
def look(model: nn.Module, passage: Passage) -> list[Sight]:
    """What every attention shows of one passage, on the CPU."""
    device = next(model.parameters()).device
    given = [passage.tokens] if passage.source is None else [passage.source, passage.tokens]
    with evaluating(model), trace(model, places=["*.weights", "*.masked_scores"]) as seen:
        model(*(tokens[None].to(device) for tokens in given))
    return [
        _sight(name, seen[f"{name}.weights"][0].cpu(), seen[f"{name}.masked_scores"][0, 0].cpu(), passage)
        for name in attentions(model)
    ]


def _sight(name: str, weights: Tensor, masked_scores: Tensor, passage: Passage) -> Sight:
    source = passage.tokens if passage.source is None else passage.source
    crosses = name.endswith(".cross")
    asking = source if name.startswith("encoder.") else passage.tokens
    asked = source if crosses or name.startswith("encoder.") else passage.tokens
    return Sight(name, weights.float(), ~masked_scores.isneginf(), asking, asked, crosses)


def probes(vocabulary: Sequence[int], context_length: int, translates: bool = False, seed: int = 0) -> list[Passage]:
    """Random tokens that come twice, at another distance in each passage.

    >>> [len(set(each.tokens.tolist())) * 2 == len(each.tokens) for each in probes(range(100), 32)][:2]
    [True, True]
    """
    longest = min(context_length // 2, _LONGEST)
    if longest < _SHORTEST:
        raise UsageError(f"a context of {context_length} is too short to show something twice; {FEWEST_PROBED} will do")
    chance, known = torch.Generator().manual_seed(seed), torch.tensor(vocabulary)
    found = []
    # A few different lengths, the longer ones rather: they show more.
    for length in range(max(_SHORTEST, longest - 2 * _PROBES + 2), longest + 1, 2):
        if len(known) >= length:
            once = known[torch.randperm(len(known), generator=chance)[:length]]
        else:
            once = known[torch.randint(len(known), (length,), generator=chance)]
        twice = torch.cat((once, once))
        found.append(Passage(twice, twice if translates else None))
    return found
