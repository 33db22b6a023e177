"""The chapter in which the learner builds a GPT: short pieces, and one complete model on one page."""

import re

import pytest
from scripts.book.chapters import LEARN, Chapter


@pytest.mark.parametrize("name", ["build.md", "build.bn.md"])
def test_the_pieces_and_the_page_are_short(name: str) -> None:
    blocks = [part.text for part in Chapter(LEARN / name).parts if part.kind == "python"]
    answers = {re.match(r"(?:class|def) (\w+)", each)[1]: each for each in blocks if re.match("class|def", each)}  # type: ignore[index]
    pieces = ("Attention", "MultiHeadAttention", "FeedForward", "Block", "GPT", "loss", "sampling")
    assert all(len(answers[piece].strip().splitlines()) <= 28 for piece in pieces)
    assert len(blocks[-1].splitlines()) < 150
    assert all(f" {piece}(" in blocks[-1] for piece in pieces[1:])
