"""Small models of every architecture with tokenizers, for the inspection tests."""

from functools import cache
from typing import Any

import torch
from tests.text.conftest import trained

from kotha.artifacts.model_folder import Bundle
from kotha.model.config import BERTConfig, GPTConfig, ModelConfig, Seq2SeqConfig, ViTConfig
from kotha.model.family import build
from kotha.model.presets import MODERN
from kotha.text.tokenizer.tokenizer import Tokenizer

TEXT = "র‍্যাব ক্ষুধার্ত শিক্ষার্থীদের রাষ্ট্রপতি।"
SIZES: dict[str, Any] = {"d_model": 16, "n_heads": 4, "d_ff": 24, "n_layers": 2}
BODIES = ("gpt", "gpt-grouped", "gpt-post", "bert", "seq2seq", "seq2seq-pre", "vit")


def make(body: str) -> Bundle:
    """Return a model with large weights, so that every part matters and heads differ."""
    tokenizer = None if body == "vit" else trained("wordpiece" if body == "bert" else "unigram")
    torch.manual_seed(0)
    model = build(_config(body, tokenizer)).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.2 * torch.randn_like(parameter))
    return Bundle(model, tokenizer)


small = cache(make)  # for tests that do not change the model


def _config(body: str, tokenizer: Tokenizer | None) -> ModelConfig:
    if tokenizer is None:
        return ViTConfig(**SIZES, image_size=8, patch_size=4, n_channels=1, n_classes=3)
    text: dict[str, Any] = {**SIZES, "vocab_size": tokenizer.vocab_size, "context_length": 48}
    return {
        "gpt": lambda: GPTConfig(**text, dropout=0.1, attention_dropout=0.1),
        "gpt-grouped": lambda: GPTConfig(**{**text, **MODERN, "n_kv_heads": 2}),
        "gpt-post": lambda: GPTConfig(**{**text, "norm_order": "post", "positions": "none"}),
        "bert": lambda: BERTConfig(**text),
        "seq2seq": lambda: Seq2SeqConfig(**text),
        "seq2seq-pre": lambda: Seq2SeqConfig(**{**text, "norm_order": "pre"}),
    }[body]()
