"""Configs: derived fields, rejected values, and the error messages."""

import json
import subprocess
import sys
from typing import Any

import pytest

from kotha.errors import ConfigError
from kotha.model.config import BERTConfig, BlockConfig, GPTConfig, Seq2SeqConfig, ViTConfig, config_from_dict
from kotha.model.presets import PRESETS, preset

GPT: dict[str, Any] = {"d_model": 16, "n_heads": 2, "n_layers": 1, "vocab_size": 10, "context_length": 4}
VIT: dict[str, Any] = {"d_model": 16, "n_heads": 2, "n_layers": 1, "image_size": 28, "patch_size": 7, "n_classes": 10}


def test_omitted_fields_are_derived_from_others() -> None:
    config = Seq2SeqConfig(d_model=64, n_heads=4, vocab_size=10, context_length=4)
    assert (config.d_head, config.n_kv_heads, config.d_ff) == (16, 4, 256)
    assert (config.n_layers, config.n_decoder_layers) == (6, 6)
    assert not config.final_norm
    assert config.replace(norm_order="pre").final_norm


def test_replace_keeps_explicit_fields_and_derives_the_others_again() -> None:
    config = GPTConfig(**GPT, d_ff=40)
    wider = config.replace(d_model=32, n_heads=8)
    assert (wider.d_head, wider.n_kv_heads, wider.d_ff) == (4, 8, 40)
    assert config.replace(d_head=5).replace(d_model=32).d_head == 5


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"d_model": 500, "n_heads": 8}, "d_model=500 is not divisible by n_heads=8; try n_heads=10 or d_model=512"),
        ({"n_heads": 8, "n_kv_heads": 3}, "n_heads=8 is not divisible by n_kv_heads=3; try n_kv_heads=2"),
        ({"d_head": 5, "positions": "rotary"}, "d_head=5 must be even for rotary positions; try 6"),
        ({"d_model": 15, "n_heads": 3, "positions": "sinusoidal"}, "d_model=15 must be even for sinusoidal positions"),
        ({"dropout": 1.0}, "dropout=1.0 is out of range; use 0 (off) to 0.9"),
        ({"attention_dropout": -0.1}, "attention_dropout=-0.1 is out of range"),
        ({"norm_eps": 0.0}, "norm_eps=0.0 must be a small positive number; try 1e-5"),
        ({"rotary_base": 1.0}, "rotary_base=1.0 must be greater than 1; 10000 is typical"),
        ({"n_layers": 0}, "n_layers=0 must be an integer from 1"),
        ({"n_layers": 1025}, "n_layers=1025 is too large; use 1 to 1,024"),
        ({"rotary_base": 10**400}, "must be a number"),
        ({"n_layers": True}, "n_layers=True must be an integer"),
        ({"d_model": "512"}, "d_model='512' must be an integer"),
        ({"d_model": 16.0}, "d_model=16.0 must be an integer"),
        ({"vocab_size": 1 << 60}, "must be an integer from 1 to 1,073,741,824"),
        ({"d_model": None}, "d_model=None must be an integer"),
        ({"qk_norm": 1}, "qk_norm=1 must be true or false"),
        ({"dropout": float("nan")}, "dropout=nan must be a number"),
        ({"activation": "gelu-tan"}, "activation='gelu-tan' is not a valid choice; did you mean 'gelu-tanh'?"),
        ({"norm": "batch"}, "norm='batch' is not a valid choice; known: layer, rms"),
    ],
)
def test_an_invalid_config_is_rejected(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError) as error:
        GPTConfig(**{**GPT, **changes})
    assert message in str(error.value)


def test_patches_must_divide_the_image() -> None:
    words = "image_size=30 is not divisible by patch_size=7; try patch_size=6 or image_size=35"
    with pytest.raises(ConfigError, match=words):
        ViTConfig(**{**VIT, "image_size": 30})


@pytest.mark.parametrize("name", PRESETS)
def test_a_config_round_trips_through_json(name: str) -> None:
    values = json.loads(json.dumps(preset(name).to_dict()))
    assert None not in values.values()
    assert config_from_dict(values) == preset(name)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"family": "gpt", **GPT, "n_head": 2}, "'n_head' is not a setting of GPTConfig; did you mean 'n_heads'?"),
        ({"family": "gpt", "d_model": 16, "n_heads": 2}, "GPTConfig is missing n_layers, vocab_size, context_length"),
        ({"family": "gtp", **GPT}, "unknown model family 'gtp'; did you mean 'gpt'?"),
        (GPT, "unknown model family None; known: bert, bert-classifier, gpt, gpt-classifier, seq2seq, vit"),
        ({"family": ["gpt"], **GPT}, "unknown model family"),
        ({"family": "vit", **VIT, "vocab_size": 5}, "'vocab_size' is not a setting of ViTConfig"),
    ],
)
def test_unknown_and_missing_keys_are_named_in_the_error(values: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError) as error:
        config_from_dict(values)
    assert message in str(error.value)


def test_a_change_of_an_unknown_setting_is_refused() -> None:
    with pytest.raises(ConfigError, match="'width' is not a setting of BlockConfig"):
        BlockConfig(d_model=16, n_heads=2).replace(width=3)


def test_bert_and_vit_have_their_papers_defaults() -> None:
    bert = BERTConfig(**GPT)
    assert (bert.norm_order, bert.activation, bert.final_norm) == ("post", "gelu", False)
    assert ViTConfig(**VIT).final_norm


def test_an_unknown_preset_suggests_the_nearest() -> None:
    with pytest.raises(ConfigError, match="unknown preset 'bangla-59m'; did you mean 'bangla-58m'"):
        preset("bangla-59m")


def test_configs_and_presets_import_no_torch() -> None:
    code = "import sys, kotha.model.presets; print('torch' in sys.modules, 'numpy' in sys.modules)"
    assert subprocess.check_output([sys.executable, "-c", code], text=True).strip() == "False False"
