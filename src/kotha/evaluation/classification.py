"""Classification scores for texts and images: accuracy, macro-F1, scores per class and the confusion matrix.

The baselines are fitted to the same training examples. The first baseline predicts the most frequent class (majority).
The second baseline is, for texts, logistic regression on TF-IDF features of words and character n-grams (scikit-learn:
the extra ``baselines``), and for images, the nearest neighbour by Euclidean distance between pixels. Macro-F1
is the mean F1 over the classes that occur among the labels or the predictions, as in scikit-learn, so a rare class has
the same weight as a common one.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from unicodedata import normalize

import numpy as np
import torch
from torch import Tensor

from kotha.artifacts.model_folder import Bundle
from kotha.errors import DataError
from kotha.evaluation.result import Measurement
from kotha.generation.classify import Classifier, probabilities, vit_of
from kotha.i18n.message import Message, OnProgress, Plural, Text, some_of
from kotha.i18n.short_repr import ShortRepr
from kotha.report.document import Block, Confusion, Heading, Headline, Paragraph, Report
from kotha.report.table import Table
from kotha.storage.images import LabelledImages
from kotha.text.corpus.labelled import LabelledTexts

# A word or character n-gram that occurs in a single text does not generalize.
_LEAST_TEXTS = 2

# A matrix with more classes is unreadable, and would make the summary of a run too large.
MOST_IN_MATRIX = 100


@dataclass(frozen=True, repr=False)
class ClassScore(ShortRepr):
    """Scores of one class."""

    label: str
    precision: float  # share of the examples predicted as this class that do belong to it
    recall: float  # share of the examples of this class that are predicted as it
    f1: float  # harmonic mean of precision and recall
    support: int  # number of examples of this class


@dataclass(frozen=True, repr=False)
class ClassificationScore(Measurement):
    """Scores of a classifier."""

    figures, part = ("accuracy", "macro_f1"), ClassScore

    accuracy: float
    macro_f1: float
    examples: int
    classes: tuple[ClassScore, ...]
    confusion: tuple[tuple[int, ...], ...]  # rows: true classes, columns: predicted; empty above `MOST_IN_MATRIX`
    baselines: dict[str, dict[str, float]] = field(default_factory=dict)  # by name: accuracy, macro_f1
    seen: int | None = None  # number of examples that were in the training data; None if unknown

    @property
    def labels(self) -> tuple[str, ...]:
        """The class labels, in the order of the confusion matrix."""
        return tuple(each.label for each in self.classes)


def score_answers(labels: Sequence[str], true: Sequence[str], predicted: Sequence[str]) -> ClassificationScore:
    """Compare predicted labels with the true labels.

    >>> score = score_answers(["a", "b"], ["a", "a", "b"], ["a", "b", "b"])
    >>> round(score.accuracy, 3), round(score.macro_f1, 3), score.confusion
    (0.667, 0.667, ((1, 1), (0, 1)))
    >>> score_answers(["a", "b", "c"], ["a", "a"], ["a", "a"]).macro_f1  # neither b nor c occurs
    1.0
    """
    numbers = {label: number for number, label in enumerate(labels)}
    # Tables are normalized to NFC; the labels of an imported model may not be.
    index = {normalize("NFC", label): number for label, number in numbers.items()} | numbers
    true = [label if label in index else normalize("NFC", label) for label in true]
    if unknown := sorted(set(true) - index.keys()):
        raise DataError(
            "unknown class {unknown!r}; remove it, or rename it to one of the model's classes: {labels}",
            unknown=unknown[0],
            labels=some_of(labels),
        )
    if not true:
        raise DataError("no examples to evaluate on; give at least one")
    counts = np.zeros((len(labels), len(labels)), dtype=np.int64)
    np.add.at(counts, ([index[label] for label in true], [index[label] for label in predicted]), 1)
    right, are, were = (each.tolist() for each in (np.diag(counts), counts.sum(axis=1), counts.sum(axis=0)))
    occur = [n + n_predicted for n, n_predicted in zip(are, were, strict=True)]
    classes = tuple(
        ClassScore(label, hits / max(1, n_predicted), hits / max(1, n), 2 * hits / max(1, n + n_predicted), n)
        for label, hits, n, n_predicted in zip(labels, right, are, were, strict=True)
    )
    return ClassificationScore(
        accuracy=sum(right) / len(true),
        macro_f1=float(np.mean([each.f1 for each, n in zip(classes, occur, strict=True) if n])),
        examples=len(true),
        classes=classes,
        confusion=tuple(map(tuple, counts.tolist())) if len(labels) <= MOST_IN_MATRIX else (),
    )


def evaluate_classifier(
    bundle: Bundle,
    held_out: LabelledTexts,
    learned: LabelledTexts | None = None,
    on_progress: OnProgress | None = None,
) -> ClassificationScore:
    """Evaluate a classifier on labelled texts, and also the baselines if its training data is given as ``learned``."""
    classifier = Classifier(bundle)
    score = _score(classifier.labels, held_out.labels, classifier.probabilities(held_out.texts, on_progress))
    if learned is None:
        return score
    seen = sum(map(set(learned.texts).__contains__, held_out.texts))
    return replace(score, baselines=baselines(classifier.labels, learned, held_out), seen=seen)


def _score(labels: Sequence[str], true: Sequence[str], chances: Tensor) -> ClassificationScore:
    return score_answers(labels, true, [labels[each] for each in chances.argmax(dim=-1).tolist()])


def baselines(labels: Sequence[str], learned: LabelledTexts, held_out: LabelledTexts) -> dict[str, dict[str, float]]:
    """Return the scores of the majority class, and of logistic regression on TF-IDF if scikit-learn is installed."""
    predicted = tf_idf_answers(learned, held_out.texts)
    return _baselines(labels, learned.labels, held_out.labels, "TF-IDF + logistic regression", predicted)


def _baselines(
    labels: Sequence[str], learned: Sequence[str], true: Sequence[str], other: str, predicted: Sequence[str] | None
) -> dict[str, dict[str, float]]:
    """Return accuracy and macro-F1 of the majority class, and of the predictions of another baseline."""
    answers = {"majority": [max(labels, key=learned.count)] * len(true), other: predicted}
    scores = {name: score_answers(labels, true, each) for name, each in answers.items() if each is not None}
    return {name: {key: getattr(each, key) for key in each.figures} for name, each in scores.items()}


def tf_idf_answers(learned: LabelledTexts, texts: Sequence[str]) -> list[str] | None:
    """Predict by logistic regression on TF-IDF of words and character n-grams; None without scikit-learn."""
    try:
        from sklearn.feature_extraction.text import TfidfVectorizer
        from sklearn.linear_model import LogisticRegression
        from sklearn.pipeline import make_pipeline, make_union
    except ImportError:
        return None
    least = _LEAST_TEXTS if len(learned) > 100 else 1
    words = TfidfVectorizer(token_pattern=r"\S+", ngram_range=(1, 2), min_df=least, sublinear_tf=True)
    characters = TfidfVectorizer(analyzer="char_wb", ngram_range=(2, 5), min_df=least, sublinear_tf=True)
    classifier = make_pipeline(
        make_union(words, characters), LogisticRegression(max_iter=1000, class_weight="balanced")
    )
    classifier.fit(list(learned.texts), list(learned.labels))
    return [str(label) for label in classifier.predict(list(texts))]


# -- images ------------------------------------------------------------------------------------------------------------

_BATCH = 256


def evaluate_images(
    bundle: Bundle,
    held_out: LabelledImages,
    learned: LabelledImages | None = None,
    on_progress: OnProgress | None = None,
) -> ClassificationScore:
    """Evaluate a model on labelled images, and also the baselines if its training data is given as ``learned``."""
    model = vit_of(bundle)
    names = model.config.class_names
    score = _score(names, held_out.labels, probabilities(model, held_out.images, on_progress))
    if learned is None:
        return score
    distances, nearest = nearest_neighbours(learned, held_out)
    predicted = [learned.labels[each] for each in nearest]
    found = _baselines(names, learned.labels, held_out.labels, "nearest neighbour", predicted)
    return replace(score, baselines=found, seen=distances.count(0.0))


def nearest_neighbours(learned: LabelledImages, queries: LabelledImages) -> tuple[list[float], list[int]]:
    """Return the nearest (Euclidean) training image to each query image: its L1 distance and its index."""
    known, images = (torch.from_numpy(each.images).flatten(1) for each in (learned, queries))
    distances: list[float] = []
    indices: list[int] = []
    for some in torch.split(images, _BATCH):
        nearest = torch.cdist(some.float(), known.float()).argmin(dim=1)
        distances += (some.float() - known[nearest].float()).abs().sum(dim=1).tolist()  # exactly 0 for a copy
        indices += nearest.tolist()
    return distances, indices


# -- rendering -----------------------------------------------------------------------------------------------------

# Maximum number of classes printed; if there are more, those with the lowest F1 are printed.
_HARDEST = 20
_FIGURES: list[Text] = ["", Message("accuracy"), Message("macro-F1")]


def classes_table(score: ClassificationScore, name: str) -> Table:
    """Return a table of the model and its baselines, followed by the scores for each class."""
    few = len(score.classes) <= _HARDEST
    shown = score.classes if few else sorted(score.classes, key=lambda each: each.f1)[:_HARDEST]
    template = "{label}: F1 {f1:.3f} (precision {precision:.3f}, recall {recall:.3f}) of {examples}"
    remarks: list[Text] = [Message(template, **vars(each), examples=_examples(each.support)) for each in shown]
    if not few:
        remarks.append(Message("Of {n:,} classes, only those with the lowest F1 are shown.", n=len(score.classes)))
    if score.seen:
        remarks.append(
            Message("The model was trained on {n:,} of these examples, so its scores are too high.", n=score.seen)
        )
    return Table(_examples(score.examples), _FIGURES, score.compared(name, 4), remarks)


def _examples(n: int) -> Plural:
    return Plural("{n} example", "{n:,} examples", n=n)


def classes_document(score: ClassificationScore, title: Text, lead: Text = "") -> Report:
    """Return a page with the scores, the confusion matrix, the scores per class and the baselines."""
    accuracy = (
        "of {n} unseen example classified correctly (accuracy)",
        "of {n:,} held-out examples classified correctly (accuracy)",
    )
    macro = Message("macro-F1: the mean over all classes, each weighted equally")
    figures = [(f"{score.macro_f1:.3f}", macro), (f"{score.accuracy:.1%}", Plural(*accuracy, n=score.examples))]
    blocks: list[Block] = [Headline(figures)]
    if score.confusion:
        shares = [[round(n / max(1, sum(row)), 4) for n in row] for row in score.confusion]
        cells = [[f"{n:,}" for n in row] for row in score.confusion]
        blocks += [
            Heading(Message("Confusion matrix")),
            Paragraph(
                Message(
                    "Rows are the true classes, columns the predicted ones. A darker cell holds a larger "
                    "share of its row; correct predictions are on the diagonal."
                )
            ),
            Confusion(Message("true \\ predicted"), list(score.labels), list(score.labels), cells, shares),
        ]
    rows = [
        [each.label, f"{each.precision:.3f}", f"{each.recall:.3f}", f"{each.f1:.3f}", f"{each.support:,}"]
        for each in score.classes
    ]
    header: list[Text] = [Message("class"), Message("precision"), Message("recall"), "F1", Message("examples")]
    blocks += [Heading(Message("Scores per class")), Table("", header, rows)]
    if score.baselines:
        reached = [score.macro_f1, *(each["macro_f1"] for each in score.baselines.values())]
        best = {(reached.index(max(reached)), 2): "best"}
        blocks.append(Heading(Message("Compared with baselines")))
        blocks.append(Table("", _FIGURES, score.compared(Message("this model"), 3), marks=best))
    held_out = Message("None of these examples was used for training or model selection.")
    return Report(title, [lead], blocks, [Message("Made by Kotha."), held_out])
