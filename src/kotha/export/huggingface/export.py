"""A model goes out to Hugging Face: a folder that ``transformers`` opens with no code of ours.

::

    config.json, generation_config.json     sizes and settings in the layout's words; ours beside them, under kotha
    model.safetensors                       the weights by the layout's names; zeros for biases that we never had
    tokenizer.json, tokenizer_config.json   the same tokenizer, and what its special tokens are called
    preprocessor_config.json                for images: how pixels are scaled
    README.md                               the model card

The folder appears whole or not at all. Whether it says the same as ours is ``huggingface_parity.py``'s question.
"""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import torch
from torch import Tensor

from kotha.bundle import WEIGHTS_FILE, Bundle, shape_alone, unique_weights, write_weights
from kotha.errors import KothaError
from kotha.export.card import About, model_card
from kotha.export.huggingface.config import CONFIG_FILE, RECORD, read_json, special_ids, write_config
from kotha.export.huggingface.layout import Layout
from kotha.export.huggingface.layouts import MARIAN, VIT
from kotha.export.huggingface.tokenizer import write_tokenizer
from kotha.export.targets import choose_layout
from kotha.files import whole_folder, write_whole
from kotha.model.config import ModelConfig, TextConfig, ViTConfig

Dtype = Literal["float32", "bfloat16", "float16"]


@dataclass(frozen=True, kw_only=True)
class Wishes:
    """What an export can be asked for."""

    dtype: Dtype = "float32"
    """Type of the weights in the folder."""
    chat: bool = False
    """Write a chat template: the model was taught to take turns."""
    license: str | None = None
    """Under which licence the model is given away; None: it is not known."""
    overwrite: bool = False
    """Replace a folder that was exported before."""


def export_hf(bundle: Bundle, out: Path, about: About, wishes: Wishes) -> Layout:
    """Write the folder, whole or not at all; answers with the layout that it has."""
    layout = choose_layout(bundle.config)
    weights = foreign_weights(bundle, layout, wishes.dtype)
    config = write_config(layout, bundle.config, bundle.tokenizer, wishes.dtype)
    with whole_folder(out, lambda old: wishes.overwrite and _is_ours(old)) as partial:
        _write_json(partial / CONFIG_FILE, config)
        if layout is VIT:
            _write_json(partial / "preprocessor_config.json", _pixels(bundle.config))
        if isinstance(bundle.config, TextConfig):
            _write_json(partial / "generation_config.json", _generation(layout, bundle, bundle.config))
            if bundle.tokenizer is not None:
                write_tokenizer(partial, bundle.tokenizer, bundle.config.context_length, wishes.chat)
        write_weights(partial / WEIGHTS_FILE, weights)
        write_whole(partial / "README.md", model_card(layout, bundle, about, wishes.dtype, wishes.license))
    return layout


def foreign_weights(bundle: Bundle, layout: Layout, dtype: str = "float32") -> dict[str, Tensor]:
    """The weights by the layout's names, of one type; biases that it always has are zeros where the model has none."""
    ours = {name: _narrow(name, tensor, dtype) for name, tensor in unique_weights(bundle.model).items()}
    full = layout.full(bundle.config)
    for name, parameter in shape_alone(full, 1 << 30).named_parameters():
        if name not in ours:
            ours[name] = torch.zeros(parameter.shape, dtype=getattr(torch, dtype))
    theirs = layout.names.to_theirs(ours, full)
    return {name: tensor.contiguous() for name, tensor in theirs.items()}


def _narrow(name: str, tensor: Tensor, dtype: str) -> Tensor:
    narrow = tensor.to(getattr(torch, dtype))
    if not torch.isfinite(narrow).all() and torch.isfinite(tensor).all():
        largest = float(tensor.abs().max())
        raise KothaError(f"{name} reaches {largest:,.0f}, more than {dtype} holds; use --dtype float32 or bfloat16")
    return narrow


def _generation(layout: Layout, bundle: Bundle, config: TextConfig) -> dict[str, Any]:
    ids = {name: value for name, value in special_ids(layout, bundle.tokenizer).items() if value is not None}
    longest = {} if layout.model_type == "bert" else {"max_length": config.context_length}
    return {**ids, **longest, **({"num_beams": 1} if layout is MARIAN else {})}


def _pixels(config: ModelConfig) -> dict[str, Any]:
    """Bytes of 0 to 255 become numbers of -1 to 1, as in our training."""
    assert isinstance(config, ViTConfig)
    half = [0.5] * config.n_channels
    scaled = {
        "do_rescale": True,
        "rescale_factor": 1 / 255,
        "do_normalize": True,
        "image_mean": half,
        "image_std": half,
    }
    size = {"height": config.image_size, "width": config.image_size}
    return {"image_processor_type": "ViTImageProcessor", "do_resize": True, "size": size, **scaled}


def _write_json(file: Path, values: dict[str, Any]) -> None:
    write_whole(file, json.dumps(values, ensure_ascii=False, indent=2) + "\n")


def _is_ours(folder: Path) -> bool:
    try:
        return RECORD in read_json(folder / CONFIG_FILE)
    except KothaError:
        return False
