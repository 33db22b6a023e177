"""Examples to learn from, to choose by and to be measured on, kept apart.

Each class is divided by itself (a stratified split), by lot: the same seed gives the same parts. A text that stands
twice is taken once. What is held out is kept out of everything: a text to learn from that is a copy of a held-out one,
or holds most of it (``text/clean/leakage.py``), is left out, and so is one to choose by that is a copy of one to be
measured on.
"""

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from kotha.errors import DataError, UsageError
from kotha.text.clean.duplicates import ExactDuplicates
from kotha.text.clean.leakage import LeakIndex
from kotha.text.corpus.labelled import LabelledTexts
from kotha.wording import counted


@dataclass(frozen=True)
class Splits:
    """Three parts that share no text."""

    train: LabelledTexts
    validation: LabelledTexts  # what early stopping and the choice of the best model look at
    test: LabelledTexts  # looked at once, at the end
    remarks: tuple[str, ...] = field(default=())

    @property
    def labels(self) -> tuple[str, ...]:
        """The classes, in order."""
        return tuple(sorted(set(self.train.labels)))


def divide(
    data: LabelledTexts,
    validation: LabelledTexts | None = None,
    test: LabelledTexts | None = None,
    *,
    share: float = 0.1,
    seed: int = 0,
) -> Splits:
    """Divide examples; a part that is given is taken as it is, and only what is not is drawn from the data."""
    if not 0 < share <= 0.4:
        raise UsageError(f"held_out={share} is no share that leaves enough to learn from; use 0.05 to 0.4")
    remarks: list[str] = []
    data = _once(data, remarks)
    _check_classes(data, fewest=1 + (validation is None) + (test is None))
    missing = [name for name, given in (("validation", validation), ("test", test)) if given is None]
    drawn = _draw(data, missing, share, seed)
    test = test or drawn["test"]
    validation = validation or _without_copies(drawn["validation"], test, "validation", "test", remarks)
    held_out = LabelledTexts(validation.texts + test.texts, validation.labels + test.labels)
    train = _without_copies(drawn["train"], held_out, "training", "held-out", remarks)
    for name, part in (("validation", validation), ("test", test)):
        unknown = sorted(set(part.labels) - set(train.labels))
        if unknown:
            raise DataError(
                f"class {unknown[0]!r} of the {name} examples has no training example; add some, or leave it out"
            )
    if len(set(train.labels)) < 2 or not len(validation):
        raise DataError("once copies are gone, too few examples are left to learn from; give more")
    return Splits(train, validation, test, tuple(remarks))


def _once(data: LabelledTexts, remarks: list[str]) -> LabelledTexts:
    seen = ExactDuplicates()
    places = [place for place, text in enumerate(data.texts) if seen.is_new(text)]
    if len(places) < len(data):
        remarks.append(f"{counted(len(data) - len(places), 'text')} stood there before and were left out")
    return data.chosen(places)


def _check_classes(data: LabelledTexts, fewest: int) -> None:
    counts = Counter(data.labels)
    if len(counts) < 2:
        raise DataError(
            f"all {len(data):,} examples have the label {next(iter(counts))!r}, so there is nothing to tell apart; "
            "give examples of two classes or more, or name another field for the label"
        )
    rarest, count = min(counts.items(), key=lambda each: each[1])
    if count < fewest:
        raise DataError(
            f"class {rarest!r} has {counted(count, 'example')}, and needs {fewest}, to be learned and to be measured "
            "on; add some, or leave that class out"
        )


def _draw(data: LabelledTexts, parts: Sequence[str], share: float, seed: int) -> dict[str, LabelledTexts]:
    """A share of each class, one example at least, for each part; the rest is to learn from."""
    chance = np.random.default_rng([seed, len(data)])
    by_class: dict[str, list[int]] = defaultdict(list)
    for place, label in enumerate(data.labels):
        by_class[label].append(place)
    chosen: dict[str, list[int]] = {name: [] for name in (*parts, "train")}
    for label in sorted(by_class):
        places = chance.permutation(by_class[label]).tolist()
        for part in parts:
            count = max(1, round(share * len(by_class[label])))
            chosen[part] += places[:count]
            places = places[count:]
        chosen["train"] += places
    return {name: data.chosen(sorted(places)) for name, places in chosen.items()}


def _without_copies(
    some: LabelledTexts, kept_out: LabelledTexts, name: str, others: str, remarks: list[str]
) -> LabelledTexts:
    leaks = LeakIndex(kept_out.texts)
    exact = {" ".join(text.split()) for text in kept_out.texts}
    matches = leaks.match_many(some.texts)
    places = [
        place
        for place, (text, match) in enumerate(zip(some.texts, matches, strict=True))
        if match is None and " ".join(text.split()) not in exact
    ]
    if len(places) < len(some):
        gone = counted(len(some) - len(places), f"{name} text")
        remarks.append(f"{gone} held most of a {others} one and were left out")
    return some.chosen(places)
