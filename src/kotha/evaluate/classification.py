"""How well classes are told apart: accuracy, macro-F1, and the confusion matrix: what was taken for what.

Accuracy alone praises one who always gives the most frequent answer, so that share stands beside it, and macro-F1
counts every class alike, the rare ones too.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from kotha.errors import DataError


@dataclass(frozen=True)
class ClassScore:
    """One class: how often it was rightly named."""

    name: str
    examples: int
    precision: float  # share of the answers "this class" that are right; 0 where it was never answered
    recall: float  # share of its examples that were found; 0 where it has none
    f1: float


@dataclass(frozen=True)
class ClassificationScore:
    """All classes together."""

    accuracy: float
    macro_f1: float  # mean of the classes' F1, each class counting alike
    majority: float  # the accuracy of one who always gives the most frequent answer
    examples: int
    classes: list[ClassScore]
    confusion: list[list[int]]  # examples by true class (rows) and answer (columns), in the order of ``classes``


def score_classes(
    labels: Sequence[str | int], answers: Sequence[str | int], names: Sequence[str | int] | None = None
) -> ClassificationScore:
    """Compare answers with labels; ``names`` gives the order of the classes, else they are sorted.

    A class that is neither among the labels nor among the answers has nothing to be judged by, and is left out of the
    mean; one that was only answered counts with F1 = 0.

    >>> score_classes(["ভালো", "ভালো", "মন্দ"], ["ভালো", "মন্দ", "মন্দ"]).confusion
    [[1, 1], [0, 1]]
    """
    if len(labels) != len(answers):
        raise DataError(f"{len(labels):,} labels and {len(answers):,} answers; give one answer to each example")
    if not labels:
        raise DataError("there are no examples to judge by; give at least one")
    found = {*labels, *answers}
    order = sorted(found, key=lambda name: (str(type(name)), name)) if names is None else list(names)
    strange = sorted(map(str, found - set(order)))
    if strange:
        raise DataError(f"{strange[0]!r} is not one of the classes {', '.join(map(str, order))}")
    pairs = Counter(zip(labels, answers, strict=True))
    confusion = [[pairs[true, answer] for answer in order] for true in order]
    classes = [_judge(str(name), confusion, place) for place, name in enumerate(order)]
    judged = [each.f1 for each, name in zip(classes, order, strict=True) if name in found]
    return ClassificationScore(
        accuracy=sum(confusion[place][place] for place in range(len(order))) / len(labels),
        macro_f1=sum(judged) / len(judged),
        majority=max(Counter(labels).values()) / len(labels),
        examples=len(labels),
        classes=classes,
        confusion=confusion,
    )


def _judge(name: str, confusion: list[list[int]], place: int) -> ClassScore:
    right = confusion[place][place]
    examples, answered = sum(confusion[place]), sum(row[place] for row in confusion)
    precision = right / answered if answered else 0.0
    recall = right / examples if examples else 0.0
    f1 = 2 * right / (examples + answered) if examples + answered else 0.0
    return ClassScore(name, examples, precision, recall, f1)
