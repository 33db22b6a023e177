"""Teachers: trained models whose guesses a new model learns from, beside the text (knowledge distillation).

The text says of each token only which one came; a teacher says how likely all the others were. From little text a
student of several teachers becomes better than each of them, and smaller if it should. The teachers are read as they
are and never change; what they say of a token is the mean of their probabilities.
"""

from collections.abc import Sequence

import torch
from torch import Tensor

from kotha.artifacts import model_folder as bundle
from kotha.errors import ConfigError
from kotha.model.gpt import GPT
from kotha.text.tokenizer.tokenizer import Tokenizer


class Teachers:
    """Models that have learned already."""

    def __init__(self, folders: Sequence[str], tokenizer: Tokenizer, context_length: int) -> None:
        self.models = [_read(folder, tokenizer, context_length) for folder in folders]
        self._ready = False

    @torch.no_grad()
    def hidden(self, tokens: Tensor) -> list[tuple[Tensor, Tensor]]:
        """For each teacher what its head reads, and that head: (B, T) -> (B, T, C), (V, C)."""
        if not self._ready:
            self._move(tokens.device)
        return [(model.hidden(tokens), model.head.weight) for model in self.models]

    def _move(self, device: torch.device) -> None:
        """To where the student is, in the type that its products have."""
        narrow = torch.get_autocast_dtype(device.type) if torch.is_autocast_enabled(device.type) else torch.float32
        for model in self.models:
            model.to(device, narrow)
        self._ready = True


def _read(folder: str, tokenizer: Tokenizer, context_length: int) -> GPT:
    found = bundle.load(folder)
    model = found.model
    if not isinstance(model, GPT):
        raise ConfigError(
            "the teacher {folder} is a {family} model; only a gpt foretells next tokens",
            folder=folder,
            family=model.config.family,
        )
    if found.tokenizer is None or found.tokenizer.fingerprint != tokenizer.fingerprint:
        raise ConfigError(
            "the teacher {folder} reads with another tokenizer than the data; its guesses would be of other words",
            folder=folder,
        )
    if model.config.context_length < context_length:
        raise ConfigError(
            "the teacher {folder} reads {context_length} tokens at once; use context_length={context_length} or less",
            folder=folder,
            context_length=model.config.context_length,
        )
    if model.head.bias is not None:
        raise ConfigError(
            "the teacher {folder} has a bias in its head, which is not known how to teach from", folder=folder
        )
    return model.requires_grad_(False)
