"""N-gram models: compared with manual computations, the readable version, and another library."""

import math
from fractions import Fraction
from itertools import islice

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.conftest import SHARED_DATA
from tests.evaluation.plain_twins import PlainKneserNey

from kotha.errors import UsageError
from kotha.text.corpus.documents import read_documents
from kotha.text.ngram import FALLBACK, KneserNey, estimate_discounts

needs_news = pytest.mark.skipif(
    not (SHARED_DATA / "news").exists(), reason="the shared development data is not on this machine"
)

# Ten words in three documents; 0 ends each document, and 4 is in the vocabulary but does not occur.
TEN = np.array([1, 2, 0, 1, 2, 0, 1, 3, 1, 0])
lines = st.lists(st.integers(0, 4), min_size=1, max_size=60)


def chances(model: KneserNey, history: list[int]) -> np.ndarray:
    """The probability of every token after a history; each token is scored in a separate document."""
    documents = [[*history, token] + [0] * (token != 0) for token in range(model.vocab_size)]
    ends = np.cumsum([len(each) for each in documents])
    places = ends - [1 + (token != 0) for token in range(model.vocab_size)]
    return np.exp(-model.nats(np.concatenate(documents)))[places]


def test_a_bigram_on_paper() -> None:
    """The different tokens before each token: 1 and 2 before 0, 0 and 3 before 1, 1 before 2, 1 before 3; six in total.

    The discounts are 0.5, 1 and 1.5, because no n-gram occurs four times. So 0.5 + 0.5 + 1 + 1 of 6 is discounted, and
    distributed over five tokens.
    """
    model = KneserNey(TEN, order=2, vocab_size=5, end=0)
    assert model.discounts == [FALLBACK, FALLBACK]
    alone = [Fraction(16, 60), Fraction(16, 60), Fraction(11, 60), Fraction(11, 60), Fraction(6, 60)]
    assert sum(alone) == 1
    # After 1: 2 twice, 3 once, 0 once. Of 4, 1 + 0.5 + 0.5 is discounted and distributed by the probabilities above.
    counted = [Fraction(1, 2), 0, Fraction(2 - 1), Fraction(1, 2), 0]
    after_one = [(count + 2 * below) / 4 for count, below in zip(counted, alone, strict=True)]
    assert after_one == [Fraction(n, 120) for n in (31, 16, 41, 26, 6)]
    assert chances(model, [1]) == pytest.approx([float(each) for each in after_one])
    assert chances(model, [4]) == pytest.approx([float(each) for each in alone]), "a history never seen"
    # At the start of a document, 1 occurs three times out of three: 1.5 is discounted.
    assert chances(model, [])[1] == pytest.approx((1.5 + 1.5 * 16 / 60) / 3)


def test_a_unigram_on_paper() -> None:
    """0 occurs three times, 1 four times, 2 twice, 3 once: one of each count from which discounts are estimated.

    Y = 1 / (1 + 2) gives 1 - 2/3 = 1/3, 2 - 1 = 1 and 3 - 4/3 = 5/3. So 5/3 + 5/3 + 1 + 1/3 of ten is discounted.
    """
    model = KneserNey(TEN, order=1, vocab_size=5, end=0)
    assert model.discounts[0] == pytest.approx((1 / 3, 1, 5 / 3))
    expected = [(count + 14 / 3 / 5) / 10 for count in (3 - 5 / 3, 4 - 5 / 3, 2 - 1, 1 - 1 / 3, 0)]
    assert sum(expected) == pytest.approx(1)
    assert model.nats(np.array([0, 1, 2, 3, 4])) == pytest.approx([-math.log(each) for each in expected])


def test_discounts_on_paper() -> None:
    counts = np.array([1] * 4 + [2] * 2 + [3] * 1 + [4] * 1 + [9] * 5)
    share = 4 / (4 + 2 * 2)
    expected = (1 - 2 * share * 2 / 4, 2 - 3 * share * 1 / 2, 3 - 4 * share * 1 / 1)
    assert estimate_discounts(counts) == pytest.approx(expected)
    assert estimate_discounts(np.array([1, 2, 3])) == FALLBACK, "nothing was seen four times"
    assert estimate_discounts(np.array([1] * 10 + [2] + [3] * 10 + [4])) == FALLBACK, "the second would be below 0"


@given(lines, st.integers(1, 5), st.lists(st.integers(1, 4), max_size=6))
def test_probabilities_sum_to_one(line: list[int], order: int, history: list[int]) -> None:
    assert chances(KneserNey(np.array(line), order, 5, end=0), history).sum() == pytest.approx(1, abs=1e-9)


@given(lines, lines, st.integers(1, 5))
def test_the_fast_model_equals_its_readable_twin(line: list[int], held_out: list[int], order: int) -> None:
    fast, plain = KneserNey(np.array(line), order, 6, end=0), PlainKneserNey(line, order, 6, end=0)
    assert np.allclose(fast.discounts, plain.discounts)
    assert fast.nats(np.array(held_out)) == pytest.approx(plain.nats(held_out), abs=1e-9)


def test_the_twins_agree_on_text_with_estimated_discounts(data) -> None:
    line = np.concatenate(list(data["train"])).astype(np.int64)[:4000]
    held_out = np.asarray(data["validation"][0], np.int64)
    end, vocab_size = data.tokenizer.special["eos"], data.tokenizer.vocab_size
    for order in (3, 5):
        fast = KneserNey(line, order, vocab_size, end)
        assert fast.discounts[0] != FALLBACK
        plain = PlainKneserNey(line.tolist(), order, vocab_size, end)
        assert fast.nats(held_out) == pytest.approx(plain.nats(held_out.tolist()), abs=1e-9)


@needs_news
@pytest.mark.parametrize("order", [2, 3, 5])
def test_news_against_nltk(order: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """NLTK's conventions: n - 1 end tokens before a document, not predicted; one discount; no mixing with 1/V."""
    lm = pytest.importorskip("nltk.lm", reason="NLTK is not installed")
    read = islice(read_documents([SHARED_DATA / "news" / "train.jsonl.zst"]), 33)
    articles = [document.text.split()[:100] for document in read]
    words = {word: number for number, word in enumerate(sorted({word for each in articles for word in each}), 1)}
    *documents, new, other, _ = [[words[word] for word in each] + [0] for each in articles]
    known = {token for document in documents for token in document}
    held_out = [[token for token in each if token in known] for each in (new, other, [*documents[3][:40], 0])]

    theirs = lm.KneserNeyInterpolated(order, discount=0.75)
    theirs.fit([grams(document, order) for document in documents], sorted(map(str, known)))
    fixed = iter([(0.0, 0.0, 0.0), *[(0.75, 0.75, 0.75)] * (order - 1)])
    monkeypatch.setattr("kotha.text.ngram.estimate_discounts", lambda _: next(fixed))
    ours = KneserNey(np.concatenate(documents), order, len(words) + 1, end=0)
    expected = [
        -math.log(theirs.score(gram[-1], gram[:-1]))
        for document in held_out
        for gram in grams(document, order)
        if len(gram) == order
    ]
    assert len(expected) > 100
    assert ours.nats(np.concatenate(held_out)) == pytest.approx(expected, abs=1e-9)


def grams(document: list[int], order: int) -> list[tuple[str, ...]]:
    """All n-grams up to an order that end at a token of the document; the document is preceded by end tokens."""
    padded = list(map(str, [0] * (order - 1) + document))
    ends = range(order, len(padded) + 1)
    return [tuple(padded[end - length : end]) for end in ends for length in range(1, order + 1)]


@pytest.mark.parametrize(
    ("line", "order", "wording"),
    [
        ([1, 0], 0, "order=0 must be between 1 and 9"),
        ([1, 0], 10, "order=10"),
        ([], 3, "cannot count n-grams"),
    ],
)
def test_invalid_input_to_counting_is_rejected(line: list[int], order: int, wording: str) -> None:
    with pytest.raises(UsageError, match=wording):
        KneserNey(np.array(line, np.int64), order, 5, end=0)
