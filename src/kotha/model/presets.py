"""Named configs, read from ``presets.json``.

Models from the literature have their published layout and parameter count: GPT-2
(https://cdn.openai.com/better-language-models/language_models_are_unsupervised_multitask_learners.pdf), BERT
(https://arxiv.org/abs/1810.04805, uncased vocabulary), the transformer (https://arxiv.org/abs/1706.03762, English to
German) and ViT (https://arxiv.org/abs/2010.11929, ImageNet). The others were made for this project: ``mini`` for
calculations by hand (the block of the course notes, without positions and attention biases), ``char`` as shown in class
(whose diagram has a norm after blocks that already end with one), the ``pocket`` presets for two CPU cores, and the two
Bangla models. Parameter counts are stored in the file; a test compares them with the built models. Nothing here imports
torch.
"""

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from kotha.errors import ConfigError, nearest
from kotha.i18n.message import Message, Plural, Text
from kotha.model.config import FAMILIES, ModelConfig

_DATA: dict[str, dict[str, Any]] = json.loads(Path(__file__).with_name("presets.json").read_text(encoding="utf-8"))
# Qwen3's layout, used by this project's models.
MODERN: dict[str, Any] = _DATA["layouts"]["modern"]
PRESETS: dict[str, ModelConfig] = {
    name: FAMILIES[each["family"]](**each["config"], **_DATA["layouts"].get(each.get("like"), {}))
    for name, each in _DATA["presets"].items()
}


@dataclass(frozen=True)
class Preset:
    """A named config and its purpose."""

    name: str
    family: str
    parameters: int
    purpose: Text
    config: ModelConfig = field(repr=False)

    @property
    def sizes(self) -> Text:
        """The number of layers, the width, the number of heads and the input size.

        >>> str(presets()[0].sizes)
        '1 x 8, 2 heads, context 4, vocabulary 20'
        """
        config: Any = self.config
        layers = f"{config.n_layers}+{config.n_decoder_layers}" if self.family == "seq2seq" else config.n_layers
        heads = Plural("{n} head", "{n} heads", n=config.n_heads)
        if self.family == "vit":
            reads = Message("image size {pixels}, {n:,} classes", pixels=config.image_size, n=config.n_classes)
        else:
            reads = Message("context {n:,}, vocabulary {tokens:,}", n=config.context_length, tokens=config.vocab_size)
        return Message(
            "{layers} x {width}, {heads}, {reads}", layers=layers, width=config.d_model, heads=heads, reads=reads
        )


def presets() -> list[Preset]:
    """Return all presets in the order of ``presets.json``.

    >>> import kotha
    >>> [each.name for each in kotha.presets() if each.parameters < 1_000_000]
    ['mini', 'char', 'pocket', 'vit-digits']
    """
    return [
        Preset(
            name,
            each["family"],
            each["parameters"],
            Message(each["purpose"], **each.get("values", {})),
            PRESETS[name],
        )
        for name, each in _DATA["presets"].items()
    ]


def preset(name: str) -> ModelConfig:
    """Return the config of a preset.

    >>> preset("bangla-58m").n_layers
    8
    """
    if name not in PRESETS:
        raise ConfigError("unknown preset {name!r}{nearest}", name=name, nearest=nearest(name, PRESETS))
    return PRESETS[name]
