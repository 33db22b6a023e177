"""The end of a long text is encoded as the whole text has it."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.text.conftest import KINDS, SENTENCES, trained

from kotha.text.tokenizer.prompt import encode_end

WORDS = sorted({word for sentence in SENTENCES for word in sentence.split()})


@pytest.mark.parametrize("name", KINDS)
def test_the_last_tokens_are_those_of_the_whole(name: str) -> None:
    tokenizer, text = trained(name), " ".join(SENTENCES * 40)
    ids, whole = encode_end(tokenizer, text, 20)
    assert not whole and len(ids) < len(tokenizer.encode(text)) / 2, "most of it is not looked at"
    assert ids[-20:] == tokenizer.encode(text)[-20:]
    assert encode_end(tokenizer, SENTENCES[0], 20) == (tokenizer.encode(SENTENCES[0]), True)


PIECES = st.sampled_from([*WORDS, " ", "  ", "\n", "।", "ক্", "\u200d", "\u200c", "া", "x", "🌊", "১২", "e\u0301"])


@pytest.mark.parametrize("name", KINDS)
@given(pieces=st.lists(st.tuples(PIECES, st.integers(1, 60)), min_size=1, max_size=30), tokens=st.integers(1, 6))
@settings(max_examples=40, deadline=None)
def test_whatever_stands_there(name: str, pieces: list[tuple[str, int]], tokens: int) -> None:
    tokenizer, text = trained(name), " ".join(piece * times for piece, times in pieces)
    ids, whole = encode_end(tokenizer, text, tokens)
    assert ids[-tokens:] == tokenizer.encode(text)[-tokens:]
    assert not whole or ids == tokenizer.encode(text)


def test_where_too_little_is_left_more_is_read() -> None:
    tokenizer = trained("unigram")
    text = " ".join(WORDS * 20) + "\u200b" * 40_000 + " নদী"
    ids, _ = encode_end(tokenizer, text, 50)
    assert ids[-50:] == tokenizer.encode(text)[-50:]
