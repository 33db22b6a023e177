"""The end of a long text is encoded as in the complete text; a classifier reads a text in full or in excerpts."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.text.conftest import KINDS, SENTENCES, trained

from kotha.text.tokenizer.prompt import MarkedTexts, encode_end

WORDS = sorted({word for sentence in SENTENCES for word in sentence.split()})


@pytest.mark.parametrize("name", KINDS)
def test_the_last_tokens_equal_those_of_the_complete_text(name: str) -> None:
    tokenizer, text = trained(name), " ".join(SENTENCES * 40)
    ids, whole = encode_end(tokenizer, text, 20)
    assert not whole and len(ids) < len(tokenizer.encode(text)) / 2, "most of it is not looked at"
    assert ids[-20:] == tokenizer.encode(text)[-20:]
    assert encode_end(tokenizer, SENTENCES[0], 20) == (tokenizer.encode(SENTENCES[0]), True)


PIECES = st.sampled_from([*WORDS, " ", "  ", "\n", "।", "ক্", "\u200d", "\u200c", "া", "x", "🌊", "১২", "e\u0301"])


@pytest.mark.parametrize("name", KINDS)
@given(pieces=st.lists(st.tuples(PIECES, st.integers(1, 60)), min_size=1, max_size=30), tokens=st.integers(1, 6))
@settings(max_examples=40, deadline=None)
def test_any_text_before_the_cut(name: str, pieces: list[tuple[str, int]], tokens: int) -> None:
    tokenizer, text = trained(name), " ".join(piece * times for piece, times in pieces)
    ids, whole = encode_end(tokenizer, text, tokens)
    assert ids[-tokens:] == tokenizer.encode(text)[-tokens:]
    assert not whole or ids == tokenizer.encode(text)


def test_more_is_read_if_normalization_shortens_the_text() -> None:
    tokenizer = trained("unigram")
    text = " ".join(WORDS * 20) + "\u200b" * 40_000 + " নদী"
    ids, _ = encode_end(tokenizer, text, 50)
    assert ids[-50:] == tokenizer.encode(text)[-50:]


@pytest.mark.parametrize("length", [*range(60), 81, 200, 1_001])
def test_stretches_fit_and_lie_in_order(length: int) -> None:
    reader = MarkedTexts(trained("wordpiece"), ("cls", "sep"), context_length=12)
    found = reader.stretches(length)
    assert found[0][0] == 0 and found[-1][1] == length and len(found) <= 8
    assert all(0 <= end - start <= 10 for start, end in found)
    assert [start for start, _ in found] == sorted(start for start, _ in found)
    if length <= 80:  # the complete text: each token once, in parts of about equal length
        assert [place for start, end in found for place in range(start, end)] == [*range(length)]
        assert max(end - start for start, end in found) - min(end - start for start, end in found) <= 1
    else:
        assert len(found) == 8 and all(end - start == 10 for start, end in found)


def test_truncated_texts_are_counted() -> None:
    tokenizer = trained("wordpiece")
    reader = MarkedTexts(tokenizer, ("cls", "sep"), context_length=12)
    word = "আমি "
    each = len(tokenizer.encode(word))
    assert [len(some) for some in reader.encode([word, word * (80 // each), word * 100])] == [1, 8, 8]
    assert reader.truncated == 1
