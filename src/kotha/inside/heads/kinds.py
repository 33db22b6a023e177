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
named from ``evidence.THRESHOLD`` on; what only leans stays unclear. ``broad`` is the mean entropy over an even look's.
What repeats is judged first: such a head must rest somewhere when nothing repeats, often on the first token. For
``rare-word`` the token that a head looks at most does not count: one favourite is no taste for the rare. The clearest
case of a kind is always one of the text's own, also where the share was measured on random tokens.

Voita et al. 2019 (https://arxiv.org/abs/1905.09418) name positional, syntactic and rare-word heads; syntax needs a
parser, which nobody has for every language, so it is not judged here. Induction: https://arxiv.org/abs/2209.11895.
"""

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor, nn

from kotha.inside.heads.attention_patterns import (
    FEWEST_CHOICES,
    FEWEST_TOKENS,
    Evidence,
    Passage,
    Sight,
    Tally,
    add_offsets,
    look,
)
from kotha.inside.hook_points import attentions

_FARTHEST = 16  # places away, for a positional head
ON_REPEATS = ("induction", "duplicate-token")
Pattern = Callable[[Sight], Tensor]
Tallies = dict[tuple[str, str, int | None], Tally]  # by attention, kind and places away


@dataclass(frozen=True)
class HeadKind:
    """What a head does, as far as can be said."""

    head: str
    kind: str
    evidence: Evidence | None  # of the kind that is named; of an unclear one, of the nearest
    scores: dict[str, Evidence]
    distance: float  # how far it looks, in tokens, on average


# -- patterns -------------------------------------------------------------------------------------------------------


def _first(sight: Sight) -> Tensor:
    return (torch.arange(len(sight.asked)) == 0).expand(len(sight.asking), -1)


def _among(tokens: Collection[int]) -> Pattern:
    wanted = torch.tensor(sorted(tokens))
    return lambda sight: torch.isin(sight.asked, wanted).expand(len(sight.asking), -1)


def _duplicates(sight: Sight) -> Tensor:
    return (sight.asking[:, None] == sight.asked) & (sight.offsets != 0)


def _after_duplicates(sight: Sight) -> Tensor:
    return torch.cat((torch.zeros(len(sight.asking), 1, dtype=torch.bool), _duplicates(sight)[:, :-1]), dim=1)


def rarest(counts: Sequence[int], share: float = 0.1, besides: Collection[int] = ()) -> set[int]:
    """Tokens that are as rare as the rarest tenth of a text, by how often each token of the vocabulary occurs in it.

    >>> sorted(rarest([0, 90, 4, 4, 2]))
    [2, 3, 4]
    """
    met = sorted((count, token) for token, count in enumerate(counts) if count and token not in besides)
    room, limit = share * sum(count for count, _ in met), 0
    for count, _ in met:
        limit = count
        room -= count
        if room <= 0:
            break
    return {token for count, token in met if count <= limit}


# -- judging --------------------------------------------------------------------------------------------------------


class Witness:
    """Watches the heads of a model over passages of a text and over probes, and says what they do."""

    def __init__(self, model: nn.Module, rare: Collection[int] = (), punctuation: Collection[int] = ()) -> None:
        self._model = model
        self._patterns: dict[str, Pattern] = {"first-token": _first}
        if rare:
            self._patterns["rare-word"] = _among(rare)
        if punctuation:
            self._patterns["punctuation"] = _among(punctuation)
        self._on_repeats = dict(zip(ON_REPEATS, (_after_duplicates, _duplicates), strict=True))
        self._n_heads = {name: len(attention.heads) for name, attention in attentions(model).items()}
        self._tallies: Tallies = {}
        self._repeats_in_text: Tallies = {}
        self._evenness = {name: torch.zeros(n, 2) for name, n in self._n_heads.items()}  # entropy and distance, summed
        self._tokens = dict.fromkeys(self._n_heads, 0)

    def read(self, sights: Iterable[Sight]) -> None:
        """Take in what a passage of the text showed."""
        for sight in sights:
            for kind, pattern in self._patterns.items():
                self._tally(sight, kind).add(sight, pattern(sight))
            for kind, pattern in self._on_repeats.items() if not sight.crosses else ():
                self._tally(sight, kind, among=self._repeats_in_text).add(sight, pattern(sight))
            offsets = range(-_FARTHEST, _FARTHEST + 1)
            add_offsets(sight, {each: self._tally(sight, *_named(each, sight.crosses)) for each in offsets})
            self._add_evenness(sight)

    def probe(self, passages: Iterable[Passage]) -> None:
        """Look at tokens that repeat."""
        for passage in passages:
            for sight in look(self._model, passage):
                if not sight.crosses:
                    for kind, pattern in self._on_repeats.items():
                        self._tally(sight, kind).add(sight, pattern(sight))

    def _tally(self, sight: Sight, kind: str, offset: int | None = None, among: Tallies | None = None) -> Tally:
        key, tallies = (sight.attention, kind, offset), self._tallies if among is None else among
        if key not in tallies:
            by_token: dict[int, Tensor] | None = {} if kind == "rare-word" else None
            tallies[key] = Tally(torch.zeros(self._n_heads[sight.attention]), by_token=by_token)
        return tallies[key]

    def _add_evenness(self, sight: Sight) -> None:
        counted = sight.n_allowed >= FEWEST_CHOICES  # (T,)
        entropy = torch.special.entr(sight.weights).sum(dim=-1) / sight.n_allowed.clamp(min=2).log()  # (H, T)
        distance = (sight.weights * sight.offsets.abs()).sum(dim=-1)  # (H, T)
        sums = [each[:, counted].sum(dim=-1) for each in (entropy, distance)]
        self._evenness[sight.attention] += torch.stack(sums, dim=-1)
        self._tokens[sight.attention] += int(counted.sum())

    def verdicts(self) -> list[HeadKind]:
        """What each head does, first to last."""
        found = []
        for name, attention in attentions(self._model).items():
            for place, number in enumerate(attention.heads):
                scores = self._scores(name, place)
                kind, evidence = _verdict(scores)
                distance = float(self._evenness[name][place, 1]) / max(self._tokens[name], 1)
                found.append(HeadKind(f"{name}.{number}", kind, evidence, scores, distance))
        return found

    def _scores(self, name: str, place: int) -> dict[str, Evidence]:
        """The evidence for each kind; of the places away, for the one that is looked at most."""
        scores: dict[str, Evidence] = {}
        for (attention, kind, offset), tally in self._tallies.items():
            evidence = tally.evidence(kind, place, offset) if attention == name else None
            if evidence is not None and kind in ON_REPEATS:  # a probe's random tokens are no words of the text
                in_text = self._repeats_in_text.get((name, kind, None))
                evidence = replace(evidence, case=None if in_text is None else in_text.cases.get(place))
            if evidence is not None and (kind not in scores or evidence.score > scores[kind].score):
                scores[kind] = evidence
        if self._tokens[name] >= FEWEST_TOKENS:
            even = min(1.0, float(self._evenness[name][place, 0]) / self._tokens[name])
            scores["broad"] = Evidence("broad", even, even, 1.0, self._tokens[name])
        return scores


def _named(offset: int, crosses: bool) -> tuple[str, int | None]:
    """Which kind a head is that looks so many places away."""
    if not crosses and offset in (-1, 0):
        return "previous-token" if offset else "current-token", None
    return "positional", offset


def _verdict(scores: dict[str, Evidence]) -> tuple[str, Evidence | None]:
    """The kind to name, and why; of an unclear head, what comes nearest."""
    repeats = [scores[kind] for kind in ON_REPEATS if kind in scores]
    others = [each for kind, each in scores.items() if kind not in (*ON_REPEATS, "broad")]
    for group in (repeats, others, [scores["broad"]] if "broad" in scores else []):
        best = max(group, key=lambda each: each.score, default=None)
        if best is not None and best.score >= best.threshold:
            return best.name, best
    return "unclear", max((*repeats, *others), key=lambda each: each.score, default=None)
