"""Every preset on the meta device, with its exact number of parameters."""

import json
from dataclasses import asdict

import pytest

from kotha.model.family import build
from kotha.model.parameters import count_parameters
from kotha.model.presets import Preset, preset, presets

# Counts from publications and from the course; the counts in presets.json are compared with the built models.
PUBLISHED = {
    "bangla-58m": 58_139_648,
    "gpt2": 124_439_808,
    "gpt2-xl": 1_557_611_200,
    "bert-base": 110_106_428,
    "vit-base-16": 86_567_656,
}


@pytest.mark.parametrize("listed", presets(), ids=lambda each: each.name)
def test_every_preset_has_its_exact_count(listed: Preset) -> None:
    model, count = build(listed.config, "meta"), count_parameters(listed.config)
    assert all(parameter.is_meta for parameter in model.parameters())
    assert not list(model.buffers())
    assert count.total == sum(parameter.numel() for parameter in model.parameters()) == listed.parameters
    assert listed.parameters == PUBLISHED.get(listed.name, listed.parameters)


def test_the_workshops_question_10() -> None:
    """Question 10a: how the 58.14 million parameters are distributed."""
    config, count = preset("bangla-58m"), count_parameters(preset("bangla-58m"))
    n_layers, d_model = 8, 512
    assert count.token_embedding == count.head == 32_100 * d_model == 16_435_200
    assert count.positions == 128 * d_model == 65_536
    assert count.attention_per_head == 4 * d_model * 64 == 131_072
    assert count.attention_per_layer == 8 * count.attention_per_head
    assert count.attention == n_layers * count.attention_per_layer
    biases = n_layers * (config.d_ff + d_model)
    assert biases == 20_480
    assert count.feedforward == n_layers * count.feedforward_per_layer == n_layers * 8 * d_model**2 + biases
    assert count.attention + count.feedforward - biases == 25_165_824
    assert count.norms == (2 * n_layers + 1) * 2 * d_model == 17_408
    assert not count.tied_head


def test_parts_add_up_and_go_to_json() -> None:
    for name in ("bangla-modern", "bert-base", "transformer-base", "vit-base-16"):
        values = asdict(count_parameters(preset(name)))
        parts = ("token_embedding", "segments", "positions", "attention", "feedforward", "norms", "head")
        assert sum(values[part] for part in parts) == values["total"]
        assert json.loads(json.dumps(values)) == values
    modern = count_parameters(preset("bangla-modern"))
    assert modern.tied_head
    assert modern.head == modern.positions == 0
    assert modern.norms == 8 * (2 * 512 + 2 * 64) + 512
    assert count_parameters(preset("bert-base")).segments == 2 * 768


def test_heads_that_share_keys_are_counted_with_what_they_use() -> None:
    config = preset("bangla-modern").replace(n_kv_heads=2)
    count = count_parameters(config)
    assert count.attention_per_layer == 2 * 512 * 512 + 2 * 512 * 2 * 64
    assert count.attention_per_head == 4 * 512 * 64


@pytest.mark.parametrize("name", ["pocket", "pocket-seq2seq", "pocket-bert", "vit-digits"])
def test_layers_that_were_not_built_are_counted(name: str) -> None:
    start = preset(name)
    stack = next(iter(start.stacks()))
    more = {"n_decoder_layers": 5} if hasattr(start, "n_decoder_layers") else {}
    for changes in ({"n_layers": 7, **more}, {"n_layers": 6, **more, "removed_heads": (f"{stack}.2.attention.1",)}):
        config = start.replace(**changes)
        built = sum(parameter.numel() for parameter in build(config, "meta").parameters())
        count = count_parameters(config)
        parts = ("token_embedding", "segments", "positions", "attention", "feedforward", "norms", "head")
        assert count.total == built == sum(getattr(count, part) for part in parts)
