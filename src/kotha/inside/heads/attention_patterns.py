"""Attention patterns: where every head looks, passage by passage; passages made to be looked at; what that shows.

Beside a text's own passages there is a probe: random tokens that come twice. In such a text nothing can be known but
from its first half, so a head that finds the earlier place shows itself (Olsson et al. 2022,
https://arxiv.org/abs/2209.11895). The halves of each probe stand at another distance: a head that merely looks so many
tokens back cannot pass for one that recognises.

Evidence for a kind of head is how much weight lies where such a head would look, beside chance. A tally adds it up over
passages, for all heads of an attention at once. What a kind is, ``kinds.py`` says.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import torch
from torch import Tensor, nn

from kotha.errors import UsageError
from kotha.inside.hook_points import attentions
from kotha.inside.trace import trace
from kotha.model.evaluating import evaluating

# Long enough to find something again, short enough to be quick.
_PROBES, _SHORTEST, _LONGEST = 6, 6, 40
FEWEST_PROBED = 2 * _SHORTEST
THRESHOLD, BROAD_THRESHOLD = 0.5, 0.9
# From here on an unclear head leans to a kind.
LEANING = 0.25
FEWEST_CHOICES = 4  # a token that can look at three places says little
FEWEST_TOKENS = 16  # fewer say nothing


@dataclass(frozen=True)
class Passage:
    """Tokens that a model reads; of a Seq2Seq, source and target."""

    tokens: Tensor  # (T,)
    source: Tensor | None = None  # (S,)


@dataclass(frozen=True)
class Sight:
    """Where the heads of one attention looked in a passage."""

    attention: str
    weights: Tensor  # how much: (H, T, S)
    allowed: Tensor  # who may look at whom: (T, S)
    asking: Tensor  # the tokens that look: (T,)
    asked: Tensor  # the tokens that are looked at: (S,)
    crosses: bool  # whether these are two texts

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
    body: Any = model
    with evaluating(model), trace(model, places=["*.weights", "*.masked_scores"]) as seen:
        body.hidden(*(tokens[None].to(device) for tokens in given))  # no attention is in the head
    found = []
    for name in attentions(model):
        weights, masked_scores = seen[f"{name}.weights"][0].cpu(), seen[f"{name}.masked_scores"][0, 0].cpu()
        crosses, encodes = name.endswith(".cross"), name.startswith("encoder.")
        asking, asked = given[0 if encodes else -1], given[0 if encodes or crosses else -1]
        found.append(Sight(name, weights.float(), ~masked_scores.isneginf(), asking, asked, crosses))
    return found


def probes(vocabulary: Sequence[int], context_length: int, translates: bool = False, seed: int = 0) -> list[Passage]:
    """Random tokens that come twice, at another distance in each passage.

    >>> [len(set(each.tokens.tolist())) * 2 == len(each.tokens) for each in probes(range(100), 32)][:2]
    [True, True]
    """
    longest = min(context_length // 2, _LONGEST)
    if longest < _SHORTEST:
        raise UsageError(
            "a context of {n} is too short to show something twice; {fewest} will do",
            n=context_length,
            fewest=FEWEST_PROBED,
        )
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


@dataclass(frozen=True)
class ClearestCase:
    """The clearest case of a kind: a token, and the one it looks at."""

    asking: int
    asked: int
    distance: int  # places from one to the other; -1 is the one before
    weight: float


@dataclass(frozen=True)
class Evidence:
    """How much a head is of one kind."""

    kind: str
    score: float  # from chance (0) to always (1)
    share: float  # of its weight, on average over the tokens that could look there
    chance: float  # the same for an even look
    tokens: int  # tokens that could look there
    case: ClearestCase | None = None
    offset: int | None = None  # of a positional head: how many places away

    @property
    def threshold(self) -> float:
        """The score from which the kind is named."""
        return BROAD_THRESHOLD if self.kind == "broad" else THRESHOLD

    @property
    def name(self) -> str:
        """The kind, with its offset."""
        return self.kind if self.offset is None else f"{self.kind} ({self.offset:+d})"


@dataclass
class Tally:
    """A kind's sums over passages, for all heads of an attention."""

    share: Tensor
    chance: float = 0.0
    tokens: int = 0
    by_token: dict[int, Tensor] | None = None
    """The share of each token that is looked at, where one alone does not make the kind."""
    cases: dict[int, ClearestCase] = field(default_factory=dict)

    def add(self, sight: Sight, pattern: Tensor) -> None:
        """Take a passage in; ``pattern`` (T, S) is True where such a head would look."""
        target = pattern & sight.allowed
        n_allowed, n_target = sight.n_allowed, target.sum(dim=-1)  # each (T,)
        counted = (n_allowed >= FEWEST_CHOICES) & (n_target > 0) & (n_target < n_allowed)
        if not counted.any():
            return
        on_target = sight.weights * (target & counted[:, None])  # (H, T, S)
        self.count(on_target.sum(dim=(1, 2)), float((n_target / n_allowed)[counted].sum()), int(counted.sum()))
        if self.by_token is not None:
            for place in target[counted].any(dim=0).nonzero().flatten().tolist():
                token, more = int(sight.asked[place]), on_target[:, :, place].sum(dim=-1)
                self.by_token[token] = self.by_token.get(token, 0) + more
        best, flat = on_target.flatten(1).max(dim=-1)
        at, to = flat // len(sight.asked), flat % len(sight.asked)
        self.keep_cases(sight, best, at, to)

    def count(self, share: Tensor, chance: float, tokens: int) -> None:
        """Add so much weight of each head, (H,), beside what chance would have given to as many tokens."""
        self.share += share
        self.chance += chance
        self.tokens += tokens

    def keep_cases(self, sight: Sight, best: Tensor, at: Tensor, to: Tensor) -> None:
        """Of each head the clearest case: its weight, who looks, and at whom, each (H,)."""
        for head, (weight, here, there) in enumerate(zip(best.tolist(), at.tolist(), to.tolist(), strict=True)):
            if head not in self.cases or weight > self.cases[head].weight:
                self.cases[head] = ClearestCase(int(sight.asking[here]), int(sight.asked[there]), there - here, weight)

    def evidence(self, kind: str, head: int, offset: int | None = None) -> Evidence | None:
        """What was found of a head; None where too few tokens could have shown it."""
        if self.tokens < FEWEST_TOKENS:
            return None
        share, chance = float(self.share[head]) / self.tokens, self.chance / self.tokens
        favourite = max((float(each[head]) for each in (self.by_token or {}).values()), default=0.0) / self.tokens
        score = min(1.0, max(0.0, (share - favourite - chance) / (1 - chance)))
        return Evidence(kind, score, share, chance, self.tokens, self.cases[head], offset)


def add_offsets(sight: Sight, tallies: Mapping[int, Tally]) -> None:
    """Take a passage into the tallies of heads that look so many places away, all of them at once."""
    offsets = torch.tensor(list(tallies))  # (O,)
    places = torch.arange(len(sight.asking))[:, None] + offsets  # (T, O)
    there = places.clamp(0, len(sight.asked) - 1)
    counted = (places == there) & sight.allowed.gather(1, there) & (sight.n_allowed >= FEWEST_CHOICES)[:, None]
    on_target = sight.weights.gather(2, there.expand(len(sight.weights), -1, -1))  # (H, T, O)
    shares = (on_target * counted).sum(dim=1)  # (H, O)
    best, at = on_target.masked_fill(~counted, -1).max(dim=1)  # each (H, O)
    chances = (counted / sight.n_allowed[:, None]).sum(dim=0).tolist()
    for column, (tokens, tally) in enumerate(zip(counted.sum(dim=0).tolist(), tallies.values(), strict=True)):
        if tokens:
            tally.count(shares[:, column], chances[column], tokens)
            tally.keep_cases(sight, best[:, column], at[:, column], at[:, column] + offsets[column])
