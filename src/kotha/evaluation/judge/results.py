"""What a judging comes to: who won how often, how strong each is, and how far judges agree.

Agreement is Krippendorff's alpha for names: 1 for judges who always agree, 0 for no more than chance. Any number of
judges will do, and not each must have seen everything.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any, Literal, get_args

import numpy as np

from kotha.evaluation.judge.bradley_terry import fit_strengths
from kotha.evaluation.measurement import Measurement
from kotha.i18n.message import Message, Plural, Text
from kotha.report.table import Table

Choice = Literal["left", "right", "tie"]
CHOICES: tuple[Choice, ...] = get_args(Choice)


@dataclass(frozen=True)
class BlindPair:
    """Two continuations of one prompt; whose they are is never shown."""

    id: str
    prompt: str
    left: str
    right: str
    models: tuple[str, str]  # who wrote the left one, who the right one

    @classmethod
    def read(cls, told: dict[str, Any]) -> "BlindPair":
        """A pair of a file: texts that can be shown and hashed, by two models."""
        pair = cls(**{**told, "models": tuple(told["models"])})
        texts = (pair.id, pair.prompt, pair.left, pair.right, *pair.models)
        if not all(isinstance(text, str) for text in texts) or not len(pair.models) == len(set(pair.models)) == 2:
            raise ValueError("a pair has a name, a prompt and two texts, by two models")
        "".join(texts).encode()  # half a letter (a lone surrogate) is a ValueError too
        return pair


@dataclass(frozen=True)
class Standing:
    """One model among those that were judged."""

    model: str
    strength: float  # in nats of odds; 0 is the mean of all
    low: float  # … and where it lies in 95 of 100 cases
    high: float
    wins: int
    ties: int
    losses: int


@dataclass(frozen=True)
class Meeting:
    """Two models against each other."""

    one: str
    other: str
    wins: int  # of the first
    ties: int
    losses: int
    chance: float  # that the first wins, by the strengths of both
    low: float
    high: float


@dataclass(frozen=True)
class Agreement:
    """How far judges agree on what more than one of them has judged."""

    things: int  # judged by two or more
    share: float | None  # of pairs of judgements on one thing that are the same
    alpha: float | None  # Krippendorff's; None where there is nothing to compare, or only one answer ever


@dataclass(frozen=True)
class JudgingResult(Measurement):
    """All of it; the strongest first."""

    standings: tuple[Standing, ...]
    meetings: tuple[Meeting, ...]
    agreement: Agreement
    judges: dict[str, int]  # how many pairs each judged
    pairs: int
    same: int  # pairs where both wrote the same; nobody was asked
    first_chosen: float | None  # share of decided judgements for the text shown first: near a half, unless order sways


def judging_result(
    models: Sequence[str], pairs: Sequence[BlindPair], said: Mapping[str, Mapping[str, Choice]], same: int
) -> JudgingResult:
    """What judges have said of pairs, by judge and pair; ``same`` pairs were no pairs."""
    by_id = {pair.id: pair for pair in pairs}
    judged = [(by_id[pair], choice) for choices in said.values() for pair, choice in choices.items()]
    number = {name: place for place, name in enumerate(models)}
    outcomes = np.zeros((len(number), len(number), 3), dtype=np.int64)  # row's wins, ties, losses against column
    for pair, choice in judged:
        left, right = (number[name] for name in pair.models)
        place = ("left", "tie", "right").index(choice)
        outcomes[left, right, place] += 1
        outcomes[right, left, 2 - place] += 1
    strengths = fit_strengths(outcomes[..., 0] + outcomes[..., 1] / 2)
    order = sorted(number.items(), key=lambda each: -strengths.values[each[1]])
    standings = [
        Standing(
            name, float(strengths.values[place]), *strengths.interval(place), *outcomes[place].sum(axis=0).tolist()
        )
        for name, place in order
    ]
    meetings = []
    for (one, place), (other, against) in combinations(order, 2):
        wins, ties, losses = outcomes[place, against].tolist()
        if wins or ties or losses:
            meetings.append(Meeting(one, other, wins, ties, losses, *strengths.chance(place, against)))
    of_pair = defaultdict[str, list[str]](list)
    for pair, choice in judged:
        of_pair[pair.id].append(choice)
    counts = Counter(choice for _, choice in judged)
    decided = counts["left"] + counts["right"]
    return JudgingResult(
        standings=tuple(standings),
        meetings=tuple(meetings),
        agreement=agreement(of_pair.values()),
        judges={judge: len(choices) for judge, choices in said.items()},
        pairs=len(pairs),
        same=same,
        first_chosen=counts["left"] / decided if decided else None,
    )


def agreement(judged: Iterable[Sequence[str]]) -> Agreement:
    """How far judges agree, from what was said of each thing: Krippendorff's alpha for names.

    It is 1 for judges who always agree, 0 for those who agree no more than by chance. Any number of judges will do, and
    not each must have seen everything (https://en.wikipedia.org/wiki/Krippendorff's_alpha).

    >>> found = agreement([["left", "left"], ["right", "right"], ["left", "right"]])
    >>> found.things, round(found.share or 0, 3), round(found.alpha or 0, 3)
    (3, 0.667, 0.444)
    """
    shared = [Counter(said) for said in judged if len(said) > 1]
    total = sum(each.total() for each in shared)
    if not total:
        return Agreement(0, None, None)
    # Each thing counts as many times as it was judged, however many pairs that makes.
    same = sum(n * (n - 1) / (each.total() - 1) for each in shared for n in each.values()) / total
    answers = sum(shared, Counter[str]())
    by_chance = sum(n * (n - 1) for n in answers.values()) / (total * (total - 1))
    return Agreement(len(shared), same, None if by_chance == 1 else 1 - (1 - same) / (1 - by_chance))


def judging_tables(result: JudgingResult) -> list[Table]:
    """Standings, and who won against whom, with what must be said below."""
    told = "{judge} judged {n:,} of {pairs:,}"
    judged = [Message(told, judge=judge, n=n, pairs=result.pairs) for judge, n in result.judges.items()]
    remarks = [
        Message("strength: nats of odds around the mean (Bradley–Terry), 95 % interval; {judged}", judged=judged)
    ]
    found = result.agreement
    if found.share is not None:
        agree = Plural(
            "judges agree on {share:.0%} of {n} shared pair",
            "judges agree on {share:.0%} of {n:,} shared pairs",
            n=found.things,
            share=found.share,
        )
        alpha = None if found.alpha is None else Message("Krippendorff's alpha {alpha:.2f}", alpha=found.alpha)
        remarks.append(agree if alpha is None else Message("{agree}, {alpha}", agree=agree, alpha=alpha))
    if result.first_chosen is not None:
        told = "the text shown first was chosen in {share:.0%} of the decided judgements"
        remarks.append(Message(told, share=result.first_chosen))
    rows: list[list[Text]] = [
        [
            *(each.model, f"{each.strength:+.2f}"),
            Message("{low} to {high}", low=f"{each.low:+.2f}", high=f"{each.high:+.2f}"),
            *_counts(each),
        ]
        for each in result.standings
    ]
    interval = "{share} ({low} to {high})"
    met: list[list[Text]] = [
        [
            *(each.one, each.other, *_counts(each)),
            Message(interval, share=f"{each.chance:.0%}", low=f"{each.low:.0%}", high=f"{each.high:.0%}"),
        ]
        for each in result.meetings
    ]
    outcomes = [Message("wins"), Message("ties"), Message("losses")]
    header = [Message("model"), Message("strength"), Message("interval"), *outcomes]
    against = [Message("model"), Message("against"), *outcomes, Message("chance to win")]
    return [Table("", header, rows, remarks), Table("", against, met)]


def _counts(each: Standing | Meeting) -> list[str]:
    return [f"{n:,}" for n in (each.wins, each.ties, each.losses)]
