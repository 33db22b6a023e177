"""Fixtures for the generation tests: small models of every layout, one thread."""

from collections.abc import Iterator
from typing import Any

import pytest
import torch
from tests.text.conftest import trained

from kotha.model.config import GPTConfig
from kotha.model.gpt import GPT
from kotha.model.presets import MODERN

SIZES: dict[str, Any] = {"d_model": 16, "n_heads": 4, "n_layers": 2}
LAYOUTS: dict[str, dict[str, Any]] = {
    "classic": {},
    "modern": MODERN,
    "grouped": {**MODERN, "n_kv_heads": 2},
    "sinusoidal": {"positions": "sinusoidal"},
    "halves": {"positions": "sinusoidal-halves"},
    "no positions": {"positions": "none"},
    "post-norm": {"norm_order": "post", "activation": "relu", "head_bias": True, "tied_head": False},
    "gelu-tanh": {"activation": "gelu-tanh", "attention_bias": False},
}

REMOVED = {
    "classic": ["blocks.0.attention.1", "blocks.1.attention.0", "blocks.1.attention.3"],
    "modern": ["blocks.1.attention.2"],
    "grouped": ["blocks.0.attention.3", "blocks.1.attention.0", "blocks.1.attention.1"],  # one key head removed
    "post-norm": ["blocks.0.attention.0", "blocks.0.attention.2"],
}


@pytest.fixture(autouse=True, scope="session")
def one_thread() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def tiny(layout: str = "classic", context_length: int = 8, vocab_size: int | None = None, seed: int = 0) -> GPT:
    """A model with weights so large that its logits differ clearly."""
    torch.manual_seed(seed)
    size = trained("unigram").vocab_size if vocab_size is None else vocab_size
    model = GPT(GPTConfig(vocab_size=size, context_length=context_length, **SIZES, **LAYOUTS[layout])).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.2 * torch.randn_like(parameter))
    return model
