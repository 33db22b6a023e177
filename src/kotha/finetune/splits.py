"""Examples to learn from, to choose by and to be measured on, kept apart.

Each class is divided by itself (a stratified split), by lot: the same seed gives the same parts; pairs of texts have
no classes, and are divided as one; conversations of one group stay together. An example that stands twice is taken
once. What is held out is kept out of everything: a text to learn from that is a copy of a held-out one, or holds most
of it (``text/clean/leakage.py``), is left out, and so is one to choose by that is a copy of one to be measured on. Of a
pair either side may give it away. A copy of an image is equal in every pixel.
"""

from collections import defaultdict
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any, Generic, TypeVar

import numpy as np

from kotha.errors import DataError, UsageError
from kotha.i18n.message import Message, Option, Plural, Text
from kotha.storage.images import LabelledImages
from kotha.text.clean.duplicates import ExactDuplicates
from kotha.text.clean.leakage import LeakIndex
from kotha.text.corpus.dialogues import Dialogues
from kotha.text.corpus.labelled import LabelledTexts
from kotha.text.corpus.pairs import TextPairs

# Of many pairs no more are held out for a part: to translate them takes longer than it is worth.
_MOST_PAIRS = 500
_CALLED: dict[type, tuple[str, str]] = {
    LabelledTexts: ("{n} text", "{n:,} texts"),
    TextPairs: ("{n} pair", "{n:,} pairs"),
    LabelledImages: ("{n} image", "{n:,} images"),
}

Divided = TypeVar("Divided", LabelledTexts, TextPairs, LabelledImages)
Examples = TypeVar("Examples", LabelledTexts, TextPairs, LabelledImages, Dialogues)


@dataclass(frozen=True)
class Parts(Generic[Examples]):
    """Three parts that share no text."""

    train: Examples
    validation: Examples  # what early stopping and the choice of the best model look at
    test: Examples  # looked at once, at the end
    remarks: tuple[Message, ...] = ()

    @property
    def learned(self) -> tuple[Examples, Examples]:
        """What a training sees: those to learn from, and those to choose by."""
        return self.train, self.validation


def divide(
    data: Divided,
    validation: Divided | None = None,
    test: Divided | None = None,
    *,
    share: float | None = None,
    seed: int = 0,
) -> Parts[Divided]:
    """Divide texts, pairs or images; a part that is given is taken as it is, and only what is not is drawn by lot.

    ``share`` of the data goes to each part that is drawn: 0.1, and 0.05 of pairs, of which at most 500.
    """
    remarks: list[Message] = []

    def without(some: Divided, places: set[int], said: str) -> Divided:
        if places:
            remarks.append(Message(said, what=Plural(*_CALLED[type(data)], n=len(places))))
        return some.chosen([place for place in range(len(some)) if place not in places])

    seen = ExactDuplicates()
    keys = map("\n".join, zip(*_texts(data), strict=True))
    twice = {place for place, key in enumerate(keys) if not seen.is_new(key)}
    once = without(data, twice, "{what} skipped: copies of earlier ones")
    labels, usual, most = [""] * len(once), 0.05, _MOST_PAIRS
    if not isinstance(once, TextPairs):
        labels, usual, most = list(once.labels), 0.1, len(once)
        if len(set(labels)) < 2:
            raise DataError(
                "all {n:,} examples have the label {label!r}; give examples of at least two classes, or name "
                "another label field",
                n=len(once),
                label=next(iter(labels), ""),
            )
    missing = [name for name, given in (("validation", validation), ("test", test)) if given is None]
    drawn = _draw(once, labels, range(len(once)), missing, usual if share is None else share, seed, most)
    test = test or drawn["test"]
    if validation is None:
        copies = _copies(drawn["validation"], [test])
        said = "{what} removed from validation: they contain most of a test example"
        validation = without(drawn["validation"], copies, said)
    copies = _copies(drawn["train"], [validation, test])
    train = without(drawn["train"], copies, "{what} removed from training: they contain most of a held-out example")
    if not len(train) or not len(validation):
        raise DataError("too few training examples are left once copies are removed; give more")
    for name, part in (("validation", validation), ("test", test)):
        unknown = sorted(set(getattr(part, "labels", ())) - set(getattr(train, "labels", ())))
        if unknown:
            raise DataError(
                "class {label!r} of the {part} examples has no training examples; add some, or remove the class",
                label=unknown[0],
                part=name,
            )
    return Parts(train, validation, test, tuple(remarks))


def divide_dialogues(
    data: Dialogues, test: Dialogues | None = None, *, share: float | None = None, seed: int = 0
) -> Parts[Dialogues]:
    """Divide conversations by lot; those of one group stay together, and copies of a prompt are taken once."""
    known = set() if test is None else {turns[:-1] for turns in test.turns}
    once: dict[object, int] = {}
    for place, turns in enumerate(data.turns):
        if turns[:-1] not in known:
            once.setdefault(turns[:-1], place)
    chosen = data.chosen([*once.values()])
    missing = ["validation"] if test is not None else ["validation", "test"]
    share = 0.1 if share is None else share
    drawn = _draw(chosen, [""] * len(chosen), chosen.groups, missing, share, seed, len(chosen))
    return Parts(drawn["train"], drawn["validation"], test or drawn["test"])


def _draw(
    data: Any,
    labels: Sequence[str],
    groups: Iterable[Hashable],
    parts: Sequence[str],
    share: float,
    seed: int,
    most: int,
) -> dict[str, Any]:
    """Examples by part: of each class a share of its groups, one at least and ``most`` at most; for train the rest."""
    if not 0 < share <= 0.4:
        raise UsageError(
            "{held_out} is out of range; use 0.05 to 0.4, so that enough examples are left for training",
            held_out=Option("held_out", share),
        )
    chance = np.random.default_rng([seed, len(labels)])
    by_class: dict[str, dict[Hashable, list[int]]] = defaultdict(lambda: defaultdict(list))
    for place, (label, group) in enumerate(zip(labels, groups, strict=True)):
        by_class[label][group].append(place)
    found: dict[str, list[int]] = {name: [] for name in (*parts, "train")}
    for label, some in sorted(by_class.items()):
        units = [*some.values()]
        count = min(most, max(1, round(share * len(units))))
        if len(units) <= count * len(parts):
            raise DataError(
                "{what} cannot be split into training and held-out examples; give more",
                what=_called(label, len(units)),
            )
        order = chance.permutation(len(units)).tolist()
        for turn, name in enumerate((*parts, "train")):
            end = None if name == "train" else (turn + 1) * count
            found[name] += [place for unit in order[turn * count : end] for place in units[unit]]
    return {name: data.chosen(sorted(places)) for name, places in found.items()}


def _called(label: str, count: int) -> Text:
    examples = Plural("{n} example", "{n:,} examples", n=count)
    return Message("class {label!r} with {examples}", label=label, examples=examples) if label else examples


def _texts(data: LabelledTexts | TextPairs | LabelledImages) -> list[Sequence[str]]:
    """What each example is known by: its text, both sides of a pair, the digest of an image."""
    if isinstance(data, TextPairs):
        return [data.sources, data.targets]
    if isinstance(data, LabelledTexts):
        return [data.texts]
    return [[blake2b(image.tobytes(), digest_size=16).hexdigest() for image in data.images]]


def _copies(some: Divided, kept_out: Sequence[Divided]) -> set[int]:
    """The places of examples that are copies of one that is kept out, or hold most of it; of pairs on either side."""
    found: set[int] = set()
    for texts, *others in zip(_texts(some), *map(_texts, kept_out), strict=True):
        held = [text for other in others for text in other]
        exact = {" ".join(text.split()) for text in held}
        leaks = LeakIndex(held).given_away(texts)
        for place, (text, leak) in enumerate(zip(texts, leaks, strict=True)):
            if leak or " ".join(text.split()) in exact:
                found.add(place)
    return found
