"""The ranking compared with a plain implementation of BM25 from the paper."""

import math

import pytest
from tests.retrieval.conftest import DOCUMENTS

from kotha.retrieval import lexical
from kotha.retrieval.hybrid import fuse
from kotha.retrieval.passages import Excerpt
from kotha.retrieval.stemming import fold


def plain_bm25(question: list[str], passage: list[str], passages: list[list[str]], k1: float, b: float) -> float:
    mean = sum(map(len, passages)) / len(passages)
    score = 0.0
    for term in dict.fromkeys(question):
        having = sum(term in other for other in passages)
        worth = math.log(1 + (len(passages) - having + 0.5) / (having + 0.5))
        often = passage.count(term)
        score += worth * often * (k1 + 1) / (often + k1 * (1 - b + b * len(passage) / mean))
    return score


def test_without_adjacent_words_the_score_is_bm25_of_words_and_stems() -> None:
    question, passages = "বাঘের বনে ঢাকায়", [fold(text) for text in DOCUMENTS]
    asked = fold(question)
    stems = [[word.stem for word in passage] for passage in passages]
    worth = {word.stem: lexical.idf(sum(word.stem in passage for passage in stems), len(stems)) for word in asked}
    mean = sum(map(len, passages)) / len(passages)
    for passage, own in zip(passages, stems, strict=True):
        by_stems = plain_bm25([word.stem for word in asked], own, stems, lexical._K1, lexical._B)
        relative = len(passage) / mean
        by_words = sum(
            worth[word.stem] * lexical._saturated([each.form for each in passage].count(word.form), relative)
            for word in asked
        )
        assert lexical.weigh(asked, passage, worth, mean) == pytest.approx(by_stems + by_words)


def test_an_empty_text_scores_zero() -> None:
    assert lexical.weigh(fold("নদী"), [], {"নদী": 1.0}, 5.0) == 0.0 == lexical.weigh([], fold("নদী"), {}, 5.0)


def test_fusion_adds_the_scores_of_both_rankings() -> None:
    stored = [Excerpt(str(number), "a", "line 1") for number in range(3)]
    hits = fuse([(stored[0], 0.50), (stored[1], 0.49)], [(stored[1], 0.9), (stored[2], 0.8), (stored[0], 0.7)])
    assert [hit.score for hit in hits] == pytest.approx([0.49 + 0.18, 0.50 + 0.14, 0.16])
    assert [hit.passage.text for hit in hits] == ["1", "0", "2"]
    assert (hits[1].words, hits[1].meaning) == (0.50, 0.7) and hits[2].words is None
    assert fuse([], []) == []
