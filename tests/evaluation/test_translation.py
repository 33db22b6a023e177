"""BLEU and chrF++ computed by sacrebleu, with its signature."""

import math

import pytest

from kotha.errors import DataError
from kotha.evaluation.translation import remembered_targets, score_translations, translation_table
from kotha.text.corpus.pairs import TextPairs


def test_a_translation_equal_to_its_reference() -> None:
    score = score_translations(["আমি ভাত খেতে ভালোবাসি ।"], ["আমি ভাত খেতে ভালোবাসি ।"])
    assert (score.bleu, score.chrf) == (pytest.approx(100), pytest.approx(100))
    assert score.sentences == 1


def test_bleu_on_paper() -> None:
    """All n-grams match; four words instead of five give a brevity penalty of e^(1 - 5/4)."""
    score = score_translations(["ক খ গ ঘ"], ["ক খ গ ঘ ঙ"])
    assert score.bleu == pytest.approx(100 * math.exp(1 - 5 / 4))
    assert score.chrf < 100


def test_scores_carry_their_signatures() -> None:
    score = score_translations(["ক খ"], ["ক খ"])
    assert "nrefs:1" in score.bleu_signature
    assert "tok:13a" in score.bleu_signature
    assert "nw:2" in score.chrf_signature, "chrF++ counts words too"
    assert "version:" in score.chrf_signature


def test_the_translation_memory_returns_the_target_of_the_nearest_source() -> None:
    learned = TextPairs(("the red boat", "the blue boat on the river", "The house"), ("ক", "খ", "গ"))
    asked = ["blue river", "the red boat", "house", "nothing of this"]
    assert remembered_targets(learned, asked) == ["খ", "ক", "গ", "ক"]
    table = translation_table(score_translations(["ক খ", "গ"], ["ক খ", "ঘ"]), "model")
    assert table.remarks[0].startswith("BLEU: nrefs:1") and "no translation has four" in str(table.remarks[-1])


def test_invalid_translations_are_rejected() -> None:
    with pytest.raises(DataError, match="no translations to compare"):
        score_translations([], [])
