"""Small models of every family, with something to read."""

from typing import Any

import pytest
import torch
from torch import Tensor, nn

from kotha.model.config import BERTConfig, GPTConfig, ModelConfig, Seq2SeqConfig, ViTConfig
from kotha.model.family import build
from kotha.model.presets import MODERN

SMALL: dict[str, Any] = {"d_model": 16, "n_heads": 4, "d_ff": 24, "n_layers": 2}
TEXT: dict[str, Any] = {**SMALL, "vocab_size": 50, "context_length": 12}
CONFIGS: dict[str, ModelConfig] = {
    "gpt classic": GPTConfig(**TEXT, dropout=0.1, attention_dropout=0.1),
    "gpt modern": GPTConfig(**TEXT, **MODERN, n_kv_heads=2),
    "bert": BERTConfig(**TEXT),
    "seq2seq": Seq2SeqConfig(**TEXT),
    "vit": ViTConfig(**SMALL, image_size=8, patch_size=4, n_channels=1, n_classes=3),
}


@pytest.fixture(params=CONFIGS)
def family_member(request: pytest.FixtureRequest) -> tuple[nn.Module, list[Tensor]]:
    """A model of each family, and inputs of two rows."""
    return made(request.param)


@pytest.fixture
def gpt() -> tuple[nn.Module, list[Tensor]]:
    return made("gpt classic")


@pytest.fixture
def bert() -> tuple[nn.Module, list[Tensor]]:
    return made("bert")


def made(name: str) -> tuple[nn.Module, list[Tensor]]:
    """A model with weights that are far from their start, so that every part matters, and inputs of two rows."""
    torch.manual_seed(0)
    model = build(CONFIGS[name]).eval()
    with torch.no_grad():
        for weight in model.parameters():
            weight.add_(torch.randn_like(weight), alpha=0.2)
    if name == "vit":
        return model, [torch.randn(2, 1, 8, 8)]
    tokens = torch.randint(0, 50, (2, 7))
    return model, [torch.randint(0, 50, (2, 9)), tokens] if name == "seq2seq" else [tokens]
