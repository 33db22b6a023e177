"""Open a model folder for writing without torch: the weights as NumPy arrays, for ``native_decoder.py``.

Importing torch takes longer than everything else between pressing Enter and the first character. This covers a GPT
stored in float32, float16 or int8, on a machine with a C compiler and without a GPU; the text is the same as
with torch. For everything else, and for a folder with a fault, `light_model` returns None, and the usual way,
``artifacts/model_folder.py``, does it or explains it.
"""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kotha.artifacts import description as folders
from kotha.errors import KothaError
from kotha.generation.compilation import n_threads, native
from kotha.generation.native_decoder import NativeModel
from kotha.model.config import GPTConfig
from kotha.storage.weights import read_header, reading_weights
from kotha.text.tokenizer.chat import ChatTemplate
from kotha.text.tokenizer.tokenizer import Tokenizer

# Device files of GPUs that torch may be able to use: NVIDIA's, AMD's, and any under Windows' Linux.
_GPUS = [Path("/dev") / name for name in ("nvidiactl", "nvidia0", "kfd", "dxg")]
_STORED = ("float32", "float16", "int8")


class LightModel(NamedTuple):
    """A model that writes without torch, with its tokenizer."""

    model: NativeModel
    tokenizer: Tokenizer
    chat: ChatTemplate | None


def light_model(folder: Path) -> LightModel | None:
    """Open a model folder, or a run folder's best model; None if that needs torch."""
    if any(os.path.lexists(gpu) for gpu in _GPUS):
        return None
    try:
        path = folders.find_model(folder)
        about = folders.read_description(path)
        config, file = about["model"], path / folders.WEIGHTS_FILE
        if type(config) is not GPTConfig or about["dtype"] not in _STORED:
            return None
        folders.check_weights(file, *read_header(file), folders.expected_tensors(shapes(config), about["dtype"]))
        tokenizer = folders.load_tokenizer(path, config, about.get("tokenizer"))
        chat = folders.chat_template(path, about.get("chat_template"), tokenizer)
        library = native()
        weights = _read(file)
    except (KothaError, OSError):
        return None
    finite = all(np.isfinite(array.sum(dtype=np.float32)) or np.isfinite(array).all() for array in weights.values())
    if tokenizer is None or library is None or not finite:
        return None
    return LightModel(NativeModel(config, joined(config, weights), library, n_threads(library)), tokenizer, chat)


def shapes(config: GPTConfig) -> Iterator[tuple[str, tuple[int, ...]]]:
    """The name and shape of each stored weight of a GPT."""
    yield "tokens.weight", (config.vocab_size, config.d_model)
    if config.positions == "learned":
        yield "positions.table.weight", (config.context_length, config.d_model)
    for layer in range(config.n_layers):
        block, heads = f"stack.blocks.{layer}", f"blocks.{layer}.attention"
        d_heads, d_keys = (config.d_head * len(each(heads)) for each in (config.heads_of, config.key_heads_of))
        for part, outs in (("query", d_heads), ("key", d_keys), ("value", d_keys)):
            yield from _linear(f"{block}.attention.{part}", outs, config.d_model, config.attention_bias)
        yield from _linear(f"{block}.attention.output", config.d_model, d_heads, config.attention_bias)
        if config.qk_norm:
            yield from ((f"{block}.attention.{part}_norm.weight", (config.d_head,)) for part in ("query", "key"))
        yield from _norm(f"{block}.attention_norm", config)
        for part in ("up", "gate") if config.activation == "swiglu" else ("up",):
            yield from _linear(f"{block}.feedforward.{part}", config.d_ff, config.d_model, config.feedforward_bias)
        yield from _linear(f"{block}.feedforward.down", config.d_model, config.d_ff, config.feedforward_bias)
        yield from _norm(f"{block}.feedforward_norm", config)
    if config.final_norm:
        yield from _norm("stack.norm", config)
    if not config.tied_head:
        yield "head.weight", (config.vocab_size, config.d_model)
    if config.head_bias:
        yield "head.bias", (config.vocab_size,)


def _linear(name: str, outs: int, width: int, bias: bool) -> Iterator[tuple[str, tuple[int, ...]]]:
    yield f"{name}.weight", (outs, width)
    if bias:
        yield f"{name}.bias", (outs,)


def _norm(name: str, config: GPTConfig) -> Iterator[tuple[str, tuple[int, ...]]]:
    for part in ("weight",) if config.norm == "rms" else ("weight", "bias"):
        yield f"{name}.{part}", (config.d_model,)


def _read(file: Path) -> dict[str, NDArray[Any]]:
    """Read stored weights as float32, with int8 matrices multiplied by their scales."""
    from safetensors.numpy import load_file

    with reading_weights(file):
        stored = load_file(file)
    wide = {}
    for name, array in stored.items():
        if not name.endswith(folders.SCALE):
            wide[name] = np.require(array, np.float32, ["C", "A"])
            if name + folders.SCALE in stored:
                wide[name] *= stored[name + folders.SCALE].astype(np.float32)[:, None]
    return wide


def joined(config: GPTConfig, weights: dict[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
    """Weights with the queries, keys and values of each layer joined, as in ``weights.JoinedAttention``."""
    found = dict(weights)
    for layer in range(config.n_layers):
        attention = f"stack.blocks.{layer}.attention"
        for kind in ("weight", "bias") if config.attention_bias else ("weight",):
            parts = [found.pop(f"{attention}.{part}.{kind}") for part in ("query", "key", "value")]
            found[f"{attention}.joined.{kind}"] = np.concatenate(parts)
    return {"head.weight": found["tokens.weight"], **found}
