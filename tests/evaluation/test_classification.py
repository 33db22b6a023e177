"""Classification scores compared with scikit-learn's, and the baselines."""

import json

import numpy as np
import pytest
from tests.report.shown import Shown

from kotha.errors import DataError
from kotha.evaluation.classification import (
    ClassificationScore,
    baselines,
    classes_document,
    classes_table,
    score_answers,
)
from kotha.text.corpus.labelled import LabelledTexts

LABELS = ("ভালো", "মন্দ", "মাঝারি", "নেই")


def drawn(seed: int, n_examples: int = 60) -> tuple[list[str], list[str]]:
    chance = np.random.default_rng(seed)
    true = chance.choice(LABELS[:3], n_examples, p=[0.6, 0.3, 0.1]).tolist()
    result = [each if chance.random() < 0.6 else str(chance.choice(LABELS)) for each in true]
    return true, result


@pytest.mark.parametrize("seed", range(4))
def test_scores_equal_those_of_scikit_learn(seed: int) -> None:
    metrics = pytest.importorskip("sklearn.metrics", reason="scikit-learn is what the figures are compared with")
    true, result = drawn(seed)
    score = score_answers(LABELS, true, result)
    given = {"labels": LABELS, "zero_division": 0}
    assert score.accuracy == pytest.approx(metrics.accuracy_score(true, result))
    assert score.macro_f1 == pytest.approx(metrics.f1_score(true, result, average="macro", zero_division=0))
    assert np.array_equal(score.confusion, metrics.confusion_matrix(true, result, labels=LABELS))
    figures = metrics.precision_recall_fscore_support(true, result, **given)
    for place, each in enumerate(score.classes):
        assert [each.precision, each.recall, each.f1, each.support] == pytest.approx([row[place] for row in figures])


def test_by_hand() -> None:
    score = score_answers(["a", "b", "c"], ["a", "a", "a", "b"], ["a", "a", "b", "b"])
    assert score.accuracy == 0.75 and score.confusion == ((2, 1, 0), (0, 1, 0), (0, 0, 0))
    assert [each.f1 for each in score.classes] == pytest.approx([0.8, 2 / 3, 0])
    assert score.macro_f1 == pytest.approx((0.8 + 2 / 3) / 2), "class c is neither a label nor a prediction"
    assert ClassificationScore.of_summary(score.to_dict()) == score


def test_an_unknown_class_is_an_error() -> None:
    with pytest.raises(
        DataError, match="unknown class 'z'; remove it, or rename it to one of the model's classes: a, b"
    ):
        score_answers(["a", "b"], ["z"], ["a"])
    with pytest.raises(DataError, match="no examples to evaluate on"):
        score_answers(["a", "b"], [], [])


def test_the_majority_and_tf_idf_baselines() -> None:
    texts = [f"{word} {number}" for number in range(20) for word in ("ভালো খবর", "খারাপ খবর", "খারাপ দিন")]
    labels = ["+", "-", "-"] * 20
    learned, held_out = LabelledTexts(tuple(texts), tuple(labels)), LabelledTexts(("ভালো দিন", "খারাপ"), ("+", "-"))
    found = baselines(("+", "-"), learned, held_out)
    assert found["majority"] == {"accuracy": 0.5, "macro_f1": pytest.approx(1 / 3)}
    pytest.importorskip("sklearn", reason="without scikit-learn the majority stands alone")
    assert found["TF-IDF + logistic regression"]["accuracy"] == 1


def test_the_page_and_the_table_hold_all_scores() -> None:
    score = score_answers(LABELS, *drawn(0))
    (matrix,) = Shown(classes_document(score, "মেজাজ", "<script>").html()).blocks("confusion")
    assert matrix["rows"] == matrix["columns"] == list(LABELS)
    assert [len(row) for row in matrix["shares"]] == [4, 4, 4, 4]
    assert classes_table(score, "run").cells[0][1] == f"{score.accuracy:.4f}"


def test_labels_match_under_unicode_normalization() -> None:
    whole, apart = "\u09dfব", "\u09af\u09bcব"
    score = score_answers([whole, "খ"], [apart, "খ"], [whole, "খ"])
    assert score.accuracy == 1.0 and score.labels == (whole, "খ")


def test_many_classes_have_no_matrix_and_show_only_the_lowest_f1() -> None:
    labels = [f"c{number}" for number in range(1000)]
    result = [*labels[:990], *labels[:10]]  # the last ten are never classified correctly
    score = score_answers(labels, labels, result)
    assert score.confusion == () and ClassificationScore.of_summary(score.to_dict()) == score
    assert len(json.dumps(score.to_dict(), indent=1)) < 1 << 19, "a run's summary, which is read again, holds it"
    page = Shown(classes_document(score, "many").html())
    assert page.blocks("confusion") == [] and page.html.count('"c999"') == 1
    answer = [str(each) for each in classes_table(score, "run").remarks]
    assert answer[0].startswith("c990: F1 0.000") and "Of 1,000 classes, only those with the lowest F1" in answer[20]
    with pytest.raises(DataError, match=r"one of the model's classes: c0, .*, c29, … \(1,000\)"):
        score_answers(labels, ["z"], ["c0"])


def test_few_classes_are_all_shown() -> None:
    assert len(classes_table(score_answers(["a", "b"], ["a", "b"], ["b", "b"]), "run").remarks) == 2
