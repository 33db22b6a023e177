"""Properties that hold for any weights."""

from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.model.conftest import shake

from kotha.model.bert import BERT
from kotha.model.config import BERTConfig, GPTConfig, Seq2SeqConfig
from kotha.model.gpt import GPT
from kotha.model.presets import MODERN
from kotha.model.seq2seq import Seq2Seq

FEW = settings(max_examples=8, deadline=None, derandomize=True)
SIZES: dict[str, Any] = {"d_model": 16, "n_heads": 2, "n_layers": 2, "vocab_size": 30, "context_length": 12}
LAYOUTS: list[dict[str, Any]] = [{}, {**MODERN, "n_kv_heads": 1}, {"positions": "sinusoidal", "norm_order": "post"}]
layouts = st.sampled_from(LAYOUTS)
seeds = st.integers(0, 1000)


@FEW
@given(layout=layouts, changed=st.integers(1, 11), seed=seeds)
def test_a_changed_future_token_changes_no_earlier_logit(layout: Any, changed: int, seed: int) -> None:
    torch.manual_seed(seed)
    gpt, translator = GPT(GPTConfig(**SIZES, **layout)), Seq2Seq(Seq2SeqConfig(**{**SIZES, **layout}))
    tokens, source = torch.randint(30, (1, 12)), torch.randint(30, (1, 6))
    other = tokens.clone()
    other[0, changed] = (other[0, changed] + 1) % 30
    for model, more in ((gpt, ()), (translator, (source,))):
        shake(model)
        before, after = model(*more, tokens), model(*more, other)
        assert torch.equal(before[:, :changed], after[:, :changed])
        assert not torch.equal(before[:, changed:], after[:, changed:])


@FEW
@given(layout=layouts, n_padded=st.integers(1, 6), seed=seeds)
def test_padding_changes_nothing_at_real_positions(layout: Any, n_padded: int, seed: int) -> None:
    torch.manual_seed(seed)
    n_real, n_tokens = 12 - n_padded, 12
    tokens = torch.randint(30, (1, n_tokens))
    real = torch.arange(n_tokens)[None] < n_real
    gpt, bert = GPT(GPTConfig(**SIZES, **layout)), BERT(BERTConfig(**{**SIZES, **layout}))
    translator = Seq2Seq(Seq2SeqConfig(**{**SIZES, **layout}))
    for model in (gpt, bert, translator):
        shake(model)
    short, target = tokens[:, :n_real], torch.randint(30, (1, 5))
    pairs = [
        (gpt(tokens, real)[:, :n_real], gpt(short)),
        (bert(tokens, real=real).token_logits[:, :n_real], bert(short).token_logits),
        (bert(tokens, real=real).pair_logits, bert(short).pair_logits),
        (translator(tokens, target, real), translator(short, target)),
    ]
    for padded, alone in pairs:
        assert (padded - alone).abs().max() <= 1e-5


@FEW
@given(order=st.permutations(range(12)), seed=seeds)
def test_without_positions_an_encoder_does_not_see_order(order: list[int], seed: int) -> None:
    torch.manual_seed(seed)
    model = BERT(BERTConfig(**SIZES, positions="none"))
    shake(model)
    tokens = torch.randint(30, (2, 12))
    assert (model.hidden(tokens[:, order]) - model.hidden(tokens)[:, order]).abs().max() <= 1e-5


@pytest.mark.parametrize("positions", ["learned", "sinusoidal", "sinusoidal-halves", "rotary"])
def test_with_positions_it_does(positions: Any) -> None:
    torch.manual_seed(0)
    model = BERT(BERTConfig(**SIZES, positions=positions))
    shake(model)
    tokens = torch.arange(12)[None]
    assert (model.hidden(tokens.flip(1)) - model.hidden(tokens).flip(1)).abs().max() > 1e-3
