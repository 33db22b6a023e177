"""Heads switched off beside the whole model: surprise, answers and writing, of every family."""

import numpy as np
import pytest
import torch
from tests.inside.small_models import TEXT, make, small

from kotha.errors import UsageError
from kotha.inside.heads.importance import every_head
from kotha.inside.heads.silencing import without_heads
from kotha.inside.inputs import read
from kotha.inside.request import Asked
from kotha.model.pruning import remove_heads


def test_silent_heads_say_what_removed_heads_say() -> None:
    """The proof by another way: the same heads taken out of the weights."""
    bundle, heads = make("gpt"), ["blocks.0.attention.1", "blocks.1.attention.0"]
    found = without_heads(bundle, TEXT, heads)
    given = read(bundle.model, bundle.tokenizer, TEXT)
    smaller = remove_heads(bundle.model, heads).eval()
    logits = given.pass_through(smaller)[0]
    ids = torch.tensor([piece.id for piece in given.lines["tokens"]])
    nats = torch.nn.functional.cross_entropy(logits[:-1], ids[1:], reduction="none")
    torch.testing.assert_close(torch.tensor(found.without.nats), nats, atol=1e-4, rtol=1e-4)
    best = logits[-1].softmax(-1).topk(10)
    assert [token for token, _ in found.without.answers[0].best] == best.indices.tolist()
    assert found.without.loss_nats == pytest.approx(float(nats.mean()), abs=1e-4)
    assert found.whole.nats != found.without.nats


def test_both_go_on_with_the_text_and_nothing_stays() -> None:
    bundle = small("gpt")
    heads = every_head(bundle.model)
    found = without_heads(bundle, Asked(TEXT, generate=4), heads)
    assert found.whole.written and found.without.written and found.whole.written != found.without.written
    assert without_heads(bundle, Asked(TEXT, generate=4), heads).whole == found.whole
    assert not any(module._forward_hooks for module in bundle.model.modules())


@pytest.mark.parametrize("body", ["bert", "seq2seq", "vit"])
def test_every_family_answers(body: str) -> None:
    bundle = small(body)
    image = np.random.default_rng(0).uniform(-1, 1, (1, 8, 8)).astype(np.float32)
    asked = Asked(image=image) if body == "vit" else Asked(TEXT)
    found = without_heads(bundle, asked, every_head(bundle.model)[:3])
    assert found.whole.answers != found.without.answers
    assert (found.whole.loss_nats is None) == (body != "seq2seq") and found.whole.written is None
    if body == "vit":
        assert str(asked.headline()) == "An image"


def test_what_cannot_be_done_is_said() -> None:
    with pytest.raises(UsageError, match="only a GPT goes on"):
        without_heads(small("bert"), Asked(TEXT, generate=2), ["blocks.0.attention.0"])
    with pytest.raises(UsageError, match="there is no head"):
        without_heads(small("gpt"), TEXT, ["blocks.0.attention.9"])
