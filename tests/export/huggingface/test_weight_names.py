"""The table of foreign names reads the same both ways."""

import pytest
import torch
from tests.export.models import ARCHITECTURES, CONFIGS, shaken

from kotha.artifacts.model_folder import unique_weights
from kotha.errors import KothaError
from kotha.export.huggingface.layouts import BERT, GPT2, LAYOUTS, LLAMA, MARIAN, choose_layout


@pytest.mark.parametrize("name", CONFIGS)
def test_out_and_back_is_the_same(name: str) -> None:
    bundle = shaken(CONFIGS[name])
    layout = choose_layout(bundle.config)
    assert layout.architecture == ARCHITECTURES[name]
    model = shaken(layout.full(bundle.config)).model
    ours = unique_weights(model)
    theirs = layout.weights.to_theirs(ours, model.config)
    shapes = layout.weights.shapes({each: tuple(tensor.shape) for each, tensor in ours.items()}, model.config)
    assert shapes == {each: tuple(tensor.shape) for each, tensor in theirs.items()}
    back = layout.weights.to_ours(theirs)
    assert back.keys() == ours.keys()
    assert all(torch.equal(back[each], ours[each]) for each in ours)


def test_every_layout_is_tried() -> None:
    assert {layout.architecture for layout in LAYOUTS} == set(ARCHITECTURES.values())


def test_gpt2_turns_matrices_and_keeps_three_in_one() -> None:
    model = shaken(GPT2.full(CONFIGS["gpt2"])).model
    ours = unique_weights(model)
    theirs = GPT2.weights.to_theirs(ours, model.config)
    joined = theirs["transformer.h.1.attn.c_attn.weight"]
    assert joined.shape == (16, 48)
    assert torch.equal(joined[:, 16:32].T, ours["stack.blocks.1.attention.key.weight"])
    assert torch.equal(theirs["transformer.h.0.mlp.c_fc.weight"].T, ours["stack.blocks.0.feedforward.up.weight"])


@pytest.mark.parametrize(
    ("layout", "written", "usual"),
    [
        (GPT2, "h.0.ln_1.weight", "transformer.h.0.ln_1.weight"),  # a body that was saved alone
        (GPT2, "h.3.attn.masked_bias", None),
        (LLAMA, "model.layers.0.self_attn.rotary_emb.inv_freq", None),
        (BERT, "bert.embeddings.LayerNorm.gamma", "bert.embeddings.LayerNorm.weight"),
        (BERT, "cls.predictions.decoder.bias", "cls.predictions.bias"),
        (MARIAN, "model.decoder.embed_tokens.weight", "model.shared.weight"),
        (MARIAN, "model.encoder.embed_positions.weight", None),
    ],
)
def test_other_spellings_are_known(layout: object, written: str, usual: str | None) -> None:
    assert layout.weights.usual(written) == usual  # type: ignore[attr-defined]


@pytest.mark.parametrize("name", ["transformer.h.00.ln_1.weight", "transformer.h.0.ln_1.gain", "../wte.weight", ""])
def test_a_name_without_a_place_is_refused(name: str) -> None:
    with pytest.raises(KothaError, match="no place for a weight called"):
        GPT2.weights.to_ours({name: torch.zeros(1)})
