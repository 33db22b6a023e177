"""Find a model folder, and read and check its config, tokenizer and chat template.

``model_folder.py`` explains the format and reads the weights. Nothing here imports torch.
"""

from pathlib import Path
from typing import Any, Literal, get_args

from kotha.errors import ConfigError, KothaError, reason
from kotha.model.config import ModelConfig, TextConfig, config_from_dict
from kotha.storage.json_files import read_table
from kotha.storage.status import exists, is_directory, is_file
from kotha.text.tokenizer.chat import ChatTemplate
from kotha.text.tokenizer.tokenizer import FILE_NAME as TOKENIZER_FILE
from kotha.text.tokenizer.tokenizer import Tokenizer

CONFIG_FILE = "config.json"
WEIGHTS_FILE = "model.safetensors"
# In a run folder: the best model, and a folder that exists from the start.
RUN_MODEL, RUN_MARK = "best", "checkpoints"
FORMAT = "kotha-model"
FORMAT_VERSION = 1
Stored = Literal["float32", "bfloat16", "float16", "float64", "int8"]
SCALE = ".scale"


def find_model(folder: str | Path) -> Path:
    """Return the model folder at a path: the path itself, or the best model in a run folder."""
    path = Path(folder)
    if not exists(path):
        raise KothaError("{path} not found; specify a run folder or a model folder", path=path)
    if is_model_folder(path):
        return path
    if is_model_folder(path / RUN_MODEL):
        return path / RUN_MODEL
    if is_directory(path / RUN_MARK):
        raise KothaError("the run in {path} has no model yet; train it until its first evaluation", path=path)
    return path  # not a model folder; reading it reports what is missing


def stored_type(folder: str | Path) -> Stored:
    """Return the type of the weights stored in a model folder, or in a run's best model."""
    found: Stored = read_description(find_model(folder))["dtype"]
    return found


def read_description(path: Path) -> dict[str, Any]:
    """Read and check config.json, and parse the model's config."""
    file = path / CONFIG_FILE
    if not is_file(file):
        raise KothaError(
            "{path} is not a model folder: it has no {name}; specify a run folder or a model folder",
            path=path,
            name=CONFIG_FILE,
        )
    values = read_table(file)
    if values.get("format") != FORMAT:
        raise KothaError("{path} does not describe a Kotha model", path=file)
    if values.get("format_version") != FORMAT_VERSION:
        raise KothaError(
            "{path} has format version {version}; this version of Kotha reads {ours}",
            path=file,
            version=repr(values.get("format_version")),
            ours=FORMAT_VERSION,
        )
    is_valid = isinstance(values.get("model"), dict) and isinstance(values.get("tokenizer"), str | None)
    if not is_valid or values.get("dtype") not in get_args(Stored):
        raise KothaError(
            "{path} must contain a model, a tokenizer (a fingerprint or null) and a dtype (one of {names})",
            path=file,
            names=list(get_args(Stored)),
        )
    try:
        return {**values, "model": config_from_dict(values["model"])}
    except ConfigError as error:
        raise ConfigError("{path}: {why}", path=file, why=reason(error)) from error


def load_tokenizer(path: Path, config: ModelConfig, fingerprint: str | None) -> Tokenizer | None:
    """Return the tokenizer of a model folder, checked against the fingerprint in its config."""
    if fingerprint is None:
        return None
    tokenizer = Tokenizer.load(path / TOKENIZER_FILE)
    if tokenizer.fingerprint != fingerprint:
        raise KothaError(
            "{path} has fingerprint {found}, but the model was trained with {wanted}; restore that tokenizer",
            path=path / TOKENIZER_FILE,
            found=tokenizer.fingerprint,
            wanted=fingerprint,
        )
    check_vocabulary(tokenizer, config)
    return tokenizer


def chat_template(path: Path, marks: Any, tokenizer: Tokenizer | None) -> ChatTemplate | None:
    """Return the chat template, checked against the tokenizer's special tokens."""
    if marks is None:
        return None
    known = None if tokenizer is None else ChatTemplate.of(tokenizer)
    if known is None or known.marks != marks:
        raise KothaError(
            "{path}: chat_template={marks} does not match the special tokens of its tokenizer",
            path=path / CONFIG_FILE,
            marks=repr(marks),
        )
    return known


def check_vocabulary(tokenizer: Tokenizer, config: ModelConfig) -> None:
    """Raise KothaError if a tokenizer has more tokens than the model."""
    if isinstance(config, TextConfig) and tokenizer.vocab_size > config.vocab_size:
        raise KothaError(
            "the tokenizer has {n:,} tokens, but the model has vocab_size={rows:,}; train with "
            "vocab_size={n}, or use the model's own tokenizer",
            n=tokenizer.vocab_size,
            rows=config.vocab_size,
        )


def is_model_folder(folder: Path) -> bool:
    """Whether a folder has a config and weights."""
    return is_file(folder / CONFIG_FILE) and is_file(folder / WEIGHTS_FILE)
