"""Open a model folder for generation without torch: load the weights as NumPy arrays, for ``native_decoder.py``.

Importing torch takes longer than all other work before the first character is printed. This module supports a GPT
stored in float32, float16 or int8, on a machine with a C compiler and without a GPU; the text is the same as with
torch. In all other cases, including an invalid folder, `light_model` returns None, and the caller uses
``artifacts/model_folder.py``, which opens the folder or raises an error.
"""

import os
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kotha.artifacts import description as folders
from kotha.errors import KothaError
from kotha.generation.compilation import native
from kotha.generation.native import NativeModel
from kotha.model.config import GPTConfig
from kotha.storage.weights import reading_weights
from kotha.text.tokenizer.chat import ChatTemplate
from kotha.text.tokenizer.tokenizer import Tokenizer

# Device files of GPUs that torch may be able to use: NVIDIA, AMD, and any GPU under WSL.
_GPUS = [Path("/dev") / name for name in ("nvidiactl", "nvidia0", "kfd", "dxg")]
_STORED = ("float32", "float16", "int8")


def light_model(folder: Path) -> tuple[NativeModel, Tokenizer, ChatTemplate | None] | None:
    """Open a model folder, or the best model of a run, with its tokenizer; return None if that requires torch."""
    if any(os.path.lexists(gpu) for gpu in _GPUS):
        return None
    library = native()
    if library is None:
        return None
    try:
        path = folders.find_model(folder)
        about = folders.read_description(path)
        config = about["model"]
        if type(config) is not GPTConfig or about["dtype"] not in _STORED or about.get("tokenizer") is None:
            return None
        weights = joined(config, _read(path / folders.WEIGHTS_FILE, about["dtype"]))
        model = NativeModel(config, weights, library, library.most_threads())
        tokenizer = folders.load_tokenizer(path, config, about["tokenizer"])
        chat = folders.chat_template(path, about.get("chat_template"), tokenizer)
    except (KothaError, OSError, KeyError, ValueError):
        return None
    assert tokenizer is not None, "the config contains the tokenizer's fingerprint"
    return model, tokenizer, chat


def _read(file: Path, dtype: str) -> dict[str, NDArray[Any]]:
    """Read weights stored as this type; return float32. Raise ValueError for other types, NaN and infinity."""
    from safetensors.numpy import load_file

    with reading_weights(file):
        stored = load_file(file)
    matrices = [name for name, array in stored.items() if dtype == "int8" and array.ndim == 2]
    scales = {name: stored.pop(name + folders.SCALE) for name in matrices}
    wide = {}
    for name, array in stored.items():
        if array.dtype != ("int8" if name in scales else "float32" if dtype == "int8" else dtype):
            raise ValueError(f"{name} is not stored as {dtype}")
        wide[name] = np.require(array, np.float32, ["C", "A"])
        if name in scales:
            wide[name] *= scales[name].astype(np.float32)[:, None]
        if not np.isfinite(wide[name]).all():
            raise ValueError(f"{name} is not finite")
    return wide


def joined(config: GPTConfig, weights: dict[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
    """Join the queries, keys and values of each layer, as in ``weights.JoinedAttention``; add a tied head."""
    for layer in range(config.n_layers):
        attention = f"stack.blocks.{layer}.attention"
        for kind in ("weight", "bias") if config.attention_bias else ("weight",):
            parts = [weights.pop(f"{attention}.{part}.{kind}") for part in ("query", "key", "value")]
            weights[f"{attention}.joined.{kind}"] = np.concatenate(parts)
    tokens = weights["tokens.weight"]
    if config.tied_head and weights.setdefault("head.weight", tokens) is not tokens:
        raise ValueError("a tied head has no weight of its own")
    return weights
