"""Build the model that a config describes."""

from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from kotha.errors import ConfigError
from kotha.model.bert import BERT
from kotha.model.classifier import TextClassifier
from kotha.model.config import (
    BERTClassifierConfig,
    BERTConfig,
    GPTClassifierConfig,
    GPTConfig,
    ModelConfig,
    Seq2SeqConfig,
    ViTConfig,
)
from kotha.model.gpt import GPT
from kotha.model.seq2seq import Seq2Seq
from kotha.model.vit import ViT

Model = GPT | BERT | Seq2Seq | ViT | TextClassifier
_BODIES: dict[Any, Callable[[Any], Model]] = {
    GPTConfig: GPT,
    BERTConfig: BERT,
    Seq2SeqConfig: Seq2Seq,
    ViTConfig: ViT,
    GPTClassifierConfig: TextClassifier,
    BERTClassifierConfig: TextClassifier,
}


def build(config: ModelConfig, device: str | torch.device | None = None) -> Model:
    """Build a model with newly initialized weights; on the ``meta`` device it has only shapes.

    >>> from kotha.model.presets import preset
    >>> type(build(preset("vit-digits"))).__name__
    'ViT'
    """
    if type(config) not in _BODIES:
        raise ConfigError("{kind} is not the config of a model family", kind=type(config).__name__)
    settle_threads()
    on = torch.device(device or "cpu")
    with on, Unfilled() if on.type == "meta" else nullcontext():
        return _BODIES[type(config)](config)


def settle_threads() -> None:
    """Fix the number of threads at the value that torch reports, so that sums are always rounded in the same way.

    Until ``set_num_threads`` is called, MKL chooses its own number of threads, regardless of ``get_num_threads``.
    """
    torch.set_num_threads(torch.get_num_threads())


class Unfilled(TorchFunctionMode):
    """Skips random initialization on the meta device, for which torch would load its compiler."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if func in (Tensor.normal_, Tensor.uniform_) or getattr(func, "__module__", None) == nn.init.__name__:
            return args[0] if args else kwargs["tensor"]
        return func(*args, **kwargs)
