"""The family: which body a config makes."""

from collections.abc import Callable
from typing import Any

import torch

from kotha.errors import ConfigError
from kotha.model.bert import BERT
from kotha.model.config import BERTConfig, GPTConfig, ModelConfig, Seq2SeqConfig, ViTConfig
from kotha.model.gpt import GPT
from kotha.model.seq2seq import Seq2Seq
from kotha.model.vit import ViT

Model = GPT | BERT | Seq2Seq | ViT
_BODIES: dict[Any, Callable[[Any], Model]] = {GPTConfig: GPT, BERTConfig: BERT, Seq2SeqConfig: Seq2Seq, ViTConfig: ViT}


def build(config: ModelConfig, device: str | torch.device | None = None) -> Model:
    """A model with fresh weights; on the ``meta`` device, its shape alone.

    >>> from kotha.model.presets import preset
    >>> type(build(preset("vit-digits"))).__name__
    'ViT'
    """
    if type(config) not in _BODIES:
        raise ConfigError(f"{type(config).__name__} is no family's config")
    with torch.device(device or "cpu"):
        return _BODIES[type(config)](config)
