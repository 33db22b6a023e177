"""A model that was opened: with its tokenizer, its device, and how messages call it."""

from pathlib import Path

import torch

from kotha.api import Place
from kotha.artifacts.model_folder import Bundle
from kotha.errors import UsageError
from kotha.model.bert import BERT
from kotha.model.config import ModelConfig
from kotha.model.family import Model
from kotha.storage import bundled
from kotha.text.tokenizer.tokenizer import Tokenizer


class OpenedModel:
    """What every use of a model has at hand."""

    def __init__(self, bundle: Bundle, path: Place | None = None) -> None:
        self.bundle = bundle
        self.path = None if path is None else Path(path)

    @property
    def model(self) -> Model:
        """The model itself, a ``torch.nn.Module``.

        >>> lm.model.config.n_layers
        2
        """
        return self.bundle.model

    @property
    def tokenizer(self) -> Tokenizer | None:
        """The tokenizer that it was trained with; None for a model that reads no text.

        >>> lm.tokenizer.vocab_size
        600
        """
        return self.bundle.tokenizer

    @property
    def config(self) -> ModelConfig:
        """Its sizes and settings.

        >>> lm.config.d_model
        96
        """
        return self.bundle.config

    @property
    def device(self) -> torch.device:
        """Where it computes.

        >>> lm.device
        device(type='cpu')
        """
        return next(self.model.parameters()).device

    @property
    def _called(self) -> str:
        return "this" if self.path is None else bundled.title(self.path)

    @property
    def _bert(self) -> tuple[BERT, Tokenizer]:
        if not isinstance(self.model, BERT) or self.tokenizer is None:
            raise UsageError(
                "{called} is a {family} model; only a BERT fills gaps", called=self._called, family=self.config.family
            )
        return self.model, self.tokenizer
