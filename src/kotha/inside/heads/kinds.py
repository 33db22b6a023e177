"""Kinds of heads, induction heads among them: what each looks for, named only where the evidence is there.

==================  ====================================================================  ==================
kind                looks at                                                              seen on
==================  ====================================================================  ==================
``induction``       the token after an earlier one like this                              tokens that repeat
``duplicate-token``  another token like this                                              tokens that repeat
``previous-token``  the token before                                                      the text
``current-token``   itself                                                                the text
``positional``      the place so many tokens away                                         the text
``first-token``     the beginning: a place to rest, and to add nothing                    the text
``rare-word``       tokens as rare as the rarest tenth                                    the text
``punctuation``     stops, the danda, commas                                              the text
``broad``           everything, nearly evenly                                             the text
``unclear``         none of these
==================  ====================================================================  ==================

Each kind is a pattern: places where such a head would look. A head's share is the weight that it puts there; chance is
the share of a head that looks everywhere evenly; the score is how far it went from chance (0) to always (1). A kind is
named from ``THRESHOLD`` on; what only leans stays unclear. ``broad`` is the mean entropy over an even look's.
What repeats is judged first: such a head must rest somewhere when nothing repeats, often on the first token. For
``rare-word`` the token that a head looks at most does not count: one favourite is no taste for the rare. The clearest
case of a kind is always one of the text's own, also where the share was measured on random tokens.

Repeats are seen on probes: random tokens that come twice. In such a text nothing can be known but from its first half,
so a head that finds the earlier place shows itself (Olsson et al. 2022, https://arxiv.org/abs/2209.11895). The halves
of each probe stand at another distance: a head that merely looks so many tokens back cannot pass for one that
recognises.

Voita et al. 2019 (https://arxiv.org/abs/1905.09418) name positional, syntactic and rare-word heads; syntax needs a
parser, which nobody has for every language, so it is not judged here.
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

# Long enough to find something again, short enough to be quick.
_PROBES, _SHORTEST, _LONGEST = 6, 6, 40
THRESHOLD, BROAD_THRESHOLD = 0.5, 0.9
# From here on an unclear head leans to a kind.
LEANING = 0.25
FEWEST_CHOICES = 4  # a token that can look at three places says little
_FEWEST_TOKENS = 16  # fewer say nothing
_FARTHEST = 16  # places away, for a positional head


@dataclass(frozen=True)
class Passage:
    """Tokens that a model reads; of a Seq2Seq, source and target."""

    tokens: Tensor  # (T,)
    source: Tensor | None = None  # (S,)

    @property
    def inputs(self) -> list[Tensor]:
        """What the model is given: each (1, T)."""
        return [each[None] for each in (self.source, self.tokens) if each is not None]


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

    @cached_property
    def offsets(self) -> Tensor:
        """How far each place is ahead: (T, S); -1 is the token before."""
        return torch.arange(len(self.asked))[None] - torch.arange(len(self.asking))[:, None]


@torch.no_grad()
def look(model: nn.Module, passage: Passage) -> list[Sight]:
    """What every attention shows of one passage, on the CPU."""
    device = next(model.parameters()).device
    body: Any = model
    with evaluating(model), trace(model, places=["*.weights", "*.masked_scores"]) as seen:
        body.hidden(*(tokens.to(device) for tokens in passage.inputs))  # no attention is in the head
    found = []
    for name in attentions(model):
        weights, masked_scores = seen[f"{name}.weights"][0].cpu(), seen[f"{name}.masked_scores"][0, 0].cpu()
        crosses, encodes = name.endswith(".cross"), name.startswith("encoder.")
        source = passage.tokens if passage.source is None else passage.source
        asking, asked = source if encodes else passage.tokens, source if encodes or crosses else passage.tokens
        found.append(Sight(name, weights.float(), ~masked_scores.isneginf(), asking, asked, crosses))
    return found


def probes(vocabulary: Sequence[int], context_length: int, translates: bool = False) -> list[Passage]:
    """Random tokens that come twice, at another distance in each passage; none where the context has no room for them.

    >>> [len(set(each.tokens.tolist())) * 2 == len(each.tokens) for each in probes(range(100), 32)][:2]
    [True, True]
    """
    longest = min(context_length // 2, _LONGEST)
    if longest < _SHORTEST:
        return []
    chance, known = torch.Generator().manual_seed(0), torch.tensor(vocabulary)
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


def rarest(counts: Sequence[int], share: float = 0.1, besides: Collection[int] = ()) -> set[int]:
    """Tokens that are as rare as the rarest tenth of a text, by how often each token of the vocabulary occurs in it.

    >>> sorted(rarest([0, 90, 4, 4, 2]))
    [2, 3, 4]
    """
    met = sorted((count, token) for token, count in enumerate(counts) if count and token not in besides)
    reached = accumulate(count for count, _ in met)
    room = share * sum(count for count, _ in met)
    limit = next((count for (count, _), total in zip(met, reached, strict=True) if total >= room), 0)
    return {token for count, token in met if count <= limit}


# -- where a head of each kind looks ----------------------------------------------------------------------------------

Pattern = Callable[[Sight], Tensor]  # True where such a head would look: (T, S)


def _duplicates(sight: Sight) -> Tensor:
    return (sight.asking[:, None] == sight.asked) & (sight.offsets != 0)


def _after_duplicates(sight: Sight) -> Tensor:
    return torch.nn.functional.pad(_duplicates(sight)[:, :-1], (1, 0))


ON_REPEATS: dict[str, Pattern] = {"induction": _after_duplicates, "duplicate-token": _duplicates}


def _kind_at(offset: int, crosses: bool) -> tuple[str, int | None]:
    """Which kind a head is that looks so many places away."""
    if not crosses and offset in (-1, 0):
        return "previous-token" if offset else "current-token", None
    return "positional", offset


# -- evidence ---------------------------------------------------------------------------------------------------------


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


@dataclass(frozen=True)
class HeadKind:
    """What a head does, as far as can be said."""

    head: str
    kind: str
    evidence: Evidence | None  # of the kind that is named; of an unclear one, of the nearest
    scores: dict[str, Evidence]
    distance: float  # how far it looks, in tokens, on average


@dataclass
class _Tally:
    """A kind's sums over passages, for all heads of an attention."""

    share: Tensor | float = 0.0  # (H,)
    chance: float = 0.0
    tokens: int = 0
    by_token: dict[int, Tensor] = field(default_factory=dict)
    """The share of each token that is looked at, where one alone does not make the kind."""
    cases: dict[int, ClearestCase] = field(default_factory=dict)

    def add(self, sight: Sight, kind: str, pattern: Tensor, on_probe: bool) -> None:
        """Take a passage in. Repeats are counted on probes, and cited from the text, as all else is."""
        target = pattern & sight.allowed
        n_allowed, n_target = sight.n_allowed, target.sum(dim=-1)  # each (T,)
        counted = (n_allowed >= FEWEST_CHOICES) & (n_target > 0) & (n_target < n_allowed)
        if not counted.any():
            return
        on_target = sight.weights * (target & counted[:, None])  # (H, T, S)
        if on_probe == (kind in ON_REPEATS):
            self.share += on_target.sum(dim=(1, 2))
            self.chance += float((n_target / n_allowed)[counted].sum())
            self.tokens += int(counted.sum())
        if kind == "rare-word":
            for place in target[counted].any(dim=0).nonzero().flatten().tolist():
                token, more = int(sight.asked[place]), on_target[:, :, place].sum(dim=-1)
                self.by_token[token] = self.by_token.get(token, 0) + more
        if on_probe:
            return
        for head, (weight, place) in enumerate(zip(*map(Tensor.tolist, on_target.flatten(1).max(dim=-1)), strict=True)):
            if head not in self.cases or weight > self.cases[head].weight:
                here, there = divmod(place, len(sight.asked))
                self.cases[head] = ClearestCase(int(sight.asking[here]), int(sight.asked[there]), there - here, weight)

    def evidence(self, kind: str, head: int, offset: int | None) -> Evidence | None:
        """What was found of a head; None where too few tokens could have shown it."""
        if self.tokens < _FEWEST_TOKENS or isinstance(self.share, float):
            return None
        share, chance = float(self.share[head]) / self.tokens, self.chance / self.tokens
        favourite = max((float(each[head]) for each in self.by_token.values()), default=0.0) / self.tokens
        score = min(1.0, max(0.0, (share - favourite - chance) / (1 - chance)))
        return Evidence(kind, score, share, chance, self.cases.get(head), offset)


class Witness:
    """Watches the heads of a model over passages of a text and over probes, and says what they do."""

    def __init__(self, model: nn.Module, rare: Collection[int] = (), punctuation: Collection[int] = ()) -> None:
        self._model = model
        self._among = {"rare-word": torch.tensor(sorted(rare)), "punctuation": torch.tensor(sorted(punctuation))}
        self._tallies: dict[tuple[str, str, int | None], _Tally] = {}  # by attention, kind and places away
        self._evenness: dict[str, Tensor] = {}  # by attention (H, 3): entropy and distance, summed over tokens; these

    def read(self, sights: Iterable[Sight]) -> None:
        """Take in what a passage of the text showed."""
        for sight in sights:
            self._add(sight, self._patterns(sight), on_probe=False)
            counted = sight.n_allowed >= FEWEST_CHOICES  # (T,)
            entropy = torch.special.entr(sight.weights).sum(dim=-1) / sight.n_allowed.clamp(min=2).log()  # (H, T)
            distance = (sight.weights * sight.offsets.abs()).sum(dim=-1)  # (H, T)
            sums = [each[:, counted].sum(dim=-1) for each in (entropy, distance, torch.ones_like(entropy))]
            self._evenness[sight.attention] = self._evenness.get(sight.attention, 0) + torch.stack(sums, dim=-1)

    def probe(self, passages: Iterable[Passage]) -> None:
        """Look at tokens that repeat."""
        for passage in passages:
            for sight in look(self._model, passage):
                self._add(sight, (), on_probe=True)

    def _patterns(self, sight: Sight) -> Iterator[tuple[str, int | None, Tensor]]:
        """Each kind that a text shows, how many places away, and where such a head would look: (T, S), or (S,)."""
        yield "first-token", None, torch.arange(len(sight.asked)) == 0
        for kind, tokens in self._among.items():
            yield kind, None, torch.isin(sight.asked, tokens)
        for offset in range(-_FARTHEST, _FARTHEST + 1):
            yield *_kind_at(offset, sight.crosses), sight.offsets == offset

    def _add(self, sight: Sight, patterns: Iterable[tuple[str, int | None, Tensor]], on_probe: bool) -> None:
        repeats = [(kind, None, pattern(sight)) for kind, pattern in ON_REPEATS.items() if not sight.crosses]
        for kind, offset, pattern in (*patterns, *repeats):
            tally = self._tallies.setdefault((sight.attention, kind, offset), _Tally())
            tally.add(sight, kind, pattern, on_probe)

    def verdicts(self) -> list[HeadKind]:
        """What each head does, first to last."""
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
        """The evidence for each kind; of the places away, for the one that is looked at most."""
        scores: dict[str, Evidence] = {}
        for (attention, kind, offset), tally in self._tallies.items():
            evidence = tally.evidence(kind, place, offset) if attention == name else None
            if evidence is not None and (kind not in scores or evidence.score > scores[kind].score):
                scores[kind] = evidence
        return scores


def _verdict(scores: dict[str, Evidence]) -> tuple[str, Evidence | None]:
    """The kind to name, and why; of an unclear head, what comes nearest."""
    repeats = [scores[kind] for kind in ON_REPEATS if kind in scores]
    others = [each for kind, each in scores.items() if kind not in (*ON_REPEATS, "broad")]
    for group in (repeats, others, [scores["broad"]] if "broad" in scores else []):
        best = max(group, key=lambda each: each.score, default=None)
        if best is not None and best.score >= best.threshold:
            return best.name, best
    return "unclear", max((*repeats, *others), key=lambda each: each.score, default=None)
