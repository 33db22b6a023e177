"""The readable implementations agree with the library."""

import json
from collections import Counter

import pytest
import regex
import tokenizers
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from tests.text.conftest import SENTENCES, trained
from tokenizers import models

from kotha.text.tokenizer import bpe_and_unigram
from kotha.text.tokenizer.decoding import byte_level
from kotha.text.tokenizer.pipeline import SPLITS, WORDS
from kotha.text.tokenizer.readable import apply_merges, best_cut, count_pairs, join, learn_merges

REAL_WORDS = Counter(word for sentence in SENTENCES for word in sentence.split())

# Few characters and small counts, so that ties are common.
small_words = st.dictionaries(st.text("কখগা", min_size=1, max_size=6), st.integers(1, 4), min_size=1, max_size=8)


def library_merges(words, n_merges, min_frequency=0):
    alphabet = len(set("".join(words)))
    backend = bpe_and_unigram._trained_bpe(Counter(words), vocab_size=alphabet + n_merges, min_frequency=min_frequency)
    return bpe_and_unigram._merges(backend)


# -- learning ---------------------------------------------------------------------------------------------------------


def test_merges_by_hand():
    """কল occurs 5 + 3 + 2 times; then কলা with 5 occurrences beats কলম with 3."""
    words = {"কলা": 5, "কলম": 3, "কল": 2}
    assert count_pairs({word: list(word) for word in words}, words) == {("ক", "ল"): 10, ("ল", "া"): 5, ("ল", "ম"): 3}
    assert learn_merges(words, 3) == [("ক", "ল"), ("কল", "া"), ("কল", "ম")]
    assert learn_merges(words, 99) == learn_merges(words, 3)
    assert learn_merges(words, 99, min_frequency=4) == [("ক", "ল"), ("কল", "া")]
    assert learn_merges({}, 5) == []


def test_ties_go_to_the_earlier_letter_then_to_the_older_piece():
    assert learn_merges({"খগ": 1, "কঘ": 1}, 1) == [("ক", "ঘ")] == library_merges({"খগ": 1, "কঘ": 1}, 1)
    assert learn_merges({"কঘ": 1, "কখ": 1}, 1) == [("ক", "খ")] == library_merges({"কঘ": 1, "কখ": 1}, 1)
    words = {"কখগ": 2, "গঘ": 2, "ঘক": 2}  # after ক+খ, the pair (কখ, গ) is newer than (গ, ঘ)
    assert learn_merges(words, 3) == [("ক", "খ"), ("গ", "ঘ"), ("ঘ", "ক")] == library_merges(words, 3)


def test_overlaps_are_joined_from_the_left():
    assert join(list("ককক"), ("ক", "ক")) == ["কক", "ক"]
    assert learn_merges({"কককক": 1}, 5) == library_merges({"কককক": 1}, 5)


@settings(max_examples=300, deadline=None)
@given(small_words, st.integers(1, 12), st.integers(1, 3))
def test_learned_merges_are_the_librarys(words, n_merges, min_frequency):
    ours = learn_merges(words, n_merges, min_frequency)
    # The library limits the vocabulary: a merge that gives an existing piece does not count.
    assume(len({left + right for left, right in ours}) == len(ours))
    assert ours == library_merges(words, n_merges, min_frequency)


def test_merges_of_real_words_are_the_librarys():
    assert learn_merges(REAL_WORDS, 200) == library_merges(REAL_WORDS, 200)


# -- applying ---------------------------------------------------------------------------------------------------------


def test_applying_by_hand():
    ranks = {("ক", "ল"): 0, ("কল", "া"): 1, ("া", "ক"): 2}
    assert apply_merges("কলাক", ranks) == ["কলা", "ক"]  # কল is merged first; then কলা uses the sign before া+ক can
    assert apply_merges("", ranks) == []
    assert apply_merges("খ", ranks) == ["খ"]


@settings(max_examples=200, deadline=None)
@given(small_words, st.text("কখগা", max_size=12))
def test_applied_merges_are_the_librarys(words, text):
    merges = learn_merges(words, 20)
    symbols = dict.fromkeys([*"কখগা", *(left + right for left, right in merges)])
    backend = tokenizers.Tokenizer(models.BPE({symbol: index for index, symbol in enumerate(symbols)}, merges))
    ranks = {}
    for rank, pair in enumerate(merges):
        ranks.setdefault(pair, rank)
    assert apply_merges(text, ranks) == backend.encode(text).tokens


@pytest.mark.parametrize("name", ["bpe-qwen35", "bpe-words"])
def test_our_bpe_agrees_with_the_readable_implementation(name):
    tokenizer = trained(name)
    merges = json.loads(tokenizer.backend.to_str())["model"]["merges"]
    ranks = {(left, right): rank for rank, (left, right) in enumerate(merges)}
    split = SPLITS[tokenizer.split_name]
    for word in REAL_WORDS:
        if name == "bpe-qwen35" and "র\u200d্যা" in word:
            continue  # an added token, which is found before any merge
        chunks = regex.findall(split, word)
        by_hand = [piece for chunk in chunks for piece in apply_merges(byte_level(chunk), ranks)]
        assert by_hand == [tokenizer.pieces[token] for token in tokenizer.encode(word)], word


# -- the best segmentation --------------------------------------------------------------------------------------------


def test_the_best_cut_by_hand():
    """-2 - 2 = -4 is more than -9, and than any segmentation into letters."""
    scores = {"কলা": -2.0, "গাছ": -2.0, "কলাগাছ": -9.0, "ক": -5.0, "ল": -5.0, "া": -5.0, "গ": -5.0, "ছ": -5.0}
    assert best_cut("কলাগাছ", scores) == ["কলা", "গাছ"]
    assert best_cut("কলাগাছ", scores | {"কলাগাছ": -3.5}) == ["কলাগাছ"]
    assert best_cut("", scores) == []
    assert best_cut("xক", scores) == ["x", "ক"]  # not covered by a piece: a token of its own, with a low score


def unigram_tokens(scores, word):
    backend = tokenizers.Tokenizer(models.Unigram([("<unk>", -50.0), *scores.items()], unk_id=0))
    return backend.encode(word).tokens


@settings(max_examples=300, deadline=None)
@given(
    st.dictionaries(st.text("কখগা", min_size=2, max_size=5), st.integers(1, 2**20), max_size=10),
    st.tuples(*[st.integers(1, 2**20)] * 4),
    st.text("কখগা", min_size=1, max_size=12),
)
def test_the_best_cut_is_the_librarys(long_pieces, letters, word):
    numbers = dict(zip("কখগা", letters, strict=True)) | long_pieces
    # A distinct binary fraction for each piece keeps sums exact, so that ties do not depend on rounding.
    scores = {piece: -1.0 - number / 2**16 for piece, number in numbers.items()}
    ours, theirs = best_cut(word, scores), unigram_tokens(scores, word)
    assert sum(scores[piece] for piece in ours) == sum(scores[piece] for piece in theirs)
    assert "".join(theirs) == word
    assert ours == theirs


def test_our_unigram_agrees_with_the_readable_implementation():
    tokenizer = trained("unigram")
    vocabulary = json.loads(tokenizer.backend.to_str())["model"]["vocab"]
    scores = {piece: score for piece, score in vocabulary if score > -1000}
    for sentence in SENTENCES:
        by_hand = [piece for chunk in regex.findall(WORDS, sentence) for piece in best_cut(chunk, scores)]
        assert by_hand == [tokenizer.pieces[token] for token in tokenizer.encode(sentence)]
