"""The modified models of the lessons: removed parts are gone, replaced parts work."""

from dataclasses import replace

import pytest
import torch
from tests.course.lessons.small import TINY, changed, loud
from torch import nn

from kotha.course.lessons.ablations import filled_holes, loss_at_holes, loss_behind
from kotha.course.lessons.learning import gradients_by_block, next_tokens
from kotha.course.lessons.lstm import recurrent
from kotha.course.lessons.measures import parameters_of
from kotha.course.lessons.parameters import by_counting, by_formula, config_of
from kotha.course.lessons.training_data import classroom
from kotha.course.lessons.variants import Filler, with_joined_positions, without_residuals
from kotha.course.lessons.vision import convolutions, vit
from kotha.model.gpt import GPT


def test_joined_positions_follow_the_numbers_of_the_token() -> None:
    config = classroom(TINY).gpt()
    model = with_joined_positions(config, 4)
    tokens = torch.tensor([[5, 6, 5]])
    x = model.positions(model.tokens(tokens), torch.arange(3))
    assert x.shape == (1, 3, config.d_model) and model.tokens.embedding_dim == config.d_model - 4
    assert torch.equal(x[0, 0, :-4], x[0, 2, :-4]), "the same token has the same numbers"
    assert not torch.equal(x[0, 0, -4:], x[0, 2, -4:]), "the position differs"
    assert model(tokens).shape == (1, 3, config.vocab_size)


def test_without_residuals_a_part_replaces_its_input() -> None:
    config = classroom(TINY).gpt(n_layers=1)
    torch.manual_seed(0)
    tokens = torch.randint(5, 40, (1, 8))
    kept, gone = loud(GPT(config)), loud(without_residuals(config))
    for model in (kept, gone):
        nn.init.zeros_(model.stack.blocks[0].feedforward.down.weight)
    assert kept(tokens).std(dim=1).max() > 1e-3, "the input is still there"
    assert gone(tokens).std(dim=1).max() < 1e-6, "a part with zero output removes its input"


def test_every_block_has_a_first_gradient() -> None:
    room = classroom(TINY)
    model = without_residuals(room.gpt(n_layers=3))
    torch.autograd.backward(next_tokens(model, room.batch(0, 0)))
    assert len(gradients_by_block(model)) == 3 and all(size > 0 for size in gradients_by_block(model))


def test_an_encoder_sees_both_sides_of_a_mask_and_never_predicts_one() -> None:
    room = classroom(TINY)
    torch.manual_seed(0)
    model = loud(Filler(room.gpt()))
    assert model.head.out_features == model.hole == room.tokenizer.vocab_size
    assert changed(model).min() > 0, "every position sees the last token"
    full = torch.randint(5, 40, (2, TINY.context_length))
    assert model(full).shape == (2, TINY.context_length, room.tokenizer.vocab_size), (
        "a full context has room for a hole"
    )
    assert torch.isfinite(filled_holes(model, room.batch(0, 0)))


def test_a_decoder_has_the_same_loss_at_a_masked_and_at_a_next_token() -> None:
    room = classroom(TINY)
    torch.manual_seed(0)
    decoder, encoder, windows = loud(GPT(room.gpt())), loud(Filler(room.gpt())), room.windows()
    assert loss_at_holes(decoder, windows) == pytest.approx(loss_behind(decoder, windows), abs=1e-5)
    assert loss_at_holes(encoder, windows) != pytest.approx(loss_behind(encoder, windows), abs=1e-3)


@pytest.mark.parametrize("width", [16, 32, 64])
def test_lstm_and_cnn_match_the_transformer_in_size(width: int) -> None:
    config = classroom(TINY).gpt(d_model=width)
    assert parameters_of(recurrent(config)) == pytest.approx(parameters_of(GPT(config)), rel=0.08)
    sizes = replace(TINY, d_model=width)
    assert parameters_of(convolutions(sizes)) == pytest.approx(parameters_of(vit(sizes)), rel=0.12)


def test_an_lstm_does_not_look_ahead() -> None:
    by = changed(recurrent(classroom(TINY).gpt()))
    assert (by[:-1] == 0).all() and by[-1] > 0


@pytest.mark.parametrize(("width", "n_heads"), [(512, 8), (512, 1), (64, 4)])
@pytest.mark.parametrize("bias", [True, False])
def test_attention_has_as_many_parameters_as_torch_s_own(width: int, n_heads: int, bias: bool) -> None:
    config = config_of(d_model=width, n_heads=n_heads, attention_bias=bias)
    torch_s = nn.MultiheadAttention(width, n_heads, bias=bias, device="meta")
    assert by_formula(config) == by_counting(config)[0] == parameters_of(torch_s)


def test_shared_keys_have_fewer() -> None:
    assert by_formula(config_of(n_kv_heads=2)) == by_counting(config_of(n_kv_heads=2))[0] == 655_360
