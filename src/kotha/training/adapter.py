"""Adapters: the weights trained by LoRA, in a small folder of their own; one base model can have several adapters.

::

    adapter.json         format, rank and alpha, the config of the whole model, the fingerprint of the base, and whether
                         it was trained on conversations
    adapter.safetensors  the low-rank matrices, and the weights trained in full (a new head)

The base is identified by a hash of the weights that the adapter modifies; other models are rejected. Merging an adapter
into its base gives an ordinary model.
"""

import hashlib
from pathlib import Path
from typing import Any

import safetensors.torch
import torch
from torch import Tensor

from kotha.artifacts.model_folder import Bundle, assemble, check_header, expected_tensors, shape_alone
from kotha.errors import ConfigError, KothaError
from kotha.i18n.message import Message, Text
from kotha.model.config import ModelConfig, config_from_dict
from kotha.model.family import Model, build
from kotha.model.fields import is_number
from kotha.model.lora import add_low_rank, fully_trained_prefixes, is_low_rank, merged_weights
from kotha.storage.atomic import atomic_directory, atomic_write
from kotha.storage.json_files import as_json, read_table
from kotha.storage.output_paths import is_made_of
from kotha.storage.status import is_file
from kotha.storage.weights import read_header, reading_weights, write_weights
from kotha.text.tokenizer.chat import ChatTemplate
from kotha.training.initial_weights import Origin

FOLDER = "adapter"
DESCRIPTION, WEIGHTS = "adapter.json", "adapter.safetensors"
_FORMAT, _VERSION = "kotha-adapter", 1
_UNNAMED = Message("this model")
_TIMES_THE_BASE = 10
_LARGEST_ALPHA = 1_000_000  # far larger than any published value


def save_adapter(
    folder: Path, model: Model, rank: int, alpha: float, base: str, chat: ChatTemplate | None = None
) -> None:
    """Write the trained weights of a LoRA model atomically."""
    weights = {name: each.detach().cpu().contiguous() for name, each in model.named_parameters() if each.requires_grad}
    about: dict[str, Any] = {"format": _FORMAT, "format_version": _VERSION, "rank": rank, "alpha": alpha, "base": base}
    if chat is not None:
        about["supports_chat"] = True
    is_adapter = lambda old: is_made_of(old, DESCRIPTION, lambda values: values.get("format") == _FORMAT, [WEIGHTS])
    with atomic_directory(folder, is_adapter) as partial:
        write_weights(partial / WEIGHTS, weights)
        atomic_write(partial / DESCRIPTION, as_json({**about, "model": model.config.to_dict()}, indent=1) + "\n")


def base_fingerprint(model: Model) -> str:
    """Hash the frozen weights of a model; equal weights give equal hashes."""
    trained, digest = fully_trained_prefixes(model.config.family), hashlib.sha256()
    for name, each in sorted(model.named_parameters()):
        if not is_low_rank(name) and not (trained and name.startswith(trained)):
            digest.update(f"{name} {tuple(each.shape)}".encode())
            digest.update(each.detach().float().cpu().contiguous().numpy().tobytes())
    return digest.hexdigest()[:32]


def apply_adapter(base: Bundle, folder: Path, name: Text = _UNNAMED) -> Model:
    """Return the base with an adapter's low-rank matrices added; raise an error if the adapter has another base."""
    folder = _found(folder)
    about = _read(folder)
    try:
        config, rank, alpha = config_from_dict(about["model"]), about["rank"], about["alpha"]
        _check_size(config, base.model)
        model = build(config)
        Origin(str(name), base).initialize(model, base.tokenizer)
        found = base_fingerprint(model)
        add_low_rank(model, rank, alpha, fully_trained_prefixes(config.family))
    except (ConfigError, KeyError, TypeError, ValueError, ZeroDivisionError) as error:
        raise KothaError("{folder} does not fit {name}: {error}", folder=folder, name=name, error=error) from error
    if found != about.get("base"):
        raise KothaError(
            "{folder} was trained for a model other than {name}; apply it to its own base model",
            folder=folder,
            name=name,
        )
    trainable = {each: parameter for each, parameter in model.named_parameters() if parameter.requires_grad}
    weights = _weights(folder, trainable)
    with torch.no_grad():
        for each, parameter in trainable.items():
            parameter.copy_(weights[each])
    return model.eval()


def _check_size(config: ModelConfig, base: Model) -> None:
    """Reject an adapter whose config is far larger than the base, before a model is built from it."""
    shape = shape_alone(config, n_tensors=sum(1 for _ in base.parameters()))
    wanted, there = (sum(each.numel() for each in model.parameters()) for model in (shape, base))
    if wanted > _TIMES_THE_BASE * there:
        raise ConfigError(
            "it is for a model with {wanted:,} parameters, but this model has {there:,}", wanted=wanted, there=there
        )


def load_adapted(base: Bundle, folder: Path, name: Text = _UNNAMED) -> Bundle:
    """Return the base merged with an adapter, with the base's tokenizer."""
    model = merged(apply_adapter(base, folder, name))
    chat = base.chat
    about = _read(_found(folder))
    if base.tokenizer is not None and about.get("supports_chat", about.get("takes_turns")) is True:  # the old file name
        chat = ChatTemplate.of(base.tokenizer)
    return Bundle(model, base.tokenizer, chat)


def merged(model: Model) -> Model:
    """Return an ordinary model with the same outputs as a LoRA model."""
    weights = merged_weights(model)
    return assemble(shape_alone(model.config, len(weights)), weights)


def _found(folder: Path) -> Path:
    """Return the folder if it is an adapter, or the adapter of a run."""
    inside = folder / FOLDER
    return inside if not is_file(folder / DESCRIPTION) and is_file(inside / DESCRIPTION) else folder


def _read(folder: Path) -> dict[str, Any]:
    if not is_file(folder / DESCRIPTION):
        raise KothaError("{folder} is not an adapter: it has no {file}", folder=folder, file=DESCRIPTION)
    about = read_table(folder / DESCRIPTION)
    if about.get("format") != _FORMAT or about.get("format_version") != _VERSION:
        raise KothaError(
            "{path} does not describe an adapter that this version of Kotha can read", path=folder / DESCRIPTION
        )
    rank, alpha = about.get("rank"), about.get("alpha")
    if not (isinstance(rank, int) and rank >= 1 and is_number(alpha) and abs(alpha or 0) < _LARGEST_ALPHA):
        raise KothaError(
            "{path} must have a rank of at least 1 and an alpha below {most:,}",
            path=folder / DESCRIPTION,
            most=_LARGEST_ALPHA,
        )
    return about


def _weights(folder: Path, trainable: dict[str, torch.nn.Parameter]) -> dict[str, Tensor]:
    """Return the tensors in the adapter file, after checking their names and shapes."""
    file = folder / WEIGHTS
    check_header(file, read_header(file)[0], expected_tensors(trainable.items()))
    with reading_weights(file):
        return safetensors.torch.load_file(file)
