"""The export formats that support a config, and the settings that they do not support."""

import pytest
from tests.export.models import CONFIGS

from kotha.errors import ConfigError
from kotha.export.huggingface.config import choose_layout
from kotha.export.targets import supported_targets
from kotha.model.config import GPTConfig
from kotha.model.presets import PRESETS, preset

GPT2 = CONFIGS["gpt2"]
QWEN3 = CONFIGS["qwen3"]


@pytest.mark.parametrize(
    ("name", "as_what"),
    [
        ("bangla-58m", "GPT2LMHeadModel"),
        ("gpt2", "GPT2LMHeadModel"),
        ("bangla-modern", "Qwen3ForCausalLM"),
        ("pocket", "Qwen3ForCausalLM"),
        ("bert-base", "BertForPreTraining"),
        ("vit-digits", "ViTForImageClassification"),
    ],
)
def test_presets_can_be_exported_to_hf(name: str, as_what: str) -> None:
    assert str(supported_targets(preset(name))[0].details) == f"opens as {as_what}"


@pytest.mark.parametrize(
    ("config", "expected"),
    [
        (GPT2.replace(norm_order="post"), "norm_order=post: GPT-2 requires pre"),
        (GPT2.replace(positions="sinusoidal"), "positions=sinusoidal: GPT-2 requires learned"),
        (GPT2.replace(head_bias=True), "head_bias=true: GPT-2 requires false"),
        (GPT2.replace(n_kv_heads=1), "n_kv_heads=1: GPT-2 requires 2"),
        (GPT2.replace(d_head=4), "d_head=4: GPT-2 requires 8"),
        (QWEN3.replace(feedforward_bias=True), "feedforward_bias=true: Qwen3 requires false"),
        (QWEN3.replace(final_norm=False), "final_norm=false: Qwen3 requires true"),
        (CONFIGS["bert"].replace(activation="relu"), "activation=relu: BERT requires gelu"),
        (preset("transformer-base"), "positions=sinusoidal: Marian requires sinusoidal-halves"),
        (CONFIGS["marian"].replace(norm_eps=1e-6), "norm_eps=1e-06: Marian requires 1e-05"),
        (CONFIGS["vit"].replace(qk_norm=True), "qk_norm=true: ViT requires false"),
        (preset("mini"), "norm_order=post: GPT-2"),
    ],
)
def test_the_unsupported_setting_is_named(config: GPTConfig, expected: str) -> None:
    with pytest.raises(ConfigError, match=f"no Hugging Face architecture fits this model: .*{expected}"):
        choose_layout(config)


def test_removed_heads_rule_out_hf_and_gguf() -> None:
    config = QWEN3.replace(n_kv_heads=2, removed_heads=("blocks.0.attention.0",))
    closed = {target.name: str(target.details) for target in supported_targets(config) if not target.supported}
    assert set(closed) == {"hf", "gguf"}
    assert (
        closed["gguf"]
        == "removed_heads: llama.cpp's qwen3 does not support removed heads; export the model before pruning"
    )
    assert {target.name: str(target.details) for target in supported_targets(config)}[
        "web"
    ] == "opens in any browser as a single file"
    assert "removed_heads: Qwen3 does not support removed heads; export the model before pruning" in closed["hf"]


@pytest.mark.parametrize("name", ["bert", "marian", "vit"])
def test_a_page_requires_a_gpt(name: str) -> None:
    target = supported_targets(CONFIGS[name])[-1]
    assert (target.name, target.supported) == ("web", False)
    assert str(target.details) == f"family={CONFIGS[name].family}: the page generates text, which requires a gpt model"


@pytest.mark.parametrize("name", PRESETS)
def test_every_preset_has_a_result_for_every_format(name: str) -> None:
    found = supported_targets(preset(name))
    assert [target.name for target in found] == ["hf", "gguf", "onnx", "web"]
    assert all(str(target.details) for target in found)
