"""How well texts and images are told apart: accuracy, macro-F1, each class by itself, and which are taken for which.

Beside it what a sceptic would ask for: always the commonest class (majority), and a line through word and letter counts
(TF-IDF and logistic regression, by scikit-learn: ``pip install kotha[baselines]``), learned from the same examples. Of
images it is the nearest neighbour: what the training image is that is most alike, pixel by pixel (Euclidean distance).
Macro-F1 is the mean of F1 over all classes that the model knows, so a rare class counts as much as a common one.
"""

import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Self

import numpy as np
import torch
from torch import Tensor

from kotha.artifacts.model_folder import Bundle
from kotha.errors import DataError
from kotha.evaluation.measurement import Measurement
from kotha.generation.classes import Classifier, probabilities, vit_of
from kotha.i18n.message import Message, OnProgress, Plural, Text, some_of
from kotha.report.document import Block, Confusion, Heading, Headline, Paragraph, Report
from kotha.report.table import Table
from kotha.storage.images import LabelledImages
from kotha.text.corpus.labelled import LabelledTexts

# A word or letter sequence of a single text says nothing of others.
_LEAST_TEXTS = 2

# Of a thousand classes nobody looks at a million cells, and the summary of a run would be too large to be read again.
MOST_IN_MATRIX = 100
# So many of the most frequent confusions are named.
_NAMED = 5


@dataclass(frozen=True)
class ClassScore:
    """One class by itself."""

    label: str
    precision: float  # of those that it was said of, the share that are it
    recall: float  # of those that are it, the share that it was said of
    f1: float  # their harmonic mean
    support: int  # how many are it


@dataclass(frozen=True)
class ClassificationScore(Measurement):
    """How well texts were told apart."""

    figures = ("accuracy", "macro_f1")

    accuracy: float
    macro_f1: float
    examples: int
    classes: tuple[ClassScore, ...]
    confusion: tuple[tuple[int, ...], ...]  # rows: what they are; columns: what was said; empty for very many classes
    baselines: dict[str, dict[str, float]] = field(default_factory=dict)  # by name: accuracy, macro_f1
    mistaken: tuple[tuple[str, str, int], ...] = ()  # most frequent confusions: what they are, what was said, how many
    seen: int | None = None  # how many of the texts the model has learned from; None where that is not known

    @property
    def labels(self) -> tuple[str, ...]:
        """The classes, in the order of the confusion matrix."""
        return tuple(each.label for each in self.classes)

    def to_dict(self) -> dict[str, Any]:
        """Ready for JSON."""
        return {**super().to_dict(), "labels": list(self.labels)}

    @classmethod
    def of_summary(cls, summary: Mapping[str, Any]) -> Self:
        """The score that a run's summary holds."""
        classes = tuple(ClassScore(**each) for each in summary["classes"])
        rows = {name: tuple(map(tuple, summary.get(name, ()))) for name in ("confusion", "mistaken")}
        return super().of_summary({**summary, **rows, "classes": classes})


def score_answers(labels: Sequence[str], true: Sequence[str], said: Sequence[str]) -> ClassificationScore:
    """Compare what was said with what is.

    >>> score = score_answers(["a", "b"], ["a", "a", "b"], ["a", "b", "b"])
    >>> round(score.accuracy, 3), round(score.macro_f1, 3), score.confusion
    (0.667, 0.667, ((1, 1), (0, 1)))
    """
    numbers = {label: number for number, label in enumerate(labels)}
    place = {_composed(label): number for label, number in numbers.items()} | numbers
    true = [label if label in place else _composed(label) for label in true]
    unknown = sorted(set(true) - place.keys())
    if unknown:
        raise DataError(
            "class {unknown!r} is none of the model's: {labels}; leave it out, or rename it",
            unknown=unknown[0],
            labels=some_of(labels),
        )
    if not true:
        raise DataError("there are no examples to measure on; give at least one")
    counts = np.zeros((len(labels), len(labels)), dtype=np.int64)
    np.add.at(counts, ([place[label] for label in true], [place[label] for label in said]), 1)
    classes = []
    for number, label in enumerate(labels):
        right, are, were = int(counts[number, number]), int(counts[number].sum()), int(counts[:, number].sum())
        classes.append(
            ClassScore(label, right / max(1, were), right / max(1, are), 2 * right / max(1, are + were), are)
        )
    return ClassificationScore(
        accuracy=float(np.trace(counts) / len(true)),
        macro_f1=sum(each.f1 for each in classes) / len(classes),
        examples=len(true),
        classes=tuple(classes),
        confusion=tuple(tuple(int(count) for count in row) for row in counts) if len(labels) <= MOST_IN_MATRIX else (),
        mistaken=_most_mistaken(labels, counts),
    )


def _most_mistaken(labels: Sequence[str], counts: "np.ndarray[Any, Any]") -> tuple[tuple[str, str, int], ...]:
    wrong = counts - np.diag(np.diag(counts))
    order = np.argsort(-wrong, axis=None, kind="stable")[:_NAMED]
    places = [divmod(int(place), len(labels)) for place in order]
    return tuple((labels[row], labels[column], int(wrong[row, column])) for row, column in places if wrong[row, column])


def _composed(label: str) -> str:
    """A label with its letters put together (NFC), as tables give it; a model that came from elsewhere may have not."""
    return unicodedata.normalize("NFC", label)


def evaluate_classifier(
    bundle: Bundle,
    held_out: LabelledTexts,
    learned: LabelledTexts | None = None,
    on_progress: OnProgress | None = None,
) -> ClassificationScore:
    """Measure a classifier on labelled texts; with what it learned from, beside what others make of that."""
    classifier = Classifier(bundle)
    score = _score(classifier.labels, held_out.labels, classifier.probabilities(held_out.texts, on_progress))
    if learned is None:
        return score
    known = set(learned.texts)
    seen = sum(text in known for text in held_out.texts)
    return replace(score, baselines=baselines(classifier.labels, learned, held_out), seen=seen)


def _score(labels: Sequence[str], true: Sequence[str], chances: Tensor) -> ClassificationScore:
    return score_answers(labels, true, [labels[each] for each in chances.argmax(dim=-1).tolist()])


def baselines(labels: Sequence[str], learned: LabelledTexts, held_out: LabelledTexts) -> dict[str, dict[str, float]]:
    """What the commonest class reaches, and a line through counts where scikit-learn is installed."""
    said = tf_idf_answers(learned, held_out.texts)
    others = {} if said is None else {"TF-IDF + logistic regression": said}
    return _beside(labels, learned.labels, held_out.labels, others)


def _beside(
    labels: Sequence[str], learned: Sequence[str], true: Sequence[str], others: Mapping[str, Sequence[str]]
) -> dict[str, dict[str, float]]:
    """Accuracy and macro-F1 of always saying the commonest class, and of what others said."""
    commonest = max(labels, key=learned.count)
    found = {}
    for name, said in {"majority": [commonest] * len(true), **others}.items():
        score = score_answers(labels, true, said)
        found[name] = {"accuracy": score.accuracy, "macro_f1": score.macro_f1}
    return found


def tf_idf_answers(learned: LabelledTexts, texts: Sequence[str]) -> list[str] | None:
    """What a logistic regression on TF-IDF of words and letters says; None without scikit-learn."""
    try:
        from sklearn.feature_extraction.text import TfidfVectorizer
        from sklearn.linear_model import LogisticRegression
        from sklearn.pipeline import make_pipeline, make_union
    except ImportError:
        return None
    least = _LEAST_TEXTS if len(learned) > 100 else 1
    words = TfidfVectorizer(token_pattern=r"\S+", ngram_range=(1, 2), min_df=least, sublinear_tf=True)
    letters = TfidfVectorizer(analyzer="char_wb", ngram_range=(2, 5), min_df=least, sublinear_tf=True)
    line = make_pipeline(make_union(words, letters), LogisticRegression(max_iter=1000, class_weight="balanced"))
    line.fit(list(learned.texts), list(learned.labels))
    return [str(label) for label in line.predict(list(texts))]


# -- images ------------------------------------------------------------------------------------------------------------

_AT_ONCE = 256


def evaluate_images(
    bundle: Bundle,
    held_out: LabelledImages,
    learned: LabelledImages | None = None,
    on_progress: OnProgress | None = None,
) -> ClassificationScore:
    """Measure a model on labelled images; with what it learned from, beside what others make of that."""
    model = vit_of(bundle)
    names = model.config.class_names
    score = _score(names, held_out.labels, probabilities(model, held_out.images, on_progress))
    if learned is None:
        return score
    distances, nearest = nearest_neighbours(learned, held_out)
    others = {"nearest neighbour": [learned.labels[each] for each in nearest]}
    found = _beside(names, learned.labels, held_out.labels, others)
    return replace(score, baselines=found, seen=sum(distance == 0 for distance in distances))


def nearest_neighbours(learned: LabelledImages, asked: LabelledImages) -> tuple[list[float], list[int]]:
    """For each image that is asked for, how far the nearest of those that were learned is, and which it is."""
    known = _flat(learned)
    distances: list[float] = []
    places: list[int] = []
    for start in range(0, len(asked), _AT_ONCE):
        some = _flat(asked.chosen(range(start, min(start + _AT_ONCE, len(asked)))))
        place = torch.cdist(some, known).argmin(dim=1)
        distances += (some - known[place]).abs().sum(dim=1).tolist()  # exactly 0 for a copy
        places += place.tolist()
    return distances, places


def _flat(images: LabelledImages) -> Tensor:
    return torch.from_numpy(images.images).flatten(1).float()


# -- as it is told ---------------------------------------------------------------------------------------------------

# So many classes are told of at the terminal; of more, the hardest.
_HARDEST = 20
_ACCURACY, _MACRO_F1 = Message("accuracy"), Message("macro-F1")


def classes_table(score: ClassificationScore, name: str) -> Table:
    """The model beside its baselines, and below it each class."""
    few = len(score.classes) <= _HARDEST
    shown = score.classes if few else sorted(score.classes, key=lambda each: each.f1)[:_HARDEST]
    remarks: list[Text] = [
        Message(
            "{label}: F1 {f1:.3f} (precision {precision:.3f}, recall {recall:.3f}) of {examples}",
            label=each.label,
            f1=each.f1,
            precision=each.precision,
            recall=each.recall,
            examples=Plural("{n} example", "{n:,} examples", n=each.support),
        )
        for each in shown
    ]
    if not few:
        remarks.append(Message("These are the hardest of {n:,} classes.", n=len(score.classes)))
        remarks += [
            Message("{label} was taken for {other}: {n:,}", label=label, other=other, n=count)
            for label, other, count in score.mistaken
        ]
    if score.seen:
        remarks.append(Message("It has learned from {n:,} of these, so these figures are too good.", n=score.seen))
    title = Plural("{n} example", "{n:,} examples", n=score.examples)
    return Table(title, ["", _ACCURACY, _MACRO_F1], score.compared(name, 4), remarks)


def classes_document(score: ClassificationScore, title: Text, lead: Text = "", called: str = "text") -> Report:
    """The page: what came out, the confusion matrix, each class by itself, and what others reach.

    ``called`` says what was told apart: text or image.
    """
    images, n = called == "image", score.examples
    right: Text = Plural("of {n} unseen text told right (accuracy)", "of {n:,} unseen texts told right (accuracy)", n=n)
    footer = Message("Nothing of these texts was learned from or chosen by.")
    if images:
        one, many = "of {n} unseen image told right (accuracy)", "of {n:,} unseen images told right (accuracy)"
        right, footer = Plural(one, many, n=n), Message("Nothing of these images was learned from or chosen by.")
    macro = Message("macro-F1: the mean over classes, rare ones as much as common ones")
    blocks: list[Block] = [Headline([(f"{score.macro_f1:.3f}", macro), (f"{score.accuracy:.1%}", right)])]
    blocks += _matrix(score, images) if score.confusion else []
    cells = [
        [each.label, f"{each.precision:.3f}", f"{each.recall:.3f}", f"{each.f1:.3f}", f"{each.support:,}"]
        for each in score.classes
    ]
    header: list[Text] = [Message("class"), Message("precision"), Message("recall"), "F1", Message("examples")]
    blocks += [Heading(Message("Each class by itself")), Table("", header, cells)]
    if score.baselines:
        rows = score.compared(Message("this model"), 3)
        reached = [score.macro_f1, *(each["macro_f1"] for each in score.baselines.values())]
        best = {(reached.index(max(reached)), 2): "best"}
        blocks.append(Heading(Message("Compared with what is simpler")))
        blocks.append(Table("", ["", _ACCURACY, _MACRO_F1], rows, marks=best))
    return Report(title, [lead], blocks, [Message("Made by Kotha."), footer])


def _matrix(score: ClassificationScore, images: bool) -> list[Block]:
    how = Message(
        "A row is what the texts are, a column is what the model said; the darker, the larger the share of the row."
    )
    if images:
        how = Message(
            "A row is what the images are, a column is what the model said; the darker, the larger the share of the "
            "row."
        )
    totals = [max(1, sum(row)) for row in score.confusion]
    shares = [[round(n / total, 4) for n in row] for row, total in zip(score.confusion, totals, strict=True)]
    cells = [[f"{n:,}" for n in row] for row in score.confusion]
    return [
        Heading(Message("Which are taken for which")),
        Paragraph([how, Message("What stands on the diagonal was told right.")]),
        Confusion(Message("is \\ said"), list(score.labels), list(score.labels), cells, shares),
    ]
