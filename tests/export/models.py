"""Small models with random weights, one for each layout, and a tokenizer."""

from functools import cache
from typing import Any

import torch

from kotha.artifacts.model_folder import Bundle
from kotha.export.parity import built_in_lines
from kotha.model.config import BERTConfig, GPTConfig, ModelConfig, Seq2SeqConfig, TextConfig, ViTConfig
from kotha.model.family import build
from kotha.model.presets import MODERN
from kotha.text.tokenizer.tokenizer import Tokenizer
from kotha.text.tokenizer.trainers import train

VOCABULARY = 512
TEXT: dict[str, Any] = {"vocab_size": VOCABULARY, "d_model": 16, "n_heads": 2, "n_layers": 2, "context_length": 216}

CONFIGS: dict[str, ModelConfig] = {
    # The course's model: no bias in attention, an untied head; GPT-2 has all biases.
    "course": GPTConfig(**TEXT, attention_bias=False, tied_head=False, dropout=0.2),
    "gpt2": GPTConfig(**TEXT, activation="gelu-tanh", initialization="xavier"),
    "qwen3": GPTConfig(**TEXT, **MODERN, n_kv_heads=1, d_head=12, dropout=0.3, rotary_base=5000.0),
    "qwen3-untied": GPTConfig(**TEXT, **{**MODERN, "attention_bias": True}, tied_head=False),
    "llama": GPTConfig(**TEXT, **{**MODERN, "qk_norm": False, "feedforward_bias": True}, d_ff=20),
    "bert": BERTConfig(**TEXT, n_segments=3, attention_bias=False),
    "marian": Seq2SeqConfig(**TEXT, positions="sinusoidal-halves", n_decoder_layers=1),
    "marian-biased": Seq2SeqConfig(**TEXT, positions="sinusoidal-halves", activation="gelu", head_bias=True),
    "vit": ViTConfig(d_model=16, n_heads=2, n_layers=2, image_size=8, patch_size=4, n_channels=1, n_classes=5),
}
ARCHITECTURES = {
    "course": "GPT2LMHeadModel",
    "gpt2": "GPT2LMHeadModel",
    "qwen3": "Qwen3ForCausalLM",
    "qwen3-untied": "Qwen3ForCausalLM",
    "llama": "LlamaForCausalLM",
    "bert": "BertForPreTraining",
    "marian": "MarianMTModel",
    "marian-biased": "MarianMTModel",
    "vit": "ViTForImageClassification",
}


@cache
def tokenizer() -> Tokenizer:
    return train(built_in_lines(), "unigram", VOCABULARY)


def shaken(config: ModelConfig, seed: int = 0) -> Bundle:
    """Random values for all weights, including those initialized to 0 or 1."""
    torch.manual_seed(seed)
    model = build(config)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(torch.randn_like(parameter) * 0.1)
    return Bundle(model.eval(), tokenizer() if isinstance(config, TextConfig) else None)
