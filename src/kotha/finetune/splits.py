"""Examples to learn from, to choose by and to be measured on, kept apart.

Each class is divided by itself (a stratified split), by lot: the same seed gives the same parts; pairs of texts have
no classes, and are divided as one. A text, or a pair, that stands twice is taken once. What is held out is kept out of
everything: a text to learn from that is a copy of a held-out one, or holds most of it (``text/clean/leakage.py``), is
left out, and so is one to choose by that is a copy of one to be measured on. Of a pair either side may give it away.
"""

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Generic, TypeVar

import numpy as np

from kotha.errors import DataError, UsageError
from kotha.i18n.wording import counted
from kotha.storage.images import LabelledImages
from kotha.text.clean.duplicates import ExactDuplicates
from kotha.text.clean.leakage import LeakIndex
from kotha.text.corpus.labelled import LabelledTexts
from kotha.text.corpus.pairs import TextPairs

# Of many pairs no more are held out for a part: to translate them takes longer than it is worth.
_MOST_PAIRS = 500

Examples = TypeVar("Examples", LabelledTexts, TextPairs, LabelledImages)
OfClasses = TypeVar("OfClasses", LabelledTexts, LabelledImages)


@dataclass(frozen=True)
class Parts(Generic[Examples]):
    """Three parts that share no text."""

    train: Examples
    validation: Examples  # what early stopping and the choice of the best model look at
    test: Examples  # looked at once, at the end
    remarks: tuple[str, ...] = field(default=())


@dataclass(frozen=True)
class Splits(Parts[LabelledTexts]):
    """Texts with labels, in three parts."""

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
    _check_share(share)
    remarks: list[str] = []
    data = _once(data, data.texts, "text", remarks)
    _check_classes(data, fewest=1 + (validation is None) + (test is None))
    missing = [name for name, given in (("validation", validation), ("test", test)) if given is None]
    drawn = _draw(data, missing, share, seed)
    test = test or drawn["test"]
    validation = validation or _without_copies(drawn["validation"], test, "validation", "test", remarks)
    held_out = LabelledTexts(validation.texts + test.texts, validation.labels + test.labels)
    train = _without_copies(drawn["train"], held_out, "training", "held-out", remarks)
    for name, part in (("validation", validation), ("test", test)):
        _check_known(name, part, train)
    if len(set(train.labels)) < 2 or not len(validation):
        raise DataError("once copies are gone, too few examples are left to learn from; give more")
    return Splits(train, validation, test, tuple(remarks))


def divide_pairs(
    data: TextPairs,
    validation: TextPairs | None = None,
    test: TextPairs | None = None,
    *,
    share: float = 0.05,
    seed: int = 0,
) -> Parts[TextPairs]:
    """Divide pairs; a part that is given is taken as it is, and only what is not is drawn from the data."""
    _check_share(share)
    remarks: list[str] = []
    data = _once(data, [f"{a}\n{b}" for a, b in zip(data.sources, data.targets, strict=True)], "pair", remarks)
    missing = [name for name, given in (("validation", validation), ("test", test)) if given is None]
    places = np.random.default_rng([seed, len(data)]).permutation(len(data)).tolist()
    count = min(_MOST_PAIRS, max(1, round(share * len(data))))
    if len(data) <= count * len(missing):
        raise DataError(
            f"{counted(len(data), 'pair')} cannot be divided into some to learn from and some held out; give more, "
            "or give those to choose by and to be measured on apart"
        )
    drawn = {}
    for name in missing:
        drawn[name], places = data.chosen(sorted(places[:count])), places[count:]
    test = test or drawn["test"]
    validation = validation or _pairs_without_copies(drawn["validation"], [test], "validation", "test", remarks)
    left = data.chosen(sorted(places))
    train = _pairs_without_copies(left, [validation, test], "training", "held-out", remarks)
    if not len(train) or not len(validation):
        raise DataError("once copies are gone, too few pairs are left to learn from; give more")
    return Parts(train, validation, test, tuple(remarks))


def divide_images(
    data: LabelledImages,
    validation: LabelledImages | None = None,
    test: LabelledImages | None = None,
    *,
    share: float = 0.1,
    seed: int = 0,
) -> Parts[LabelledImages]:
    """Divide images, each class by itself; a part that is given is taken as it is. A copy is equal in every pixel."""
    _check_share(share)
    remarks: list[str] = []
    data = _once(data, _digests(data), "image", remarks)
    _check_classes(data, fewest=1 + (validation is None) + (test is None))
    drawn = _draw(
        data, [name for name, part in (("validation", validation), ("test", test)) if part is None], share, seed
    )
    test = test or drawn["test"]
    validation = validation or _images_without_copies(drawn["validation"], [test], "validation", "test", remarks)
    train = _images_without_copies(drawn["train"], [validation, test], "training", "held-out", remarks)
    for name, part in (("validation", validation), ("test", test)):
        _check_known(name, part, train)
    return Parts(train, validation, test, tuple(remarks))


def _images_without_copies(
    some: LabelledImages, kept_out: Sequence[LabelledImages], name: str, others: str, remarks: list[str]
) -> LabelledImages:
    known = {digest for each in kept_out for digest in _digests(each)}
    copies = {place for place, digest in enumerate(_digests(some)) if digest in known}
    return _left(some, copies, f"{name} image", others, remarks)


def _digests(data: LabelledImages) -> list[str]:
    """What an image is known by."""
    return [blake2b(image.tobytes(), digest_size=16).hexdigest() for image in data.images]


def _check_known(name: str, part: LabelledTexts | LabelledImages, train: LabelledTexts | LabelledImages) -> None:
    unknown = sorted(set(part.labels) - set(train.labels))
    if unknown:
        raise DataError(
            f"class {unknown[0]!r} of the {name} examples has no training example; add some, or leave it out"
        )


def _check_share(share: float) -> None:
    if not 0 < share <= 0.4:
        raise UsageError(f"held_out={share} is no share that leaves enough to learn from; use 0.05 to 0.4")


def _once(data: Examples, texts: Sequence[str], called: str, remarks: list[str]) -> Examples:
    """The data without what stood there before; each example is known by one of the texts."""
    seen = ExactDuplicates()
    places = [place for place, text in enumerate(texts) if seen.is_new(text)]
    if len(places) < len(data):
        remarks.append(f"{counted(len(data) - len(places), called)} stood there before and were left out")
    return data.chosen(places)


def _check_classes(data: LabelledTexts | LabelledImages, fewest: int) -> None:
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


def _draw(data: OfClasses, parts: Sequence[str], share: float, seed: int) -> dict[str, OfClasses]:
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
    copies = _copies(some.texts, kept_out.texts)
    return _left(some, copies, f"{name} text", others, remarks)


def _pairs_without_copies(
    some: TextPairs, kept_out: Sequence[TextPairs], name: str, others: str, remarks: list[str]
) -> TextPairs:
    """The pairs of which neither side gives away that side of a pair that is kept out."""
    copies = _copies(some.sources, [text for each in kept_out for text in each.sources])
    copies |= _copies(some.targets, [text for each in kept_out for text in each.targets])
    return _left(some, copies, f"{name} pair", others, remarks)


def _copies(texts: Sequence[str], kept_out: Sequence[str]) -> set[int]:
    """The places of texts that are copies of one that is kept out, or hold most of it."""
    exact = {" ".join(text.split()) for text in kept_out}
    matches = LeakIndex(kept_out).match_many(texts)
    return {
        place
        for place, (text, match) in enumerate(zip(texts, matches, strict=True))
        if match is not None or " ".join(text.split()) in exact
    }


def _left(some: Examples, copies: set[int], called: str, others: str, remarks: list[str]) -> Examples:
    if copies:
        remarks.append(f"{counted(len(copies), called)} held most of a {others} one and were left out")
    return some.chosen([place for place in range(len(some)) if place not in copies])
