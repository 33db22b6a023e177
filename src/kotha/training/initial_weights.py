"""Initial weights from a trained model, for continued pre-training, fine-tuning and transfer learning.

The model keeps its sizes and is trained with the learning rates of a new model (lower rates gave worse results, see
docs/dev/experiments.md). If the tokenizer changes, the hidden layers are kept, and the token embeddings and the head
are mapped piece by piece: a piece in the old vocabulary keeps its row, any other piece starts as the mean of the old
pieces that spell it, and a piece that the old tokenizer cannot encode is initialized randomly.
"""

from dataclasses import dataclass
from typing import Any

import torch

from kotha.artifacts.model_folder import Bundle, unique_weights
from kotha.errors import ConfigError, UsageError
from kotha.i18n.message import Option
from kotha.model.classifier import TextClassifier
from kotha.model.config import ClassifierConfig, ModelConfig, TextConfig, ViTConfig, classifying
from kotha.model.family import Model
from kotha.model.vit import ViT
from kotha.text.tokenizer.tokenizer import Tokenizer

# Settings that may differ from those of the trained model; with rotary positions, also the context length.
_CHANGEABLE = {"dropout", "attention_dropout"}
_UNKNOWN = "\ufffd"


@dataclass(frozen=True)
class Origin:
    """A trained model whose weights initialize another model."""

    name: str  # as given by the user
    bundle: Bundle

    def config(self, tokenizer: Tokenizer | None) -> ModelConfig:
        """Return the config of the new model: that of the trained model, with the vocabulary size of ``tokenizer``."""
        config = self.bundle.config
        if isinstance(config, TextConfig) and tokenizer is not None and not self._same(tokenizer):
            return config.replace(vocab_size=tokenizer.vocab_size)
        return config

    def check(self, wanted: ModelConfig, tokenizer: Tokenizer | None) -> None:
        """Raise an error if these weights cannot initialize a model of the config ``wanted``."""
        own = self.config(tokenizer)
        if isinstance(wanted, ClassifierConfig):
            own = classifying(own, wanted.labels)  # the hidden layers are reused in a classifier
        if isinstance(wanted, ViTConfig) and isinstance(own, ViTConfig):  # other classes and image sizes are allowed
            own = own.replace(n_classes=wanted.n_classes, labels=wanted.labels, image_size=wanted.image_size)
        if type(wanted) is not type(own):
            raise ConfigError(
                "{name} is a {family} model, but a {wanted} model was requested",
                name=self.name,
                family=own.family,
                wanted=wanted.family,
            )
        free = _CHANGEABLE | ({"context_length"} if getattr(own, "positions", None) == "rotary" else set())
        before, after = own.to_dict(), wanted.to_dict()
        changed = sorted(name for name in before if before[name] != after[name] and name not in free)
        if changed:
            values = [f"{name}={after[name]}" for name in changed]
            raise ConfigError(
                "a model initialized from trained weights keeps their sizes; remove {asked}", asked=values
            )

    def initialize(self, model: Model, tokenizer: Tokenizer | None) -> dict[str, int]:
        """Copy the weights into a new model; return the numbers of pieces kept, averaged and randomly initialized."""
        self.check(model.config, tokenizer)
        weights: dict[str, Any] = self._weights_for(model)
        counts: dict[str, int] = {}
        if tokenizer is not None and self.bundle.tokenizer is not None and not self._same(tokenizer):
            rows, counts = map_pieces(self.bundle.tokenizer, tokenizer)
            known = torch.tensor([bool(ids) for ids in rows])
            n_before = self.bundle.model.config.vocab_size  # type: ignore[union-attr]
            for name, fresh in model.named_parameters():
                if name in weights and name.split(".")[0] in ("tokens", "head") and len(weights[name]) == n_before:
                    table = fresh.detach().cpu().clone()
                    old = weights[name].to(table.dtype)
                    table[known] = torch.stack([old[ids].mean(dim=0) for ids in rows if ids])
                    weights[name] = table
        with torch.no_grad():
            for name, parameter in model.named_parameters():
                if name in weights:  # a new head keeps its random weights
                    parameter.copy_(weights[name].to(parameter.dtype))
        return counts

    def _weights_for(self, model: Model) -> dict[str, Any]:
        """Return the weights by their names in ``model``, without the head if the classes differ."""
        weights, own = unique_weights(self.bundle.model), self.bundle.model
        if isinstance(model, ViT) and isinstance(own, ViT):
            return _for_images(own, model, dict(weights))
        if not isinstance(model, TextClassifier):
            return dict(weights)
        if not isinstance(own, TextClassifier):
            return {f"body.{name}": weight for name, weight in weights.items()}
        same = own.config.labels == model.config.labels
        return {name: weight for name, weight in weights.items() if same or not name.startswith("head.")}

    def _same(self, tokenizer: Tokenizer) -> bool:
        return self.bundle.tokenizer is not None and self.bundle.tokenizer.fingerprint == tokenizer.fingerprint


def _for_images(own: ViT, model: ViT, weights: dict[str, Any]) -> dict[str, Any]:
    """Return a ViT's weights with positions interpolated for the image size, without the head if the classes differ."""
    side = model.positions.n_side
    weights["positions.table.weight"] = own.positions(side, side).detach()
    same = own.config.class_names == model.config.class_names
    return {name: weight for name, weight in weights.items() if same or not name.startswith("head.")}


def map_pieces(old: Tokenizer, new: Tokenizer) -> tuple[list[list[int]], dict[str, int]]:
    """Return, for each new piece, the old pieces that spell it; empty if the old tokenizer cannot encode it.

    Special tokens are matched by role, not by text.
    """
    vocabulary = {piece: token for token, piece in enumerate(old.pieces) if piece}
    same_role = {new.special[role]: old.special[role] for role in new.special.keys() & old.special.keys()}
    rows: list[list[int]] = []
    counts = {"kept": 0, "joined": 0, "drawn": 0}
    for token, piece in enumerate(new.pieces):
        same = same_role.get(token, vocabulary.get(piece))
        ids = [same] if same is not None else _as_old(piece, token, old, new)
        rows.append(ids)
        counts["kept" if same is not None else "joined" if ids else "drawn"] += 1
    return rows, counts


def _as_old(piece: str, token: int, old: Tokenizer, new: Tokenizer) -> list[int]:
    """Return the ids of a piece's text in the old tokenizer; empty for special tokens and text it cannot encode."""
    text = new.decode([token]) or piece
    if not piece or _UNKNOWN in text or token in new.special.values():
        return []
    lead = " " if piece[0] in " ▁Ġ" and not text.startswith(" ") else ""
    ids = old.encode(lead + text)
    return [] if old.special.get("unk") in ids else ids


def check_lora(lora: int | None, tokenizer: Tokenizer, data: str, origin: Origin | None) -> None:
    """Raise an error unless LoRA starts from a model with the tokenizer of the data, whose name is ``data``."""
    if lora is None:
        return
    if origin is None:
        raise UsageError(
            "{lora} adapts the weights of a trained model; specify the model to start from",
            lora=Option("lora", lora),
        )
    own = origin.bundle.tokenizer
    if own is None or own.fingerprint != tokenizer.fingerprint:
        raise UsageError(
            "{lora} keeps the token embeddings, but {data} and {origin} have different tokenizers; prepare the "
            "data with the tokenizer of {origin}",
            lora=Option("lora", lora),
            data=data,
            origin=origin.name,
        )
