"""Encoding with a word cache equals encoding without it."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.text.conftest import trained

from kotha.text import encoding as memo_module
from kotha.text.encoding import MemoEncoder

TEXT = st.text() | st.lists(
    st.sampled_from([" ", "  ", "\n", " \n", "\t ", "নদী", "র‍্যা", "ক্", "a's", "২৫", "।", "\0"])
).map("".join)


@pytest.fixture
def memo(tokenizer) -> MemoEncoder:
    return MemoEncoder(tokenizer, "<u2")


def test_equals_the_tokenizer_on_any_text(tokenizer, memo) -> None:
    @given(st.lists(TEXT, max_size=4))
    def check(texts: list[str]) -> None:
        normalized = [tokenizer.normalize(text) for text in texts]
        assert [list(ids) for ids in memo.encode_batch(normalized)] == [tokenizer.encode(text) for text in normalized]

    check()


def test_the_cache_is_cleared_when_full(tokenizer, monkeypatch) -> None:
    monkeypatch.setattr(memo_module, "_MAX_WORDS", 3)
    memo = MemoEncoder(tokenizer, "<u2")
    for text in ["এক দুই তিন চার পাঁচ", "ছয় সাত আট", "এক দুই"] * 3:
        normalized = tokenizer.normalize(text)
        assert list(memo.encode_batch([normalized])[0]) == tokenizer.encode(text)
        assert len(memo._memo) <= 3 + 5


def test_ids_have_the_requested_type() -> None:
    ids = MemoEncoder(trained("unigram"), "<u4").encode_batch(["নদী"])[0]
    assert ids.dtype == np.dtype("<u4")
