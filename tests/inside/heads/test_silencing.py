"""Heads switched off beside the whole model: surprise, answers and writing, of every family."""

import numpy as np
import pytest
import torch
from tests.inside.small_models import TEXT, make, small

from kotha.api.asked import Asked, continuation, read_asked
from kotha.errors import UsageError
from kotha.inside.heads.importance import every_head, without_heads
from kotha.model.pruning import remove_heads


def test_silent_heads_say_what_removed_heads_say() -> None:
    """The proof by another way: the same heads taken out of the weights."""
    bundle, heads = make("gpt"), ["blocks.0.attention.1", "blocks.1.attention.0"]
    given = read_asked(bundle, Asked(TEXT))
    whole, without = without_heads(bundle.model, given, heads)
    smaller = remove_heads(bundle.model, heads).eval()
    logits = given.pass_through(smaller)[0]
    ids = torch.tensor([piece.id for piece in given.lines["tokens"]])
    nats = torch.nn.functional.cross_entropy(logits[:-1], ids[1:], reduction="none")
    torch.testing.assert_close(torch.tensor(without.nats), nats, atol=1e-4, rtol=1e-4)
    best = logits[-1].softmax(-1).topk(10)
    assert [token for token, _ in without.answers[0].best] == best.indices.tolist()
    assert without.loss_nats == pytest.approx(float(nats.mean()), abs=1e-4)
    assert whole.nats != without.nats and whole.written is None


def test_both_go_on_with_the_text_and_nothing_stays() -> None:
    bundle, asked = small("gpt"), Asked(TEXT, generate=4)
    given, heads = read_asked(bundle, Asked(TEXT)), every_head(bundle.model)
    whole, without = without_heads(bundle.model, given, heads, lambda: continuation(bundle, asked))
    assert whole.written and without.written and whole.written != without.written
    assert not any(module._forward_hooks for module in bundle.model.modules())


@pytest.mark.parametrize("body", ["bert", "seq2seq", "vit"])
def test_every_family_answers(body: str) -> None:
    bundle = small(body)
    image = np.random.default_rng(0).uniform(-1, 1, (1, 8, 8)).astype(np.float32)
    given = read_asked(bundle, Asked(image=image) if body == "vit" else Asked(TEXT))
    whole, without = without_heads(bundle.model, given, every_head(bundle.model)[:3])
    assert whole.answers != without.answers
    assert (whole.loss_nats is None) == (body != "seq2seq")
    assert str(given.title) == ("An image" if body == "vit" else TEXT)


def test_a_head_that_is_not_there_is_refused() -> None:
    bundle = small("gpt")
    with pytest.raises(UsageError, match="there is no head"):
        without_heads(bundle.model, read_asked(bundle, Asked(TEXT)), ["blocks.0.attention.9"])


def test_what_is_asked_is_checked_when_it_is_said() -> None:
    with pytest.raises(UsageError, match="generate=0 writes nothing; use 1 or more"):
        Asked("আজ", generate=0)
