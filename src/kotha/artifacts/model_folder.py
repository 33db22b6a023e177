"""A model folder: the config, weights and tokenizer of a model.

::

    config.json          format, model config, dtype, fingerprint of the tokenizer, the chat template of a model
                         that was fine-tuned for conversation, and the language of its text, if known
    model.safetensors    every weight once; tied weights under the first name
    tokenizer.json       if the model reads text

With dtype int8, matrices are stored as integers with a float16 scale per row (``model/rounding.py``), and everything
else as float32, which reduces the size to a quarter. The matrices are converted back to float32 on loading.

A run folder contains its best model as a model folder, ``best/``; functions that read a model accept either path.

Writing is atomic. No code from a model folder is ever executed. Before memory is allocated for the weights, the names
and shapes in their header are compared with the config.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, get_args

import safetensors.torch
import torch
from torch import Tensor, nn

from kotha.artifacts.description import CONFIG_FILE as CONFIG_FILE
from kotha.artifacts.description import (
    FORMAT,
    FORMAT_VERSION,
    SCALE,
    Stored,
    chat_template,
    check_vocabulary,
    is_model_folder,
    load_tokenizer,
    read_description,
)
from kotha.artifacts.description import RUN_MODEL as RUN_MODEL
from kotha.artifacts.description import WEIGHTS_FILE as WEIGHTS_FILE
from kotha.artifacts.description import find_model as find_model
from kotha.artifacts.description import stored_type as stored_type
from kotha.errors import KothaError, reason
from kotha.model.config import ModelConfig
from kotha.model.family import Model, build
from kotha.model.rounding import round_rows, widen_rows
from kotha.storage.atomic import atomic_directory, atomic_write
from kotha.storage.bundled import CARD_FILE
from kotha.storage.json_files import as_json
from kotha.storage.output_paths import check_folder_place, is_made_of
from kotha.storage.status import is_file
from kotha.storage.weights import read_header, reading_weights, write_weights
from kotha.text.tokenizer.chat import ChatTemplate
from kotha.text.tokenizer.tokenizer import FILE_NAME as TOKENIZER_FILE
from kotha.text.tokenizer.tokenizer import Tokenizer

# Types for computation, and their names in safetensors.
DTYPES = {"float32": "F32", "bfloat16": "BF16", "float16": "F16", "float64": "F64"}
_BYTES = {"F64": 8, "F32": 4, "BF16": 2, "F16": 2, "I8": 1}
_TENSORS_PER_LAYER = 8  # at least: four in attention, two in the feed-forward, two norms


@dataclass(frozen=True)
class Bundle:
    """A model with its tokenizer, if it reads text."""

    model: Model
    tokenizer: Tokenizer | None
    chat: ChatTemplate | None = None  # None: not fine-tuned for conversation, or not recorded

    @property
    def config(self) -> ModelConfig:
        """The model's config."""
        return self.model.config

    def widened(self) -> "Bundle":
        """Convert bfloat16 and float16 weights on a CPU to float32, which is faster there and loses no precision."""
        weight = next(self.model.parameters())
        if weight.device.type == "cpu" and weight.dtype in (torch.bfloat16, torch.float16):
            self.model.float()
        return self


def save(
    folder: str | Path,
    model: Model,
    tokenizer: Tokenizer | None = None,
    overwrite: bool = False,
    whatever_it_holds: bool = False,
    stored: Stored | None = None,
    chat: ChatTemplate | None = None,
    card: str | None = None,
    language: str | None = None,
) -> Path:
    """Write a model folder atomically; ``overwrite`` replaces an existing model folder, and nothing else.

    ``stored`` is the type of the weights on disk (default: their type in memory). ``card`` is a model card in Markdown,
    and ``language`` the ISO 639 code of the model's language.
    A folder that contains other files is not replaced unless ``whatever_it_holds`` is set. Training sets this option so
    that a run does not fail at its end because of such files.
    """
    out = Path(folder)
    if tokenizer is not None:
        check_vocabulary(tokenizer, model.config)
    weights = unique_weights(model)
    kind, *others = {stored} if stored else {str(each.dtype).removeprefix("torch.") for each in weights.values()}
    if others or kind not in get_args(Stored):
        raise KothaError(
            "the weights of a model folder must all have the same type, one of {names}; found {found}",
            names=list(get_args(Stored)),
            found=[kind, *others],
        )
    description = {
        "format": FORMAT,
        "format_version": FORMAT_VERSION,
        "model": model.config.to_dict(),
        "dtype": kind,
        "tokenizer": None if tokenizer is None else tokenizer.fingerprint,
        **({} if chat is None else {"chat_template": dict(chat.marks)}),
        **({} if language is None else {"language": language}),
    }
    with atomic_directory(out, lambda old: overwrite and _is_ours(old, whatever_it_holds)) as partial:
        if tokenizer is not None:
            tokenizer.save(partial)
        write_weights(partial / WEIGHTS_FILE, _narrowed(weights, kind))
        if card is not None:
            atomic_write(partial / CARD_FILE, card)
        atomic_write(partial / CONFIG_FILE, as_json(description, indent=1) + "\n")
    return out


def check_place(folder: str | Path, overwrite: bool = False) -> None:
    """Raise an error if ``save`` could not write to a folder; called before any work starts."""
    check_folder_place(Path(folder), lambda old: overwrite and _is_ours(old, whatever_it_holds=False))


def load(folder: str | Path, device: str | torch.device = "cpu") -> Bundle:
    """Load and check a model folder, or a run folder's best model, in evaluation mode."""
    path, model, tokenizer, chat = _open(folder)
    with reading_weights(path / WEIGHTS_FILE) as file:
        weights = _widened(safetensors.torch.load_file(file, device=str(device)))
    try:
        return Bundle(assemble(model, weights), tokenizer, chat)
    except KothaError as error:
        raise KothaError("{path}: {why}", path=path / WEIGHTS_FILE, why=reason(error)) from error


def assemble(model: Model, weights: dict[str, Tensor]) -> Model:
    """Return a model on the meta device with its weights assigned; tied weights share their memory."""
    for name, tensor in weights.items():
        # The sum is quick to compute, and not finite if any weight is not. It may also overflow, so all weights are
        # then checked.
        if not tensor.sum(dtype=torch.float32).isfinite() and not tensor.isfinite().all():
            raise KothaError(
                "the weights contain NaN or infinity ({name}); use an earlier checkpoint, or train again "
                "with a lower learning_rate",
                name=name,
            )
    # safetensors maps the file into memory, so changing the file would change the model, and truncating it would kill
    # the process. The weights are therefore copied.
    own = torch.contiguous_format
    parameters = {name: nn.Parameter(tensor.clone(memory_format=own)) for name, tensor in weights.items()}
    model.load_state_dict({name: parameters[first] for name, first in first_names(model).items()}, assign=True)
    return model.eval()


def first_names(model: nn.Module) -> dict[str, str]:
    """Map each weight's name to the name under which it is stored (for tied weights, the first name)."""
    stored: dict[nn.Parameter, str] = {}
    named = model.named_parameters(remove_duplicate=False)
    return {name: stored.setdefault(parameter, name) for name, parameter in named}


def shape_alone(config: ModelConfig, n_tensors: int) -> Model:
    """Return a model on the meta device; raises KothaError if its layers need more than ``n_tensors`` tensors."""
    n_layers = config.n_layers + getattr(config, "n_decoder_layers", 0)
    if n_layers * _TENSORS_PER_LAYER > n_tensors:  # before building the blocks
        raise KothaError(
            "its config has {n_layers:,} layers, but there are only {n_tensors:,} tensors",
            n_layers=n_layers,
            n_tensors=n_tensors,
        )
    try:
        return build(config, "meta")
    except (RuntimeError, OverflowError, TypeError) as error:  # torch: the size overflows
        raise KothaError(
            "its config describes impossibly large matrices, but there are only {n_tensors:,} tensors",
            n_tensors=n_tensors,
        ) from error


def unique_weights(model: nn.Module) -> dict[str, Tensor]:
    """Return the weights to store, each once and under its first name."""
    return {name: parameter.detach().cpu().contiguous() for name, parameter in model.named_parameters()}


# -- checks -----------------------------------------------------------------------------------------------------------


def _open(folder: str | Path) -> tuple[Path, Model, Tokenizer | None, ChatTemplate | None]:
    """Check that the files match; return the path, the model on the meta device, tokenizer and chat template."""
    path = find_model(folder)
    description = read_description(path)
    if not is_file(path / WEIGHTS_FILE):
        template = "{path} is not a model folder: it has no {name}; specify a run folder or a model folder"
        raise KothaError(template, path=path, name=WEIGHTS_FILE)
    header, n_bytes = read_header(path / WEIGHTS_FILE)
    try:
        model = shape_alone(description["model"], len(header))
    except KothaError as error:
        raise KothaError("{path}: {why} in {name}", path=path, why=reason(error), name=WEIGHTS_FILE) from error
    tensors = expected_tensors(model.named_parameters(), description["dtype"])
    check_header(path / WEIGHTS_FILE, header, tensors)
    n_expected = sum(math.prod(each["shape"]) * _BYTES[each["dtype"]] for each in tensors.values())
    if n_bytes != n_expected:
        raise KothaError(
            "{path} is truncated or corrupted: it contains {n:,} bytes of weights instead of {wanted:,}",
            path=path / WEIGHTS_FILE,
            n=n_bytes,
            wanted=n_expected,
        )
    tokenizer = load_tokenizer(path, model.config, description.get("tokenizer"))
    return path, model, tokenizer, chat_template(path, description.get("chat_template"), tokenizer)


def expected_tensors(named: Iterable[tuple[str, Tensor]], dtype: Stored = "float32") -> dict[str, dict[str, Any]]:
    """Return the expected header of a weights file: shape and type of each tensor, by name."""
    found: dict[str, dict[str, Any]] = {}
    for name, tensor in named:
        is_int8 = dtype == "int8" and tensor.ndim == 2
        kind = "I8" if is_int8 else DTYPES["float32" if dtype == "int8" else dtype]
        found[name] = {"shape": list(tensor.shape), "dtype": kind}
        if is_int8:
            found[name + SCALE] = {"shape": [len(tensor)], "dtype": "F16"}
    return found


def _narrowed(weights: dict[str, Tensor], dtype: str) -> dict[str, Tensor]:
    """Convert weights to their type on disk."""
    if dtype != "int8":
        return {name: tensor.to(getattr(torch, dtype)) for name, tensor in weights.items()}
    found: dict[str, Tensor] = {}
    for name, tensor in weights.items():
        if tensor.ndim == 2:
            found[name], found[name + SCALE] = round_rows(tensor, torch.float16)
        else:
            found[name] = tensor.float()
    return found


def _widened(weights: dict[str, Tensor]) -> dict[str, Tensor]:
    """Return stored weights with int8 matrices converted to float32."""
    int8 = [name for name, tensor in weights.items() if tensor.dtype == torch.int8]
    wide = {name: widen_rows(weights[name], weights.pop(name + SCALE)) for name in int8}
    return {**weights, **wide}


def check_header(file: Path, header: dict[str, Any], expected: dict[str, dict[str, Any]]) -> None:
    """Raise KothaError if the tensor names, shapes or types in a weights file differ from those expected."""
    for name in {**expected, **header}:
        for what in ("shape", "dtype"):
            found, wanted = (each.get(name, {}).get(what) for each in (header, expected))
            if found != wanted:
                raise KothaError(
                    "{path}: {name} has {what} {found}, but its config requires {wanted}",
                    path=file,
                    name=name,
                    what=what,
                    found=str(found),
                    wanted=str(wanted),
                )


def _is_ours(folder: Path, whatever_it_holds: bool) -> bool:
    """Whether a folder was written by ``save``; other programs use the same file names."""
    written = ["*"] if whatever_it_holds else [WEIGHTS_FILE, TOKENIZER_FILE, CARD_FILE]
    return is_model_folder(folder) and is_made_of(
        folder, CONFIG_FILE, lambda values: values.get("format") == FORMAT, written
    )
