"""Examples to learn from, to choose by and to be measured on, kept apart.

Each class is divided by itself (a stratified split), by lot: the same seed gives the same parts; pairs of texts have
no classes, and are divided as one; conversations of one group stay together. An example that stands twice is taken
once. What is held out is kept out of everything: a text to learn from that is a copy of a held-out one, or holds most
of it (``text/clean/leakage.py``), is left out, and so is one to choose by that is a copy of one to be measured on. Of a
pair either side may give it away. A copy of an image is equal in every pixel.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Any, Generic, TypeVar

import numpy as np

from kotha.errors import DataError, UsageError
from kotha.i18n.message import Message, Option, Plural
from kotha.storage.images import LabelledImages
from kotha.text.clean.duplicates import ExactDuplicates
from kotha.text.clean.leakage import LeakIndex
from kotha.text.corpus.dialogues import Dialogues
from kotha.text.corpus.labelled import LabelledTexts
from kotha.text.corpus.pairs import TextPairs

# Of many pairs no more are held out for a part: to translate them takes longer than it is worth.
_MOST_PAIRS = 500
# Of the data, for each part that is held out.
_SHARE = 0.1

Examples = TypeVar("Examples", LabelledTexts, TextPairs, LabelledImages, Dialogues)
Classed = LabelledTexts | LabelledImages


@dataclass(frozen=True)
class Parts(Generic[Examples]):
    """Three parts that share no text."""

    train: Examples
    validation: Examples  # what early stopping and the choice of the best model look at
    test: Examples  # looked at once, at the end
    remarks: tuple[Message, ...] = field(default=())


@dataclass(frozen=True)
class _Kind:
    """How examples of a kind are known again, drawn and checked."""

    keys: Callable[[Any], Sequence[str]]  # what each example is known by, where it stands twice
    copies: Callable[[Any, Sequence[Any]], set[int]]  # places of those that give others away
    draw: Callable[[Any, Sequence[str], float, int], dict[str, Any]]
    check: Callable[[Any, Any, Any], None]  # of train, validation and test
    called: tuple[tuple[str, str], ...]  # one and several: of all, of training, of validation
    share: float = _SHARE


def divide(
    data: Examples,
    validation: Examples | None = None,
    test: Examples | None = None,
    *,
    share: float | None = None,
    seed: int = 0,
) -> Parts[Examples]:
    """Divide texts, pairs or images; a part that is given is taken as it is, and only what is not is drawn by lot.

    ``share`` of the data goes to each part that is drawn: 0.1, and 0.05 of pairs, of which at most 500.
    """
    kind = _KINDS[type(data)]
    share = kind.share if share is None else share
    _check_share(share)
    remarks: list[Message] = []
    seen = ExactDuplicates()
    once = [place for place, key in enumerate(kind.keys(data)) if seen.is_new(key)]
    if len(once) < len(data):
        what = Plural(*kind.called[0], n=len(data) - len(once))
        remarks.append(Message("{what} stood there before and were left out", what=what))
    missing = [name for name, given in (("validation", validation), ("test", test)) if given is None]
    drawn = kind.draw(data.chosen(once), missing, share, seed)

    def apart(some: Examples, kept_out: Sequence[Examples], called: tuple[str, str], said: str) -> Examples:
        copies = kind.copies(some, kept_out)
        if copies:
            remarks.append(Message(said, what=Plural(*called, n=len(copies))))
        return some.chosen([place for place in range(len(some)) if place not in copies])

    test = test or drawn["test"]
    of_test = "{what} held most of a test one and were left out"
    validation = validation or apart(drawn["validation"], [test], kind.called[2], of_test)
    of_both = "{what} held most of a held-out one and were left out"
    train = apart(drawn["train"], [validation, test], kind.called[1], of_both)
    kind.check(train, validation, test)
    return Parts(train, validation, test, tuple(remarks))


def divide_dialogues(
    data: Dialogues, test: Dialogues | None = None, *, share: float | None = None, seed: int = 0
) -> Parts[Dialogues]:
    """Divide conversations by lot; those of one group stay together, and copies of a prompt are taken once."""
    share = _SHARE if share is None else share
    _check_share(share)
    kept_out = set() if test is None else {turns[:-1] for turns in test.turns}
    by_group: dict[str, list[int]] = defaultdict(list)
    for place, (turns, group) in enumerate(zip(data.turns, data.groups, strict=True)):
        if turns[:-1] not in kept_out:
            kept_out.add(turns[:-1])
            by_group[group].append(place)
    missing = ["validation"] if test is not None else ["validation", "test"]
    groups = [*by_group.values()]
    count = max(1, round(share * len(groups)))
    if len(groups) <= count * len(missing):
        raise DataError(
            "{groups} of conversations cannot be divided into some to learn from and some held out; give more",
            groups=Plural("{n} group", "{n:,} groups", n=len(groups)),
        )
    order = np.random.default_rng([seed, len(data)]).permutation(len(groups)).tolist()
    drawn = []
    for _ in missing:
        drawn.append(data.chosen(sorted(place for group in order[:count] for place in groups[group])))
        order = order[count:]
    train = data.chosen(sorted(place for group in order for place in groups[group]))
    return Parts(train, drawn[0], drawn[1] if test is None else test)


def _check_share(share: float) -> None:
    if not 0 < share <= 0.4:
        raise UsageError(
            "{held_out} is no share that leaves enough to learn from; use 0.05 to 0.4",
            held_out=Option("held_out", share),
        )


# -- classes ----------------------------------------------------------------------------------------------------------


def _draw_classes(data: Classed, parts: Sequence[str], share: float, seed: int) -> dict[str, Classed]:
    """A share of each class, one example at least, for each part; the rest is to learn from."""
    _check_classes(data, fewest=1 + len(parts))
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


def _check_classes(data: Classed, fewest: int) -> None:
    counts = Counter(data.labels)
    if len(counts) < 2:
        raise DataError(
            "all {n:,} examples have the label {label!r}, so there is nothing to tell apart; give examples of two "
            "classes or more, or name another field for the label",
            n=len(data),
            label=next(iter(counts)),
        )
    rarest, count = min(counts.items(), key=lambda each: each[1])
    if count < fewest:
        raise DataError(
            "class {label!r} has {examples}, and needs {fewest}, to be learned and to be measured on; add some, or "
            "leave that class out",
            label=rarest,
            examples=Plural("{n} example", "{n:,} examples", n=count),
            fewest=fewest,
        )


def _check_known(train: Classed, validation: Classed, test: Classed) -> None:
    for name, part in (("validation", validation), ("test", test)):
        unknown = sorted(set(part.labels) - set(train.labels))
        if unknown:
            raise DataError(
                "class {label!r} of the {part} examples has no training example; add some, or leave it out",
                label=unknown[0],
                part=name,
            )


def _check_texts(train: LabelledTexts, validation: LabelledTexts, test: LabelledTexts) -> None:
    _check_known(train, validation, test)
    if len(set(train.labels)) < 2 or not len(validation):
        raise DataError("once copies are gone, too few examples are left to learn from; give more")


def _digests(data: LabelledImages) -> list[str]:
    return [blake2b(image.tobytes(), digest_size=16).hexdigest() for image in data.images]


def _same_images(some: LabelledImages, kept_out: Sequence[LabelledImages]) -> set[int]:
    known = {digest for each in kept_out for digest in _digests(each)}
    return {place for place, digest in enumerate(_digests(some)) if digest in known}


# -- pairs and texts --------------------------------------------------------------------------------------------------


def _draw_pairs(data: TextPairs, parts: Sequence[str], share: float, seed: int) -> dict[str, TextPairs]:
    places = np.random.default_rng([seed, len(data)]).permutation(len(data)).tolist()
    count = min(_MOST_PAIRS, max(1, round(share * len(data))))
    if len(data) <= count * len(parts):
        raise DataError(
            "{pairs} cannot be divided into some to learn from and some held out; give more, or give those to choose "
            "by and to be measured on apart",
            pairs=Plural("{n} pair", "{n:,} pairs", n=len(data)),
        )
    drawn = {}
    for name in parts:
        drawn[name], places = data.chosen(sorted(places[:count])), places[count:]
    return {**drawn, "train": data.chosen(sorted(places))}


def _check_pairs(train: TextPairs, validation: TextPairs, test: TextPairs) -> None:
    if not len(train) or not len(validation):
        raise DataError("once copies are gone, too few pairs are left to learn from; give more")


def _copied_pairs(some: TextPairs, kept_out: Sequence[TextPairs]) -> set[int]:
    """The pairs of which a side gives away that side of a pair that is kept out."""
    sources = _copies(some.sources, [text for each in kept_out for text in each.sources])
    return sources | _copies(some.targets, [text for each in kept_out for text in each.targets])


def _copies(texts: Sequence[str], kept_out: Sequence[str]) -> set[int]:
    """The places of texts that are copies of one that is kept out, or hold most of it."""
    exact = {" ".join(text.split()) for text in kept_out}
    leaks = LeakIndex(kept_out).given_away(texts)
    return {
        place
        for place, (text, leak) in enumerate(zip(texts, leaks, strict=True))
        if leak or " ".join(text.split()) in exact
    }


_TEXTS = _Kind(
    keys=lambda data: data.texts,
    copies=lambda some, kept_out: _copies(some.texts, [text for each in kept_out for text in each.texts]),
    draw=_draw_classes,
    check=_check_texts,
    called=(
        ("{n} text", "{n:,} texts"),
        ("{n} training text", "{n:,} training texts"),
        ("{n} validation text", "{n:,} validation texts"),
    ),
)
_PAIRS = _Kind(
    keys=lambda data: [f"{a}\n{b}" for a, b in zip(data.sources, data.targets, strict=True)],
    copies=_copied_pairs,
    draw=_draw_pairs,
    check=_check_pairs,
    called=(
        ("{n} pair", "{n:,} pairs"),
        ("{n} training pair", "{n:,} training pairs"),
        ("{n} validation pair", "{n:,} validation pairs"),
    ),
    share=0.05,
)
_IMAGES = _Kind(
    keys=_digests,
    copies=_same_images,
    draw=_draw_classes,
    check=_check_known,
    called=(
        ("{n} image", "{n:,} images"),
        ("{n} training image", "{n:,} training images"),
        ("{n} validation image", "{n:,} validation images"),
    ),
)
_KINDS: dict[type, _Kind] = {LabelledTexts: _TEXTS, TextPairs: _PAIRS, LabelledImages: _IMAGES}
