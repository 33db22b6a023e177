"""Split examples into train, validation and test parts that share no text.

The split is random and stratified by class, and the same seed gives the same parts. Pairs of texts have no classes, and
the conversations in a group stay together. Duplicates are removed. To prevent leakage, a training example is removed if
it is a copy of a held-out one or contains most of it (``text/clean/leakage.py``). A validation example that overlaps
with a test example in this way is also removed. For pairs, an overlap on either side is enough. Two images are copies
if all their pixels are equal.
"""

from collections import defaultdict
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from textwrap import shorten
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

# Maximum number of pairs in a held-out part; translating more would take too long.
_MOST_PAIRS = 500
_COUNTED: dict[type, tuple[str, str]] = {
    LabelledTexts: ("{n} text", "{n:,} texts"),
    TextPairs: ("{n} pair", "{n:,} pairs"),
    LabelledImages: ("{n} image", "{n:,} images"),
}

Divided = TypeVar("Divided", LabelledTexts, TextPairs, LabelledImages)
Examples = TypeVar("Examples", LabelledTexts, TextPairs, LabelledImages, Dialogues)


@dataclass(frozen=True)
class Parts(Generic[Examples]):
    """Train, validation and test parts."""

    train: Examples
    validation: Examples  # for early stopping and for choosing the best model
    test: Examples  # evaluated once, at the end
    remarks: tuple[Message, ...] = ()

    @property
    def used_in_training(self) -> tuple[Examples, Examples]:
        """The parts used in training: train and validation."""
        return self.train, self.validation


def divide(
    data: Divided,
    validation: Divided | None = None,
    test: Divided | None = None,
    *,
    share: float | None = None,
    seed: int = 0,
) -> Parts[Divided]:
    """Split texts, pairs or images; parts that are given are used unchanged, and the others are drawn at random.

    ``share`` is the share of the data in each drawn part (default: 0.1, or 0.05 and at most 500 for pairs).
    """
    remarks: list[Message] = []

    def without(some: Divided, indices: set[int], remark: str) -> Divided:
        if indices:
            remarks.append(Message(remark, what=Plural(*_COUNTED[type(data)], n=len(indices))))
        return some.chosen([index for index in range(len(some)) if index not in indices])

    seen = ExactDuplicates()
    keys = ["\n".join(texts) for texts in zip(*_texts(data), strict=True)]
    if isinstance(data, LabelledTexts):
        remarks += _ambiguous(keys, data.labels)
    duplicates = {index for index, key in enumerate(keys) if not seen.is_new(key)}
    unique = without(data, duplicates, "{what} skipped: duplicates of earlier examples")
    labels, usual, most = [""] * len(unique), 0.05, _MOST_PAIRS
    if not isinstance(unique, TextPairs):
        labels, usual, most = list(unique.labels), 0.1, len(unique)
        if len(set(labels)) < 2:
            raise DataError(
                "all {n:,} examples have the label {label!r}; give examples of at least two classes, or choose another "
                "label field",
                n=len(unique),
                label=next(iter(labels), ""),
            )
    missing = [name for name, given in (("validation", validation), ("test", test)) if given is None]
    drawn = _draw(unique, labels, range(len(unique)), missing, usual if share is None else share, seed, most)
    test = test or drawn["test"]
    if validation is None:
        copies = _copies(drawn["validation"], [test])
        remark = "{what} removed from validation: they contain most of a test example"
        validation = without(drawn["validation"], copies, remark)
    copies = _copies(drawn["train"], [validation, test])
    train = without(drawn["train"], copies, "{what} removed from training: they contain most of a held-out example")
    if not len(train) or not len(validation):
        raise DataError("too few training examples are left after copies were removed; add more examples")
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
    """Split conversations at random; each group stays together, and only the first of several equal prompts is used."""
    known = set() if test is None else {turns[:-1] for turns in test.turns}
    first: dict[object, int] = {}
    for index, turns in enumerate(data.turns):
        if turns[:-1] not in known:
            first.setdefault(turns[:-1], index)
    chosen = data.chosen([*first.values()])
    missing = ["validation"] if test is not None else ["validation", "test"]
    share = 0.1 if share is None else share
    drawn = _draw(chosen, [""] * len(chosen), chosen.groups, missing, share, seed, len(chosen))
    return Parts(drawn["train"], drawn["validation"], test or drawn["test"])


def _ambiguous(texts: Sequence[str], labels: Sequence[str]) -> list[Message]:
    """Return a remark on the texts that have several labels, of which only the first is used."""
    by_text: dict[str, dict[str, None]] = defaultdict(dict)
    for text, label in zip(texts, labels, strict=True):
        by_text[text][label] = None
    found = [(text, *each) for text, each in by_text.items() if len(each) > 1]
    if not found:
        return []
    text, first, second = found[0][:3]
    remark = (
        "{what} with more than one label, of which the first is used; example: {text!r} is labelled {first!r} and "
        "{second!r}. Choose one label for each, or remove these texts"
    )
    counted = Plural(*_COUNTED[LabelledTexts], n=len(found))
    return [Message(remark, what=counted, text=shorten(text, 60, placeholder=" …"), first=first, second=second)]


def _draw(
    data: Any,
    labels: Sequence[str],
    groups: Iterable[Hashable],
    parts: Sequence[str],
    share: float,
    seed: int,
    most: int,
) -> dict[str, Any]:
    """Draw the held-out parts, with a share of the groups in each class (1 to ``most``); the rest is for training."""
    if not 0 < share <= 0.4:
        raise UsageError(
            "{held_out} is out of range; use 0.05 to 0.4, to leave enough examples for training",
            held_out=Option("held_out", share),
        )
    rng = np.random.default_rng([seed, len(labels)])
    by_class: dict[str, dict[Hashable, list[int]]] = defaultdict(lambda: defaultdict(list))
    for index, (label, group) in enumerate(zip(labels, groups, strict=True)):
        by_class[label][group].append(index)
    found: dict[str, list[int]] = {name: [] for name in (*parts, "train")}
    for label, some in sorted(by_class.items()):
        units = [*some.values()]
        count = min(most, max(1, round(share * len(units))))
        if len(units) <= count * len(parts):
            raise DataError(
                "{what} cannot be split into training and held-out examples; add more examples",
                what=_counted(label, len(units)),
            )
        order = rng.permutation(len(units)).tolist()
        for number, name in enumerate((*parts, "train")):
            end = None if name == "train" else (number + 1) * count
            found[name] += [index for unit in order[number * count : end] for index in units[unit]]
    return {name: data.chosen(sorted(indices)) for name, indices in found.items()}


def _counted(label: str, count: int) -> Text:
    examples = Plural("{n} example", "{n:,} examples", n=count)
    return Message("class {label!r} with {examples}", label=label, examples=examples) if label else examples


def _texts(data: LabelledTexts | TextPairs | LabelledImages) -> list[Sequence[str]]:
    """Return the text of each example: one list per side of a pair, or digests for images."""
    if isinstance(data, TextPairs):
        return [data.sources, data.targets]
    if isinstance(data, LabelledTexts):
        return [data.texts]
    return [[blake2b(image.tobytes(), digest_size=16).hexdigest() for image in data.images]]


def _copies(some: Divided, kept_out: Sequence[Divided]) -> set[int]:
    """Return the indices of examples that copy a held-out example or contain most of it, on either side of a pair."""
    found: set[int] = set()
    for texts, *others in zip(_texts(some), *map(_texts, kept_out), strict=True):
        held = [text for other in others for text in other]
        exact = {" ".join(text.split()) for text in held}
        leaks = LeakIndex(held).leaked(texts)
        for index, (text, leak) in enumerate(zip(texts, leaks, strict=True)):
            if leak or " ".join(text.split()) in exact:
                found.add(index)
    return found
