"""Complete configs by exact name.

The published ones give the published layout and count; the rest are this project's: ``mini`` to compute by hand,
``char`` of the session, the ``pocket`` ones for two CPU cores, and the two Bangla models. Nothing here imports torch.
"""

from typing import Any

from kotha.errors import ConfigError, nearest
from kotha.model.config import BERTConfig, GPTConfig, ModelConfig, Seq2SeqConfig, ViTConfig

# Qwen3's layout, for the models that are trained here.
MODERN: dict[str, Any] = {
    "norm": "rms",
    "norm_eps": 1e-6,
    "positions": "rotary",
    "qk_norm": True,
    "activation": "swiglu",
    "attention_bias": False,
    "feedforward_bias": False,
}
# GPT-2's: https://cdn.openai.com/better-language-models/language_models_are_unsupervised_multitask_learners.pdf
GPT2: dict[str, Any] = {
    "vocab_size": 50_257,
    "context_length": 1024,
    "activation": "gelu-tanh",
    "dropout": 0.1,
    "attention_dropout": 0.1,
}
# https://arxiv.org/abs/1810.04805, uncased vocabulary
BERT: dict[str, Any] = {"vocab_size": 30_522, "context_length": 512, "dropout": 0.1, "attention_dropout": 0.1}
# https://arxiv.org/abs/1706.03762, English to German
TRANSFORMER: dict[str, Any] = {"vocab_size": 37_000, "context_length": 512}
# https://arxiv.org/abs/2010.11929, ImageNet
VIT: dict[str, Any] = {"image_size": 224, "patch_size": 16, "n_classes": 1000, "n_layers": 12}

PRESETS: dict[str, ModelConfig] = {
    # The notes' block: no positions, no bias in attention, a bias in the head, norms after the sums.
    "mini": GPTConfig(
        vocab_size=20,
        context_length=4,
        n_layers=1,
        d_model=8,
        n_heads=2,
        d_ff=16,
        activation="relu",
        norm_order="post",
        positions="none",
        attention_bias=False,
        tied_head=False,
        head_bias=True,
    ),
    # The session's sizes; its diagram puts a norm after blocks that already end in one.
    "char": GPTConfig(
        vocab_size=16,
        context_length=64,
        n_layers=4,
        d_model=16,
        n_heads=4,
        d_ff=64,
        activation="relu",
        norm_order="post",
        final_norm=True,
        tied_head=False,
        head_bias=True,
    ),
    "pocket": GPTConfig(vocab_size=4096, context_length=256, n_layers=2, d_model=96, n_heads=3, d_ff=192, **MODERN),
    "pocket-bert": BERTConfig(vocab_size=4096, context_length=128, n_layers=4, d_model=192, n_heads=6, d_ff=384),
    # Positions as Marian has them, so that it opens in Hugging Face.
    "pocket-seq2seq": Seq2SeqConfig(
        vocab_size=4096,
        context_length=128,
        n_layers=2,
        d_model=192,
        n_heads=6,
        d_ff=384,
        positions="sinusoidal-halves",
    ),
    "bangla-58m": GPTConfig(
        vocab_size=32_100,
        context_length=128,
        n_layers=8,
        d_model=512,
        n_heads=8,
        attention_bias=False,
        tied_head=False,
        dropout=0.2,
        attention_dropout=0.2,
    ),
    "bangla-modern": GPTConfig(
        vocab_size=8192, context_length=512, n_layers=8, d_model=512, n_heads=8, d_ff=1408, dropout=0.3, **MODERN
    ),
    "gpt2": GPTConfig(n_layers=12, d_model=768, n_heads=12, **GPT2),
    "gpt2-medium": GPTConfig(n_layers=24, d_model=1024, n_heads=16, **GPT2),
    "gpt2-large": GPTConfig(n_layers=36, d_model=1280, n_heads=20, **GPT2),
    "gpt2-xl": GPTConfig(n_layers=48, d_model=1600, n_heads=25, **GPT2),
    "transformer-base": Seq2SeqConfig(d_model=512, n_heads=8, dropout=0.1, **TRANSFORMER),
    "transformer-big": Seq2SeqConfig(d_model=1024, n_heads=16, dropout=0.3, **TRANSFORMER),
    "bert-base": BERTConfig(n_layers=12, d_model=768, n_heads=12, **BERT),
    "bert-large": BERTConfig(n_layers=24, d_model=1024, n_heads=16, **BERT),
    "vit-tiny-16": ViTConfig(d_model=192, n_heads=3, **VIT),
    "vit-base-16": ViTConfig(d_model=768, n_heads=12, **VIT),
    "vit-digits": ViTConfig(
        image_size=28, patch_size=7, n_channels=1, n_classes=10, n_layers=4, d_model=64, n_heads=4, dropout=0.1
    ),
}


def preset(name: str) -> ModelConfig:
    """The config of a name.

    >>> preset("bangla-58m").n_layers
    8
    """
    if name not in PRESETS:
        raise ConfigError(f"preset {name!r} is not known{nearest(name, PRESETS)}")
    return PRESETS[name]
