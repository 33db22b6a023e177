"""Complete configs by exact name.

The published ones give the published layout and count; the rest are this project's: ``mini`` to compute by hand,
``char`` of the session, the ``pocket`` ones for two CPU cores, and the two Bangla models. Nothing here imports torch.
"""

from dataclasses import dataclass, field
from typing import Any

from kotha.errors import ConfigError, nearest
from kotha.i18n.message import Message, Plural, Text
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

# The notes' block: a bias in the head, norms after the sums.
NOTES: dict[str, Any] = {"activation": "relu", "norm_order": "post", "tied_head": False, "head_bias": True}

PRESETS: dict[str, ModelConfig] = {
    # The block alone: no positions, no bias in attention.
    "mini": GPTConfig(
        vocab_size=20,
        context_length=4,
        n_layers=1,
        d_model=8,
        n_heads=2,
        d_ff=16,
        positions="none",
        attention_bias=False,
        **NOTES,
    ),
    # The session's sizes; its diagram puts a norm after blocks that already end in one.
    "char": GPTConfig(
        vocab_size=16, context_length=64, n_layers=4, d_model=16, n_heads=4, d_ff=64, final_norm=True, **NOTES
    ),
    "pocket": GPTConfig(vocab_size=4096, context_length=256, n_layers=2, d_model=96, n_heads=3, d_ff=192, **MODERN),
    "pocket-bert": BERTConfig(vocab_size=4096, context_length=128, n_layers=4, d_model=192, n_heads=6, d_ff=384),
    # Positions as Marian has them, so that it opens in Hugging Face.
    "pocket-seq2seq": Seq2SeqConfig(
        vocab_size=4096, context_length=128, n_layers=2, d_model=192, n_heads=6, d_ff=384, positions="sinusoidal-halves"
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


# What each is for, and its parameters: counted once, held to the built model by a test, so that a list needs no torch.
_ABOUT: dict[str, tuple[int, Text]] = {
    "mini": (908, Message("the notes' block, to compute by hand")),
    "char": (14_704, Message("the session's character model")),
    "pocket": (578_144, Message("two CPU cores train it in about two minutes")),
    "pocket-bert": (2_078_850, Message("masked words on a laptop")),
    "pocket-seq2seq": (2_271_744, Message("translation on a laptop")),
    "bangla-58m": (58_139_648, Message("the course's GPT")),
    "bangla-modern": (29_894_144, Message("the best for a few megabytes of text, on a GPU")),
    "gpt2": (124_439_808, Message("as published in {year}", year=2019)),
    "gpt2-medium": (354_823_168, Message("as published in {year}", year=2019)),
    "gpt2-large": (774_030_080, Message("as published in {year}", year=2019)),
    "gpt2-xl": (1_557_611_200, Message("as published in {year}", year=2019)),
    "transformer-base": (63_082_496, Message("as published in {year}, English to German", year=2017)),
    "transformer-big": (214_245_376, Message("as published in {year}, English to German", year=2017)),
    "bert-base": (110_106_428, Message("as published in {year}, with both heads", year=2018)),
    "bert-large": (336_226_108, Message("as published in {year}, with both heads", year=2018)),
    "vit-tiny-16": (5_717_416, Message("images of {n} pixels, the small one", n=224)),
    "vit-base-16": (86_567_656, Message("images of {n} pixels, as published in {year}", n=224, year=2020)),
    "vit-digits": (205_066, Message("digits of {n} pixels, on a laptop", n=28)),
}


@dataclass(frozen=True)
class Preset:
    """A complete config by its name, and what it is for."""

    name: str
    family: str
    parameters: int
    purpose: Text
    config: ModelConfig = field(repr=False)

    @property
    def sizes(self) -> Text:
        """Layers and width, heads, and what it reads at once.

        >>> str(presets()[0].sizes)
        '1 x 8, 2 heads, context 4, vocabulary 20'
        """
        config: Any = self.config
        layers = f"{config.n_layers}+{config.n_decoder_layers}" if self.family == "seq2seq" else config.n_layers
        heads = Plural("{n} head", "{n} heads", n=config.n_heads)
        if self.family == "vit":
            reads = Message("images of {pixels}, {n:,} classes", pixels=config.image_size, n=config.n_classes)
        else:
            reads = Message("context {n:,}, vocabulary {tokens:,}", n=config.context_length, tokens=config.vocab_size)
        return Message(
            "{layers} x {width}, {heads}, {reads}", layers=layers, width=config.d_model, heads=heads, reads=reads
        )


def presets() -> list[Preset]:
    """All presets, from the smallest use to the published ones.

    >>> import kotha
    >>> [each.name for each in kotha.presets() if each.parameters < 1_000_000]
    ['mini', 'char', 'pocket', 'vit-digits']
    """
    return [Preset(name, config.family, *_ABOUT[name], config) for name, config in PRESETS.items()]


def preset(name: str) -> ModelConfig:
    """The config of a name.

    >>> preset("bangla-58m").n_layers
    8
    """
    if name not in PRESETS:
        raise ConfigError("preset {name!r} does not exist{nearest}", name=name, nearest=nearest(name, PRESETS))
    return PRESETS[name]
