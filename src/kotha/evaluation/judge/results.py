"""Results of a judging session: the wins of each model, Bradley–Terry strengths, and agreement between judges.

In the Bradley–Terry model (https://www.jstor.org/stable/2334029) a wins against b with probability e^a / (e^a + e^b);
a tie counts as half a win for each. Strengths are fitted by maximum likelihood (Newton's method) with mean 0; their
covariance is the inverse of the curvature. A model that won every comparison would have infinite strength, so ``prior``
ties (default: one) are added to every pair of models that were compared.

Agreement is Krippendorff's alpha for nominal data: 1 if judges always agree, 0 if they agree no more often than by
chance. This coefficient allows any number of judges and missing judgements
(https://en.wikipedia.org/wiki/Krippendorff's_alpha).
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any, Literal, NamedTuple, get_args

import numpy as np
from numpy.typing import NDArray

from kotha.errors import DataError
from kotha.evaluation.result import Measurement
from kotha.i18n.message import Message, Plural, Text
from kotha.i18n.short_repr import ShortRepr
from kotha.report.table import Table

Choice = Literal["left", "right", "tie"]
CHOICES: tuple[Choice, ...] = get_args(Choice)
Numbers = NDArray[np.float64]
_DEVIATIONS = 1.96  # for a 95 % interval
_ROUNDS, _CLOSE = 100, 1e-10


@dataclass(frozen=True, repr=False)
class BlindPair(ShortRepr):
    """Two continuations of one prompt; judges are never shown which model wrote which."""

    id: str
    prompt: str
    left: str
    right: str
    models: tuple[str, str]  # the models that wrote the left and the right text

    @classmethod
    def read(cls, values: dict[str, Any]) -> "BlindPair":
        """Read and validate a pair from the values in a file."""
        pair = cls(**{**values, "models": tuple(values["models"])})
        texts = (pair.id, pair.prompt, pair.left, pair.right, *pair.models)
        if not all(isinstance(text, str) for text in texts) or not len(pair.models) == len(set(pair.models)) == 2:
            raise ValueError("a pair needs an id, a prompt, and two texts by different models")
        "".join(texts).encode()  # a lone surrogate raises a ValueError too
        return pair


@dataclass(frozen=True)
class ModelStrength:
    """The result of one model."""

    model: str
    strength: float  # log odds in nats; the mean over all models is 0
    low: float  # 95 % interval
    high: float
    wins: int
    ties: int
    losses: int


@dataclass(frozen=True)
class PairwiseResult:
    """The result of comparing two models."""

    one: str
    other: str
    wins: int  # won by the first model
    ties: int
    losses: int
    chance: float  # probability that the first model wins, according to the strengths
    low: float
    high: float


@dataclass(frozen=True)
class Agreement:
    """Agreement between judges on pairs that were judged more than once."""

    things: int  # pairs judged by two or more judges
    share: float | None  # share of equal judgements among all pairs of judgements on the same texts
    alpha: float | None  # Krippendorff's alpha; None if no pair was judged twice, or all judgements are the same


@dataclass(frozen=True, repr=False)
class JudgingResult(Measurement):
    """The results of a judging session, strongest model first."""

    standings: tuple[ModelStrength, ...]
    meetings: tuple[PairwiseResult, ...]
    agreement: Agreement
    judges: dict[str, int]  # number of pairs that each judged
    pairs: int
    same: int  # number of pairs with equal texts, which are not shown to judges
    first_chosen: float | None  # share of decided judgements for the first text; 0.5 unless the order biases judges


class Strengths(NamedTuple):
    """Strengths as log odds in nats with mean 0, and their covariance."""

    values: Numbers  # (n,)
    covariance: Numbers  # (n, n)

    def interval(self, weights: Numbers) -> tuple[float, float, float]:
        """Return the 95 % interval of a weighted sum of strengths: low, middle, high."""
        middle, half = weights @ self.values, _DEVIATIONS * np.sqrt(weights @ self.covariance @ weights)
        return float(middle - half), float(middle), float(middle + half)


def fit_strengths(wins: Numbers, prior: float = 1.0) -> Strengths:
    """Fit strengths to the wins of row against column; a tie is half a win for each: (n, n) -> (n,) and (n, n).

    >>> found = fit_strengths(np.array([[0.0, 3.0], [1.0, 0.0]]), prior=0.0)
    >>> round(float(np.exp(found.values[0] - found.values[1])), 6)  # it won three times as often
    3.0
    """
    n, met = len(wins), (wins + wins.T > 0).astype(float)
    if n < 2 or not np.linalg.matrix_power(met + np.eye(n), n).all():
        raise DataError(
            "the models cannot be ranked, because the judged pairs do not connect all of them, even indirectly; judge "
            "more pairs"
        )
    counted = wins + prior / 2 * met
    games, won = counted + counted.T, counted.sum(axis=1)
    values = np.zeros(n)
    centre = np.full_like(games, 1 / n)  # fixes the mean, which the comparisons do not determine
    for _ in range(_ROUNDS):
        chances = 1 / (1 + np.exp(values[None] - values[:, None]))  # row wins against column
        curved = games * chances * (1 - chances)
        curvature = np.diag(curved.sum(axis=1)) - curved + centre
        step = np.linalg.solve(curvature, won - (games * chances).sum(axis=1))
        values = values + np.clip(step, -1, 1)
        if np.abs(step).max() < _CLOSE:
            break
    return Strengths(
        values - values.mean(), np.linalg.inv(curvature) - centre
    )  # relative to the mean, which has no variance


def judging_result(
    models: Sequence[str], pairs: Sequence[BlindPair], judgements: Mapping[str, Mapping[str, Choice]], same: int
) -> JudgingResult:
    """Compute the results from the judgements by judge and pair; ``same`` is the number of pairs with equal texts."""
    by_id = {pair.id: pair for pair in pairs}
    of_pair = defaultdict[str, list[str]](list)
    outcomes = np.zeros((len(models), len(models), 3), dtype=np.int64)  # row's wins, ties, losses against column
    for choices in judgements.values():
        for pair, choice in choices.items():
            of_pair[pair].append(choice)
            left, right = map(models.index, by_id[pair].models)
            outcome = ("left", "tie", "right").index(choice)
            outcomes[left, right, outcome] += 1
            outcomes[right, left, 2 - outcome] += 1
    strengths, unit = fit_strengths(outcomes[..., 0] + outcomes[..., 1] / 2), np.eye(len(models))
    order = np.argsort(-strengths.values, kind="stable").tolist()
    standings = []
    for index in order:
        low, strength, high = strengths.interval(unit[index])
        standings.append(ModelStrength(models[index], strength, low, high, *outcomes[index].sum(axis=0).tolist()))
    meetings = []
    for one, other in combinations(order, 2):
        if outcomes[one, other].any():
            odds = strengths.interval(unit[one] - unit[other])
            low, chance, high = (float(1 / (1 + np.exp(-each))) for each in odds)
            wins, ties, losses = outcomes[one, other].tolist()
            meetings.append(PairwiseResult(models[one], models[other], wins, ties, losses, chance, low, high))
    counts = Counter(choice for choices in of_pair.values() for choice in choices)
    decided = counts["left"] + counts["right"]
    return JudgingResult(
        standings=tuple(standings),
        meetings=tuple(meetings),
        agreement=agreement(of_pair.values()),
        judges={judge: len(choices) for judge, choices in judgements.items()},
        pairs=len(pairs),
        same=same,
        first_chosen=counts["left"] / decided if decided else None,
    )


def agreement(judged: Iterable[Sequence[str]]) -> Agreement:
    """Compute Krippendorff's alpha for nominal data from the judgements on each pair.

    >>> found = agreement([["left", "left"], ["right", "right"], ["left", "right"]])
    >>> found.things, round(found.share or 0, 3), round(found.alpha or 0, 3)
    (3, 0.667, 0.444)
    """
    shared = [Counter(choices) for choices in judged if len(choices) > 1]
    total = sum(each.total() for each in shared)
    if not total:
        return Agreement(0, None, None)
    # Each pair of texts is weighted by its number of judgements.
    same = sum(n * (n - 1) / (each.total() - 1) for each in shared for n in each.values()) / total
    answers = sum(shared, Counter[str]())
    by_chance = sum(n * (n - 1) for n in answers.values()) / (total * (total - 1))
    return Agreement(len(shared), same, None if by_chance == 1 else 1 - (1 - same) / (1 - by_chance))


def judging_tables(result: JudgingResult) -> list[Table]:
    """Return tables of the standings and of the results for each pair of models, with remarks."""
    template = "{judge} judged {n:,} of {pairs:,}"
    judged = [Message(template, judge=judge, n=n, pairs=result.pairs) for judge, n in result.judges.items()]
    remarks = [
        Message(
            "strength: log odds in nats, relative to the mean (Bradley–Terry), with 95 % interval; {judged}",
            judged=judged,
        )
    ]
    things, share, alpha = vars(result.agreement).values()
    if share is not None:
        agree: Message = Plural(
            "judges agree on {share:.0%} of {n} shared pair",
            "judges agree on {share:.0%} of {n:,} shared pairs",
            n=things,
            share=share,
        )
        if alpha is not None:
            also = Message("Krippendorff's alpha {alpha:.2f}", alpha=alpha)
            agree = Message("{agree}, {alpha}", agree=agree, alpha=also)
        remarks.append(agree)
    if result.first_chosen is not None:
        template = "the text shown first was chosen in {share:.0%} of the decided judgements"
        remarks.append(Message(template, share=result.first_chosen))
    rows: list[list[Text]] = []
    for each in result.standings:
        interval = Message("{low} to {high}", low=f"{each.low:+.2f}", high=f"{each.high:+.2f}")
        rows.append([each.model, f"{each.strength:+.2f}", interval, *_counts(each)])
    met: list[list[Text]] = []
    for two in result.meetings:
        share, low, high = (f"{value:.0%}" for value in (two.chance, two.low, two.high))
        chance = Message("{share} ({low} to {high})", share=share, low=low, high=high)
        met.append([two.one, two.other, *_counts(two), chance])
    outcomes = [Message("wins"), Message("ties"), Message("losses")]
    header = [Message("model"), Message("strength"), Message("interval"), *outcomes]
    against = [Message("model"), Message("against"), *outcomes, Message("win probability")]
    return [Table("", header, rows, remarks), Table("", against, met)]


def _counts(each: ModelStrength | PairwiseResult) -> list[str]:
    return [f"{n:,}" for n in (each.wins, each.ties, each.losses)]
