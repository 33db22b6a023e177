"""Texts as a classifier reads them: whole where they fit, in stretches where they do not."""

import pytest
from tests.text.conftest import trained

from kotha.text.tokenizer.prompt import MarkedTexts


@pytest.mark.parametrize("length", [*range(60), 81, 200, 1_001])
def test_stretches_fit_and_lie_in_order(length: int) -> None:
    reader = MarkedTexts(trained("wordpiece"), ("cls", "sep"), context_length=12)
    found = reader.stretches(length)
    assert found[0][0] == 0 and found[-1][1] == length and len(found) <= 8
    assert all(0 <= end - start <= 10 for start, end in found)
    assert [start for start, _ in found] == sorted(start for start, _ in found)
    if length <= 80:  # all of it, each token once, in parts of nearly one length
        assert [place for start, end in found for place in range(start, end)] == [*range(length)]
        assert max(end - start for start, end in found) - min(end - start for start, end in found) <= 1
    else:
        assert len(found) == 8 and all(end - start == 10 for start, end in found)


def test_what_was_not_read_is_counted() -> None:
    tokenizer = trained("wordpiece")
    reader = MarkedTexts(tokenizer, ("cls", "sep"), context_length=12)
    word = "আমি "
    each = len(tokenizer.encode(word))
    assert [len(some) for some in reader.encode([word, word * (80 // each), word * 100])] == [1, 8, 8]
    assert reader.truncated == 1
