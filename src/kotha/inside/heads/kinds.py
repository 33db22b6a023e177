"""Classify attention heads (as induction heads, for example) by what they attend to, or as ``unclear``.

==================  ====================================================================  ==================
kind                attends to                                                            measured on
==================  ====================================================================  ==================
``induction``       the token after an earlier copy of the current one                    repeated tokens
``duplicate-token``  other copies of the current token                                    repeated tokens
``previous-token``  the token before                                                      the text
``current-token``   itself                                                                the text
``positional``      the token at one fixed offset                                         the text
``first-token``     the first token, as an attention sink that adds nothing               the text
``rare-word``       rare tokens: the rarest tenth of the text                             the text
``punctuation``     full stops, the danda, commas                                         the text
``broad``           everything, nearly uniformly                                          the text
``unclear``         none of these
==================  ====================================================================  ==================

A kind is defined by a pattern: the positions that such a head would attend to. A head's share is the fraction of its
attention weight at these positions, and chance is the same fraction under uniform attention. The score rescales the
share so that chance becomes 0 and full attention 1. A head is unclear if all its scores are below ``THRESHOLD``. The
score for ``broad`` is the mean entropy divided by the entropy of uniform attention.

Kinds measured on repeated tokens are checked first, because in text without repetition such a head attends to something
else, often the first token. For ``rare-word``, the token that receives the most attention is not counted, because
attention to a single token does not show a preference for rare tokens. The example shown for a kind always comes from
the text itself, even if the share was measured on random tokens.

Attention to repeated tokens is measured on probes: sequences of random tokens, each repeated once. The second half can
be predicted only from the first, so a head that attends to the earlier copy can be identified (Olsson et al. 2022,
https://arxiv.org/abs/2209.11895). The distance between the halves differs from probe to probe, so a head with a fixed
offset is not mistaken for one that matches tokens.

Voita et al. 2019 (https://arxiv.org/abs/1905.09418) describe positional, syntactic and rare-word heads. Syntactic heads
are not detected here, because that would need a parser for every language.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import accumulate
from typing import Any

import torch
from torch import Tensor, nn

from kotha.inside.hook_points import attentions
from kotha.inside.trace import trace
from kotha.model.evaluating import evaluating

# Number of probes, and the limits on the length of one half.
_PROBES, _SHORTEST, _LONGEST = 6, 6, 40
THRESHOLD, BROAD_THRESHOLD = 0.5, 0.9
# Minimum score at which a tendency is reported for an unclear head.
LEANING = 0.25
FEWEST_CHOICES = 4  # queries with fewer keys are not counted
_FEWEST_TOKENS = 16  # with fewer, no evidence is reported
_FARTHEST = 16  # largest offset of a positional head


@dataclass(frozen=True)
class Passage:
    """One input sequence; for a Seq2Seq, source and target."""

    tokens: Tensor  # (T,)
    source: Tensor | None = None  # (S,)

    @property
    def inputs(self) -> list[Tensor]:
        """The model's inputs, each (1, T)."""
        return [each[None] for each in (self.source, self.tokens) if each is not None]


@dataclass(frozen=True)
class AttentionPattern:
    """The weights of one attention module on a passage."""

    attention: str
    weights: Tensor  # (H, T, S)
    allowed: Tensor  # which keys each query may attend to: (T, S)
    query_tokens: Tensor  # query tokens: (T,)
    key_tokens: Tensor  # key tokens: (S,)
    crosses: bool  # whether this is cross-attention

    @cached_property
    def n_allowed(self) -> Tensor:
        """Number of keys that each query may attend to: (T,)."""
        return self.allowed.sum(dim=-1)

    @cached_property
    def offsets(self) -> Tensor:
        """Offset of each key from its query, where -1 is the preceding token: (T, S)."""
        return torch.arange(len(self.key_tokens))[None] - torch.arange(len(self.query_tokens))[:, None]


@torch.no_grad()
def look(model: nn.Module, passage: Passage) -> list[AttentionPattern]:
    """Run the model on a passage and return the weights of every attention module, on the CPU."""
    device = next(model.parameters()).device
    body: Any = model
    with evaluating(model), trace(model, hook_points=["*.weights", "*.masked_scores"]) as seen:
        body.hidden(*(tokens.to(device) for tokens in passage.inputs))  # the output head has no attention
    found = []
    for name in attentions(model):
        weights, masked_scores = seen[f"{name}.weights"][0].cpu(), seen[f"{name}.masked_scores"][0, 0].cpu()
        crosses, encodes = name.endswith(".cross"), name.startswith("encoder.")
        source = passage.tokens if passage.source is None else passage.source
        query_tokens, key_tokens = (
            source if encodes else passage.tokens,
            source if encodes or crosses else passage.tokens,
        )
        found.append(
            AttentionPattern(name, weights.float(), ~masked_scores.isneginf(), query_tokens, key_tokens, crosses)
        )
    return found


def probes(vocabulary: Sequence[int], context_length: int, translates: bool = False) -> list[Passage]:
    """Return random sequences of different lengths, each repeated once, or an empty list if the context is too short.

    >>> [len(set(each.tokens.tolist())) * 2 == len(each.tokens) for each in probes(range(100), 32)][:2]
    [True, True]
    """
    longest = min(context_length // 2, _LONGEST)
    if longest < _SHORTEST:
        return []
    chance, known = torch.Generator().manual_seed(0), torch.tensor(vocabulary)
    found = []
    # All lengths are close to the maximum, because longer probes give more evidence.
    for length in range(max(_SHORTEST, longest - 2 * _PROBES + 2), longest + 1, 2):
        if len(known) >= length:
            once = known[torch.randperm(len(known), generator=chance)[:length]]
        else:
            once = known[torch.randint(len(known), (length,), generator=chance)]
        twice = torch.cat((once, once))
        found.append(Passage(twice, twice if translates else None))
    return found


def rarest(counts: Sequence[int], share: float = 0.1, besides: Collection[int] = ()) -> set[int]:
    """Return the tokens that make up the rarest ``share`` of a text, given the count of each vocabulary token.

    >>> sorted(rarest([0, 90, 4, 4, 2]))
    [2, 3, 4]
    """
    occurring = sorted((count, token) for token, count in enumerate(counts) if count and token not in besides)
    reached = accumulate(count for count, _ in occurring)
    wanted = share * sum(count for count, _ in occurring)
    limit = next((count for (count, _), total in zip(occurring, reached, strict=True) if total >= wanted), 0)
    return {token for count, token in occurring if count <= limit}


# -- where a head of each kind attends --------------------------------------------------------------------------------

Pattern = Callable[[AttentionPattern], Tensor]  # True where such a head would attend: (T, S)


def _duplicates(observed: AttentionPattern) -> Tensor:
    return (observed.query_tokens[:, None] == observed.key_tokens) & (observed.offsets != 0)


def _after_duplicates(observed: AttentionPattern) -> Tensor:
    return torch.nn.functional.pad(_duplicates(observed)[:, :-1], (1, 0))


ON_REPEATS: dict[str, Pattern] = {"induction": _after_duplicates, "duplicate-token": _duplicates}


def _kind_at(offset: int, crosses: bool) -> tuple[str, int | None]:
    """Return the kind of a head with a fixed offset, and the offset if it is part of the kind's name."""
    if not crosses and offset in (-1, 0):
        return "previous-token" if offset else "current-token", None
    return "positional", offset


# -- evidence ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class ClearestCase:
    """The clearest example of a kind: a query token and the key token that it attends to."""

    query: int
    key: int
    distance: int  # offset of the key from the query; -1 is the token before
    weight: float


@dataclass(frozen=True)
class Evidence:
    """Evidence that a head is of one kind."""

    kind: str
    score: float  # 0: at chance; 1: always
    share: float  # mean share of its weight, over the queries that could attend there
    chance: float  # the same for uniform attention
    case: ClearestCase | None = None
    offset: int | None = None  # for a positional head

    @property
    def threshold(self) -> float:
        """Minimum score for a head to be of this kind."""
        return BROAD_THRESHOLD if self.kind == "broad" else THRESHOLD

    @property
    def name(self) -> str:
        """The kind, with its offset."""
        return self.kind if self.offset is None else f"{self.kind} ({self.offset:+d})"


@dataclass(frozen=True)
class HeadKind:
    """The kind of a head, with the evidence for it."""

    head: str
    kind: str
    evidence: Evidence | None  # for the named kind; for an unclear head, for the nearest kind
    scores: dict[str, Evidence]
    distance: float  # mean attention distance in tokens


@dataclass
class _Tally:
    """Accumulated sums for one kind, for all heads in an attention module."""

    share: Tensor | float = 0.0  # (H,)
    chance: float = 0.0
    tokens: int = 0
    by_token: dict[int, Tensor] = field(default_factory=dict)
    """Weight on each key token (``rare-word`` only), used to exclude the token with the most attention."""
    cases: dict[int, ClearestCase] = field(default_factory=dict)

    def add(self, observed: AttentionPattern, kind: str, pattern: Tensor, on_probe: bool) -> None:
        """Add a passage.

        Attention to repeated tokens is counted on probes, all other kinds on the text. The examples shown always come
        from the text.
        """
        target = pattern & observed.allowed
        n_allowed, n_target = observed.n_allowed, target.sum(dim=-1)  # each (T,)
        counted = (n_allowed >= FEWEST_CHOICES) & (n_target > 0) & (n_target < n_allowed)
        if not counted.any():
            return
        on_target = observed.weights * (target & counted[:, None])  # (H, T, S)
        if on_probe == (kind in ON_REPEATS):
            self.share += on_target.sum(dim=(1, 2))
            self.chance += float((n_target / n_allowed)[counted].sum())
            self.tokens += int(counted.sum())
        if kind == "rare-word":
            for place in target[counted].any(dim=0).nonzero().flatten().tolist():
                token, more = int(observed.key_tokens[place]), on_target[:, :, place].sum(dim=-1)
                self.by_token[token] = self.by_token.get(token, 0) + more
        if on_probe:
            return
        for head, (weight, place) in enumerate(zip(*map(Tensor.tolist, on_target.flatten(1).max(dim=-1)), strict=True)):
            if head not in self.cases or weight > self.cases[head].weight:
                here, there = divmod(place, len(observed.key_tokens))
                self.cases[head] = ClearestCase(
                    int(observed.query_tokens[here]), int(observed.key_tokens[there]), there - here, weight
                )

    def evidence(self, kind: str, head: int, offset: int | None) -> Evidence | None:
        """Return the evidence for a head, or None if there were too few tokens."""
        if self.tokens < _FEWEST_TOKENS or isinstance(self.share, float):
            return None
        share, chance = float(self.share[head]) / self.tokens, self.chance / self.tokens
        favourite = max((float(each[head]) for each in self.by_token.values()), default=0.0) / self.tokens
        score = min(1.0, max(0.0, (share - favourite - chance) / (1 - chance)))
        return Evidence(kind, score, share, chance, self.cases.get(head), offset)


class HeadClassifier:
    """Collects evidence about a model's heads from passages in a text and from probes."""

    def __init__(self, model: nn.Module, rare: Collection[int] = (), punctuation: Collection[int] = ()) -> None:
        self._model = model
        self._among = {"rare-word": torch.tensor(sorted(rare)), "punctuation": torch.tensor(sorted(punctuation))}
        self._tallies: dict[tuple[str, str, int | None], _Tally] = {}  # by attention, kind and offset
        self._evenness: dict[str, Tensor] = {}  # by attention (H, 3): sums of entropy and distance, number of tokens

    def read(self, observations: Iterable[AttentionPattern]) -> None:
        """Add the attention weights for a passage from the text."""
        for observed in observations:
            self._add(observed, self._patterns(observed), on_probe=False)
            counted = observed.n_allowed >= FEWEST_CHOICES  # (T,)
            entropy = torch.special.entr(observed.weights).sum(dim=-1) / observed.n_allowed.clamp(min=2).log()  # (H, T)
            distance = (observed.weights * observed.offsets.abs()).sum(dim=-1)  # (H, T)
            sums = [each[:, counted].sum(dim=-1) for each in (entropy, distance, torch.ones_like(entropy))]
            self._evenness[observed.attention] = self._evenness.get(observed.attention, 0) + torch.stack(sums, dim=-1)

    def probe(self, passages: Iterable[Passage]) -> None:
        """Run probes and add their weights."""
        for passage in passages:
            for observed in look(self._model, passage):
                self._add(observed, (), on_probe=True)

    def _patterns(self, observed: AttentionPattern) -> Iterator[tuple[str, int | None, Tensor]]:
        """Yield each kind measured on text, its offset, and where such a head would attend: (T, S) or (S,)."""
        yield "first-token", None, torch.arange(len(observed.key_tokens)) == 0
        for kind, tokens in self._among.items():
            yield kind, None, torch.isin(observed.key_tokens, tokens)
        for offset in range(-_FARTHEST, _FARTHEST + 1):
            yield *_kind_at(offset, observed.crosses), observed.offsets == offset

    def _add(
        self, observed: AttentionPattern, patterns: Iterable[tuple[str, int | None, Tensor]], on_probe: bool
    ) -> None:
        repeats = [(kind, None, pattern(observed)) for kind, pattern in ON_REPEATS.items() if not observed.crosses]
        for kind, offset, pattern in (*patterns, *repeats):
            tally = self._tallies.setdefault((observed.attention, kind, offset), _Tally())
            tally.add(observed, kind, pattern, on_probe)

    def verdicts(self) -> list[HeadKind]:
        """Return the kind of each head, in order."""
        found = []
        for name, attention in attentions(self._model).items():
            for place, number in enumerate(attention.heads):
                entropy, distance, tokens = self._evenness[name][place].tolist()
                scores = self._scores(name, place)
                if tokens >= _FEWEST_TOKENS:
                    even = min(1.0, entropy / tokens)
                    scores["broad"] = Evidence("broad", even, even, 1.0)
                found.append(HeadKind(f"{name}.{number}", *_verdict(scores), scores, distance / max(tokens, 1)))
        return found

    def _scores(self, name: str, place: int) -> dict[str, Evidence]:
        """Return the evidence for each kind; for positional heads, at the best offset."""
        scores: dict[str, Evidence] = {}
        for (attention, kind, offset), tally in self._tallies.items():
            evidence = tally.evidence(kind, place, offset) if attention == name else None
            if evidence is not None and (kind not in scores or evidence.score > scores[kind].score):
                scores[kind] = evidence
        return scores


def _verdict(scores: dict[str, Evidence]) -> tuple[str, Evidence | None]:
    """Return the kind and its evidence; for an unclear head, the evidence for the nearest kind."""
    repeats = [scores[kind] for kind in ON_REPEATS if kind in scores]
    others = [each for kind, each in scores.items() if kind not in (*ON_REPEATS, "broad")]
    for group in (repeats, others, [scores["broad"]] if "broad" in scores else []):
        best = max(group, key=lambda each: each.score, default=None)
        if best is not None and best.score >= best.threshold:
            return best.name, best
    return "unclear", max((*repeats, *others), key=lambda each: each.score, default=None)
