"""The tables of weight names can be used in both directions."""

import pytest
import torch
from tests.export.models import ARCHITECTURES, CONFIGS, shaken

from kotha.artifacts.model_folder import unique_weights
from kotha.errors import KothaError
from kotha.export.huggingface.config import LAYOUTS, choose_layout
from kotha.export.weight_names import Layout, shapes_of

BY_NAME = {layout.name: layout for layout in LAYOUTS if not layout.family.endswith("-classifier")}


@pytest.mark.parametrize("name", CONFIGS)
def test_weights_round_trip(name: str) -> None:
    layout = choose_layout(CONFIGS[name])
    assert layout.architecture == ARCHITECTURES[name]
    model = shaken(layout.full(CONFIGS[name])).model
    ours = unique_weights(model)
    theirs = layout.to_reference_layout(ours, model.config)
    places = layout.reference_weights(shapes_of(ours.items()), model.config)
    assert {each: place.shape for each, place in places.items()} == shapes_of(theirs.items())
    back = layout.from_reference_layout(theirs, shapes_of(ours.items()), model.config)
    assert back.keys() == ours.keys()
    assert all(torch.equal(back[each], ours[each]) for each in ours)


def test_every_layout_is_tested() -> None:
    assert {layout.architecture for layout in BY_NAME.values()} == set(ARCHITECTURES.values())


def test_gpt2_transposes_matrices_and_joins_queries_keys_and_values() -> None:
    gpt2 = BY_NAME["gpt2"]
    model = shaken(gpt2.full(CONFIGS["gpt2"])).model
    ours = unique_weights(model)
    theirs = gpt2.to_reference_layout(ours, model.config)
    joined = theirs["transformer.h.1.attn.c_attn.weight"]
    assert joined.shape == (16, 48)
    assert torch.equal(joined[:, 16:32].T, ours["stack.blocks.1.attention.key.weight"])
    assert torch.equal(theirs["transformer.h.0.mlp.c_fc.weight"].T, ours["stack.blocks.0.feedforward.up.weight"])


@pytest.mark.parametrize(
    ("name", "written", "usual"),
    [
        ("gpt2", "h.0.ln_1.weight", "transformer.h.0.ln_1.weight"),  # a base model saved without its head
        ("gpt2", "h.3.attn.masked_bias", None),
        ("llama", "model.layers.0.self_attn.rotary_emb.inv_freq", None),
        ("bert", "bert.embeddings.LayerNorm.gamma", "bert.embeddings.LayerNorm.weight"),
        ("bert", "cls.predictions.decoder.bias", "cls.predictions.bias"),
        ("marian", "model.decoder.embed_tokens.weight", "model.shared.weight"),
        ("marian", "model.encoder.embed_positions.weight", None),
    ],
)
def test_other_spellings_are_known(name: str, written: str, usual: str | None) -> None:
    layout: Layout = BY_NAME[name]
    assert layout.usual(written, {usual}) == usual


def test_an_unknown_name_is_rejected() -> None:
    with pytest.raises(KothaError, match="unknown weight"):
        BY_NAME["gpt2"].name_of("../tokens.weight")
