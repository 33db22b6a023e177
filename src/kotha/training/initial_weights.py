"""Starting from weights instead of chance: continued pre-training, fine-tuning, transfer learning.

A model that learned one text goes on with another: its sizes stay, and it learns at the rates of a new one (lower ones
were worse: docs/dev/experiments.md). Under another tokenizer the body stays too, and of the tables each row that
belongs to a piece is carried over: a piece that the old vocabulary has keeps its row, another begins as the mean of
those that the old tokenizer would cut it into, and one that it cannot write stays as chance made it.
"""

from dataclasses import dataclass
from typing import Any

import torch

from kotha.artifacts.model_folder import Bundle, unique_weights
from kotha.errors import ConfigError, UsageError
from kotha.model.classifier import TextClassifier
from kotha.model.config import ClassifierConfig, ModelConfig, TextConfig, ViTConfig, classifying
from kotha.model.family import Model
from kotha.model.vit import ViT
from kotha.text.tokenizer.tokenizer import Tokenizer

# What may differ from the model that the weights are of; with rotary positions the context too.
_CHANGEABLE = {"dropout", "attention_dropout"}
_UNKNOWN = "\ufffd"


@dataclass(frozen=True)
class Origin:
    """A trained model to start from."""

    name: str  # as it was asked for
    bundle: Bundle

    def config(self, tokenizer: Tokenizer | None) -> ModelConfig:
        """The config of the model that goes on: with the words of the data."""
        config = self.bundle.config
        if isinstance(config, TextConfig) and tokenizer is not None and not self._same(tokenizer):
            return config.replace(vocab_size=tokenizer.vocab_size)
        return config

    def check(self, wanted: ModelConfig, tokenizer: Tokenizer | None) -> None:
        """Refuse a model that these weights cannot become."""
        own = self.config(tokenizer)
        if isinstance(wanted, ClassifierConfig):
            own = classifying(own, wanted.labels)  # its body becomes a classifier's
        if isinstance(wanted, ViTConfig) and isinstance(own, ViTConfig):  # other classes, images of another size
            own = own.replace(n_classes=wanted.n_classes, labels=wanted.labels, image_size=wanted.image_size)
        if type(wanted) is not type(own):
            raise ConfigError(
                "{name} is a {family} model, but a {wanted} was requested",
                name=self.name,
                family=own.family,
                wanted=wanted.family,
            )
        free = _CHANGEABLE | ({"context_length"} if getattr(own, "positions", None) == "rotary" else set())
        before, after = own.to_dict(), wanted.to_dict()
        changed = sorted(name for name in before if before[name] != after[name] and name not in free)
        if changed:
            asked = [f"{name}={after[name]}" for name in changed]
            raise ConfigError("a model that starts from trained weights keeps their sizes; remove {asked}", asked=asked)

    def fill(self, model: Model, tokenizer: Tokenizer | None) -> dict[str, int]:
        """Put the weights into a new model; gives how many pieces were kept, joined of others, and drawn by chance."""
        self.check(model.config, tokenizer)
        weights: dict[str, Any] = self._weights_for(model)
        counts: dict[str, int] = {}
        if tokenizer is not None and self.bundle.tokenizer is not None and not self._same(tokenizer):
            rows, counts = carried(self.bundle.tokenizer, tokenizer)
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
                if name in weights:  # a new head is left to chance
                    parameter.copy_(weights[name].to(parameter.dtype))
        return counts

    def _weights_for(self, model: Model) -> dict[str, Any]:
        """The weights by the names that they have in a model; a head for other classes is not among them."""
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
    """The weights of a ViT for other images: positions stretched to their grid, no head for other classes."""
    side = model.positions.n_side
    weights["positions.table.weight"] = own.positions(side, side).detach()
    same = own.config.class_names == model.config.class_names
    return {name: weight for name, weight in weights.items() if same or not name.startswith("head.")}


def carried(old: Tokenizer, new: Tokenizer) -> tuple[list[list[int]], dict[str, int]]:
    """For each piece of a new tokenizer the old pieces that it begins as; none where the old one cannot write it.

    Special tokens meet by what they do, whatever they are called.
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
    """How the old tokenizer writes a piece's text; nothing where that is no text, or unknown to it."""
    text = new.decode([token]) or piece
    if not piece or _UNKNOWN in text or token in new.special.values():
        return []
    lead = " " if piece[0] in " ▁Ġ" and not text.startswith(" ") else ""
    ids = old.encode(lead + text)
    return [] if old.special.get("unk") in ids else ids


def check_lora(lora: int | None, tokenizer: Tokenizer, data: str, origin: Origin | None) -> None:
    """Refuse LoRA where there is nothing that it could be beside; ``data`` is what the tokenizer cuts."""
    if lora is None:
        return
    if origin is None:
        raise UsageError("lora={lora} adapts the weights of a trained model; give a model to start from", lora=lora)
    own = origin.bundle.tokenizer
    if own is None or own.fingerprint != tokenizer.fingerprint:
        raise UsageError(
            "lora={lora} keeps the token embeddings, but {data} uses another tokenizer than {origin}; "
            "prepare the data with the tokenizer of {origin}",
            lora=lora,
            data=data,
            origin=origin.name,
        )
