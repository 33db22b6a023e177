"""Removing heads: the outputs equal those with the heads set to zero, weights shrink, and a saved model reloads."""

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from kotha.artifacts import model_folder as bundle
from kotha.errors import ConfigError
from kotha.inside.hook_points import attentions
from kotha.model.attention import Attention, set_implementation
from kotha.model.classifier import TextClassifier
from kotha.model.config import (
    BERTConfig,
    GPTConfig,
    ModelConfig,
    Seq2SeqConfig,
    ViTConfig,
    classifying,
    config_from_dict,
)
from kotha.model.family import build
from kotha.model.parameters import count_parameters
from kotha.model.presets import MODERN, preset
from kotha.model.pruning import remove_heads
from kotha.model.vit import ViT

SMALL: dict[str, Any] = {"d_model": 16, "n_heads": 4, "d_ff": 24, "n_layers": 2}
TEXT: dict[str, Any] = {**SMALL, "vocab_size": 50, "context_length": 12}
BLOCKS = ["blocks.0.attention.1", "blocks.1.attention.0", "blocks.1.attention.3"]
CASES: dict[str, tuple[ModelConfig, list[str]]] = {
    "classic": (GPTConfig(**TEXT), BLOCKS),
    "modern": (GPTConfig(**TEXT, **MODERN), BLOCKS),
    "post-norm": (GPTConfig(**TEXT, norm_order="post"), BLOCKS),
    "grouped, a key head gone": (
        GPTConfig(**TEXT, **MODERN, n_kv_heads=2),
        ["blocks.0.attention.0", "blocks.0.attention.1", "blocks.1.attention.2", "blocks.1.attention.1"],
    ),
    "grouped, uneven": (
        GPTConfig(**{**TEXT, "n_heads": 8, "d_head": 2}, n_kv_heads=2),
        ["blocks.0.attention.0", "blocks.1.attention.5", "blocks.1.attention.6", "blocks.1.attention.1"],
    ),
    "one key head": (GPTConfig(**TEXT, **MODERN, n_kv_heads=1), BLOCKS),
    "bert": (BERTConfig(**TEXT), BLOCKS),
    "seq2seq": (
        Seq2SeqConfig(**TEXT, n_decoder_layers=3),
        ["encoder.1.attention.2", "decoder.0.attention.0", "decoder.0.cross.3", "decoder.2.cross.0"],
    ),
    "vit": (ViTConfig(**SMALL, image_size=8, patch_size=4, n_channels=1, n_classes=3), BLOCKS),
}


def made(config: ModelConfig) -> tuple[Any, list[Tensor]]:
    """A model with random weights, including biases, and inputs for it."""
    torch.manual_seed(0)
    model = build(config).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.2 * torch.randn_like(parameter))
    if isinstance(config, ViTConfig):
        return model, [torch.randn(2, 1, 8, 8)]
    tokens = torch.randint(0, 50, (2, 7))
    return model, [torch.randint(0, 50, (2, 9)), tokens] if isinstance(config, Seq2SeqConfig) else [tokens]


def answer(model: nn.Module, inputs: list[Tensor]) -> Tensor:
    with torch.no_grad():
        found = model(*inputs)
    return found if isinstance(found, Tensor) else found[0]


def with_zeros(model: nn.Module, heads: list[str], inputs: list[Tensor]) -> Tensor:
    """The unpruned model's output with a head's columns of the output matrix set to zero."""
    kept = {name: each.clone() for name, each in model.state_dict().items()}
    with torch.no_grad():
        for head in heads:
            name, number = head.rsplit(".", 1)
            attention = attentions(model)[name]
            width = attention.d_head
            attention.output.weight[:, int(number) * width : (int(number) + 1) * width] = 0
    found = answer(model, inputs)
    model.load_state_dict(kept)
    return found


@pytest.mark.parametrize("implementation", ["fused", "explicit"])
@pytest.mark.parametrize("case", CASES)
def test_a_removed_head_is_a_head_that_adds_nothing(case: str, implementation: Any) -> None:
    config, heads = CASES[case]
    model, inputs = made(config)
    set_implementation(model, implementation)
    whole, silenced = answer(model, inputs), with_zeros(model, heads, inputs)
    pruned = remove_heads(model, heads)
    torch.testing.assert_close(answer(pruned, inputs), silenced, rtol=1e-5, atol=1e-5)
    assert (whole - silenced).abs().max() > 1e-2, "the heads mattered"
    assert torch.equal(answer(model, inputs), whole), "the model itself stays whole"


@pytest.mark.parametrize("case", CASES)
def test_the_weights_fall_and_are_counted_from_the_config_alone(case: str) -> None:
    config, heads = CASES[case]
    model, _ = made(config)
    pruned = remove_heads(model, heads)
    n = sum(each.numel() for each in pruned.parameters())
    assert count_parameters(pruned.config).total == n
    fewer = sum(each.numel() for each in model.parameters()) - n
    with_bias = 1 if config.attention_bias else 0
    # The query rows and output columns of each head; key and value rows when no head uses them.
    queries = len(heads) * config.d_head * (2 * config.d_model + with_bias)
    keys = sum(config.n_kv_heads - len(pruned.config.key_heads_of(name)) for name in config.attentions())
    assert fewer == queries + keys * config.d_head * 2 * (config.d_model + with_bias)


def test_uneven_groups_keep_their_own_key_heads() -> None:
    config, heads = CASES["grouped, uneven"]
    attention = remove_heads(made(config)[0], heads).stack.blocks[1].attention
    assert attention.heads == (0, 2, 3, 4, 7) and attention.queries_per_kv_head == (3, 2) and not attention.even_groups
    gone = CASES["grouped, a key head gone"]
    first, second = (block.attention for block in remove_heads(made(gone[0])[0], gone[1]).stack.blocks)
    assert (first.heads, first.queries_per_kv_head, first.key.out_features) == ((2, 3), (2,), 4)
    assert (second.heads, second.queries_per_kv_head, second.even_groups) == ((0, 3), (1, 1), True)


@pytest.mark.parametrize("case", CASES)
def test_a_pruned_folder_opens_as_pruned(case: str, tmp_path: Path) -> None:
    config, heads = CASES[case]
    model, inputs = made(config)
    pruned = remove_heads(model, heads)
    bundle.save(tmp_path / "whole", model)
    bundle.save(tmp_path / "pruned", pruned)
    opened = bundle.load(tmp_path / "pruned")
    assert opened.config == pruned.config and set(opened.config.removed_heads) == set(heads)
    assert torch.equal(answer(opened.model, inputs), answer(pruned, inputs))
    sizes = [(tmp_path / name / bundle.WEIGHTS_FILE).stat().st_size for name in ("pruned", "whole")]
    assert sizes[0] < sizes[1]
    assert json.loads((tmp_path / "pruned" / "config.json").read_text())["model"]["removed_heads"] == list(
        pruned.config.removed_heads
    )


def test_a_folder_whose_heads_do_not_fit_its_weights_is_refused(tmp_path: Path) -> None:
    bundle.save(tmp_path / "whole", made(CASES["classic"][0])[0])
    file = tmp_path / "whole" / "config.json"
    values = json.loads(file.read_text())
    values["model"]["removed_heads"] = ["blocks.0.attention.1"]
    file.write_text(json.dumps(values))
    with pytest.raises(Exception, match=r"query\.weight has shape \[16, 16\], but its config requires \[12, 16\]"):
        bundle.load(tmp_path / "whole")


@pytest.mark.parametrize("case", ["classic", "grouped, uneven", "seq2seq"])
def test_heads_keep_their_names_when_others_go(case: str) -> None:
    config, heads = CASES[case]
    model, inputs = made(config)
    at_once = remove_heads(model, heads)
    one_by_one = model
    for head in reversed(heads):
        one_by_one = remove_heads(one_by_one, [head])
    assert one_by_one.config == at_once.config
    assert torch.equal(answer(one_by_one, inputs), answer(at_once, inputs))
    assert remove_heads(at_once, [heads[0]]).config == at_once.config


@pytest.mark.parametrize("case", CASES)
def test_names_are_those_by_which_the_model_is_looked_at(case: str) -> None:
    model, _ = made(CASES[case][0])
    assert model.config.attentions() == list(attentions(model))
    in_order = [module for module in model.modules() if isinstance(module, Attention)]
    assert in_order == list(attentions(model).values())


@pytest.mark.parametrize(
    ("heads", "message"),
    [
        (
            ["blocks.2.attention.0"],
            "unknown head 'blocks.2.attention.0'; each attention module has heads 0 to 3, with names",
        ),
        (["blocks.0.cross.0"], "unknown head 'blocks.0.cross.0'"),
        (["blocks.0.attention.4"], "unknown head 'blocks.0.attention.4'"),
        (["blocks.0.attention"], "unknown head 'blocks.0.attention'"),
        (["3"], "unknown head '3'"),
        (["blocks.0.attention." + "9" * 5000], "unknown head"),
        ([f"blocks.1.attention.{n}" for n in range(4)], "all 4 heads of blocks.1.attention would be removed; leave at"),
        ("blocks.0.attention.1", "removed_heads='blocks.0.attention.1' must be a list of names"),
        ([1], r"removed_heads=[1] must be a list of names"),
    ],
)
def test_heads_that_cannot_go_are_refused(heads: Any, message: str) -> None:
    with pytest.raises(ConfigError) as error:
        config_from_dict({**GPTConfig(**TEXT).to_dict(), "removed_heads": heads})
    assert message in str(error.value)


def test_a_config_that_claims_a_billion_heads_or_layers_is_refused_at_once() -> None:
    with pytest.raises(ConfigError, match="n_heads=1073741824 is too large; use 1 to 4,096"):
        GPTConfig(**{**TEXT, "n_heads": 1 << 30, "d_head": 1})
    with pytest.raises(ConfigError, match="unknown head"):
        GPTConfig(**{**TEXT, "n_layers": 1000}, removed_heads=("block.0.attention.0",))


def test_a_pruned_model_learns_on() -> None:
    model, (tokens,) = made(CASES["grouped, uneven"][0])
    pruned = remove_heads(model, CASES["grouped, uneven"][1]).train()
    assert all(parameter.requires_grad for parameter in pruned.parameters())
    nn.functional.cross_entropy(pruned(tokens[:, :-1]).flatten(0, 1), tokens[:, 1:].flatten()).backward()
    assert all(parameter.grad is not None for parameter in pruned.parameters())


def test_a_classifier_loses_heads_with_its_body() -> None:
    whole, (tokens,) = made(CASES["bert"][0])
    model = TextClassifier(classifying(whole.config, "abc")).eval()
    pruned = remove_heads(model, ["blocks.0.attention.1"])
    real = torch.ones_like(tokens, dtype=torch.bool)
    assert pruned.body.config.removed_heads == pruned.config.removed_heads == ("blocks.0.attention.1",)
    torch.testing.assert_close(pruned(tokens, real), model_without(model, tokens, real))


def model_without(model: TextClassifier, tokens: Tensor, real: Tensor) -> Tensor:
    with torch.no_grad():
        model.body.stack.blocks[0].attention.output.weight[:, 4:8] = 0  # type: ignore[union-attr,index]
    found: Tensor = model(tokens, real)
    return found


def test_a_pruned_vit_takes_images_of_another_size() -> None:
    model, _ = made(CASES["vit"][0])
    pruned: ViT = remove_heads(model, BLOCKS)
    assert pruned(torch.randn(1, 1, 12, 12)).shape == (1, 3)


def test_presets_are_whole() -> None:
    assert preset("pocket").removed_heads == () and preset("pocket").to_dict()["removed_heads"] == []
