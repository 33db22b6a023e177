"""Helpers for worksheet tests: random models in double precision, the workshop's model, and the data of a page."""

import json
import re
from typing import Any

import torch
from torch import Tensor, nn

from kotha.course.worksheet.operations import Matrices
from kotha.model.config import GPTConfig
from kotha.model.family import build
from kotha.model.gpt import GPT

MODERN: dict[str, Any] = {"n_kv_heads": 2, "norm": "rms", "qk_norm": True, "positions": "rotary", "norm_eps": 1e-6}


def random_model(config: Any, seed: int, length: int, source: int | None = None) -> tuple[nn.Module, list[Tensor]]:
    """Return a model with random weights and its input; a Seq2Seq also gets a ``source`` of a given length."""
    torch.manual_seed(seed)
    model = build(config).double().eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.copy_(torch.randn_like(parameter) * 0.3 + (1.0 if parameter.dim() == 1 else 0.0))
    tokens = torch.randint(0, 50, (1, length))
    return model, [tokens] if source is None else [torch.randint(0, 50, (1, source)), tokens]


def as_model(given: Matrices) -> GPT:
    """Return the workshop's sheet from a post-norm model: X is the token embedding, the head is the first of two."""
    n_tokens, width = given["X"].shape
    config = GPTConfig(
        vocab_size=n_tokens,
        context_length=n_tokens,
        n_layers=1,
        d_model=width,
        n_heads=2,
        d_head=given["W_Q"].shape[1],
        norm_order="post",
        positions="none",
        attention_bias=False,
    )
    model = GPT(config).double().eval()
    attention = model.get_submodule("stack.blocks.0.attention")
    with torch.no_grad():
        model.tokens.weight.copy_(torch.from_numpy(given["X"]))
        for name, matrix in {"query": given["W_Q"], "key": given["W_K"], "value": given["W_V"]}.items():
            attention.get_parameter(f"{name}.weight")[: matrix.shape[1]] = torch.from_numpy(matrix).mT
    return model


def told_by(page: str) -> dict[str, Any]:
    """Parse the data of a page."""
    (held,) = re.findall(r'<script type="application/json" id="data">(.*?)</script>', page, re.DOTALL)
    data: dict[str, Any] = json.loads(held)["data"]
    return data
