"""The chapter in which the learner builds a GPT: short pieces, GPT-2's weights, and a complete model on one page."""

import re
from typing import Any

import pytest
import torch
from scripts.book.chapters import LEARN, Chapter

PIECES = ("Attention", "MultiHeadAttention", "FeedForward", "Block", "GPT", "loss", "sampling")


def blocks_of(name: str) -> list[str]:
    return [part.text for part in Chapter(LEARN / name).parts if part.kind == "python"]


@pytest.mark.parametrize("name", ["build.md", "build.bn.md"])
def test_the_pieces_and_the_page_are_short(name: str) -> None:
    *blocks, page = blocks_of(name)
    answers = {found[1]: each for each in blocks if (found := re.match(r"(?:class|def) (\w+)", each))}
    assert all(len(answers[piece].strip().splitlines()) <= 25 + 3 for piece in PIECES)
    assert len(page.splitlines()) < 150
    assert all(f" {piece}(" in page for piece in PIECES[1:])


def test_the_weights_of_hugging_face_s_gpt2_fit_the_learner_s_model() -> None:
    transformers = pytest.importorskip("transformers")
    names: dict[str, Any] = {}
    for block in blocks_of("build.md")[:-1]:
        if not re.search(r"class (Hasty|Better)|train\(|write\(|write_stories|kotha\.report", block):
            exec(block.split("\n\n\nprint(")[0], names)
        if "def load_gpt2" in block:
            break
    config = transformers.GPT2Config(vocab_size=50, n_positions=16, n_embd=24, n_head=3, n_layer=2)
    theirs, mine = transformers.GPT2LMHeadModel(config).eval(), names["GPT"](50, 16, 24, 3, 96, 2)
    for weight in theirs.parameters():
        torch.nn.init.normal_(weight, std=0.2)
    names["load_gpt2"](mine, theirs.state_dict())
    tokens = torch.randint(50, (2, 9))
    torch.testing.assert_close(mine(tokens), theirs(tokens).logits, rtol=1e-4, atol=1e-4)
