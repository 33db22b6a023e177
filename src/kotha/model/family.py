"""The family: which body a config makes."""

import torch

from kotha.errors import ConfigError
from kotha.model.bert import BERT
from kotha.model.config import BERTConfig, GPTConfig, ModelConfig, Seq2SeqConfig, ViTConfig
from kotha.model.gpt import GPT
from kotha.model.seq2seq import Seq2Seq
from kotha.model.vit import ViT

Model = GPT | BERT | Seq2Seq | ViT


def build(config: ModelConfig, device: str | torch.device | None = None) -> Model:
    """A model with fresh weights; on the ``meta`` device, its shape alone.

    >>> from kotha.model.presets import preset
    >>> type(build(preset("vit-digits"))).__name__
    'ViT'
    """
    with torch.device(device or "cpu"):
        match config:
            case GPTConfig():
                return GPT(config)
            case BERTConfig():
                return BERT(config)
            case Seq2SeqConfig():
                return Seq2Seq(config)
            case ViTConfig():
                return ViT(config)
    raise ConfigError(f"{type(config).__name__} is no family's config")
