"""A model goes out to Hugging Face: a folder that ``transformers`` opens with no code of ours.

::

    config.json, generation_config.json     sizes and settings in the layout's words; ours beside them, under kotha
    model.safetensors                       the weights by the layout's names; zeros for biases that we never had
    tokenizer.json, tokenizer_config.json   the same tokenizer, and what its special tokens are called
    preprocessor_config.json                for images: how pixels are scaled
    README.md                               the model card

The folder appears whole or not at all. Whether it says the same as ours is asked by ``check.py``.

Our normalization is part of ``tokenizer.json``, and so are the marks that a text was trained between (for a GPT the one
that starts a document), so the ids are the same there. One habit differs: ``transformers``
reads a special token that a text spells out as the token itself, unless it is told ``split_special_tokens=True``.
"""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from kotha.artifacts.model_folder import WEIGHTS_FILE, Bundle, unique_weights
from kotha.errors import KothaError, UsageError, is_short_of_memory, nearest, reason
from kotha.export.card import About, model_card
from kotha.export.huggingface.check import check_hf
from kotha.export.huggingface.config import CONFIG_FILE, RECORD, special_ids, special_texts, write_config
from kotha.export.huggingface.layouts import MARIAN, VIT, Layout, choose_layout
from kotha.export.marks import with_marks_of
from kotha.export.parity import ParityReport, our_side, rounding, with_remarks
from kotha.export.targets import USUAL, ExportSettings
from kotha.export.weight_map import with_zeros
from kotha.generation.conversation import was_taught
from kotha.generation.engine import Engine
from kotha.i18n.message import Message
from kotha.model.config import BERTConfig, ClassifierConfig, ModelConfig, TextConfig, ViTConfig
from kotha.model.gpt import GPT
from kotha.storage.atomic import whole_folder, write_whole
from kotha.storage.destinations import is_made_of
from kotha.storage.weights import write_weights
from kotha.text.tokenizer.chat import ChatTemplate
from kotha.text.tokenizer.tokenizer import Tokenizer

DTYPES = ("float32", "bfloat16", "float16")
_WRITTEN = (
    *("preprocessor_config.json", "generation_config.json", "tokenizer.json", "tokenizer_config.json"),
    *(WEIGHTS_FILE, "README.md"),
)
_ROLES = ("bos", "eos", "pad", "unk", "mask", "cls", "sep")


def export_hf(bundle: Bundle, out: Path, settings: ExportSettings = USUAL) -> ParityReport:
    """Write the folder, and let transformers compare it; a folder that it cannot open is a proof that failed."""
    taught = isinstance(bundle.model, GPT) and was_taught(
        Engine(bundle.model, bundle.tokenizer, max_batch=1, chat=bundle.chat)
    )
    layout = write_hf(bundle, out, settings, chat=taught)
    name = settings.weights or DTYPES[0]
    dtype: torch.dtype = getattr(torch, name)
    try:
        report = check_hf(out, our_side(bundle, dtype), layout, settings.lines)
    except KothaError as error:
        short = Message("there is not enough memory to open it with transformers")
        report = ParityReport(door="hf", refused=short if is_short_of_memory(error) else reason(error))
    report = replace(report, architecture=layout.architecture, weights=name)
    return with_remarks(report, rounding(bundle, dtype))


def write_hf(bundle: Bundle, out: Path, settings: ExportSettings = USUAL, chat: bool = False) -> Layout:
    """Write the folder, whole or not at all, with a chat template if asked; answers with the layout that it has."""
    dtype = settings.weights or DTYPES[0]
    if dtype not in DTYPES:
        raise UsageError(
            "weights={weights!r} is no type of weights there{nearest}", weights=dtype, nearest=nearest(dtype, DTYPES)
        )
    layout = choose_layout(bundle.config)
    weights = foreign_weights(bundle, layout, dtype)
    config = write_config(layout, bundle.config, bundle.tokenizer, dtype)
    about = About() if settings.run is None else About.of(settings.run)
    with whole_folder(out, lambda old: settings.overwrite and _is_ours(old)) as partial:
        _write_json(partial / CONFIG_FILE, config)
        if layout is VIT:
            _write_json(partial / "preprocessor_config.json", _pixels(bundle.config))
        if isinstance(bundle.config, TextConfig):
            if not isinstance(bundle.config, ClassifierConfig):
                _write_json(partial / "generation_config.json", _generation(layout, bundle, bundle.config, chat))
            if bundle.tokenizer is not None:
                with_marks_of(bundle.tokenizer, bundle.config).save(partial)
                settings_there = _tokenizer_settings(layout, bundle.tokenizer, bundle.config, chat)
                _write_json(partial / "tokenizer_config.json", settings_there)
        write_weights(partial / WEIGHTS_FILE, weights)
        write_whole(partial / "README.md", model_card(layout, bundle, about, dtype, settings.license))
    return layout


def foreign_weights(bundle: Bundle, layout: Layout, dtype: str = "float32") -> dict[str, Tensor]:
    """The weights by the layout's names, of one type; biases that it always has are zeros where the model has none."""
    full = layout.full(bundle.config)
    ours = {name: _narrow(name, tensor, dtype) for name, tensor in unique_weights(bundle.model).items()}
    theirs = layout.weights.to_theirs(with_zeros(ours, full), full)
    return {name: tensor.contiguous() for name, tensor in theirs.items()}


def _narrow(name: str, tensor: Tensor, dtype: str) -> Tensor:
    narrow = tensor.to(getattr(torch, dtype))
    if not torch.isfinite(narrow).all() and torch.isfinite(tensor).all():
        largest = float(tensor.abs().max())
        raise KothaError(
            "{name} reaches {largest:,.0f}, more than {dtype} holds; float32 and bfloat16 do",
            name=name,
            largest=largest,
            dtype=dtype,
        )
    return narrow


def _generation(layout: Layout, bundle: Bundle, config: TextConfig, chat: bool) -> dict[str, Any]:
    ids: dict[str, Any] = {
        name: value for name, value in special_ids(layout, bundle.tokenizer).items() if value is not None
    }
    if chat and bundle.tokenizer is not None and ChatTemplate.of(bundle.tokenizer) is not None:
        ends = {ids.get("eos_token_id"), bundle.tokenizer.special["end"]} - {None}
        ids["eos_token_id"] = sorted(ends)  # a turn ends there, and a text too
    longest = {} if layout.model_type == "bert" else {"max_length": config.context_length}
    return {**ids, **longest, **({"num_beams": 1} if layout is MARIAN else {})}


def _tokenizer_settings(layout: Layout, tokenizer: Tokenizer, config: TextConfig, chat: bool) -> dict[str, Any]:
    """What ``tokenizer_config.json`` says; with a chat template where turns were taught."""
    reads = ["input_ids", "token_type_ids", "attention_mask"]  # a BERT is told which sentence each token is of
    texts = special_texts(layout, tokenizer)
    template = ChatTemplate.of(tokenizer) if chat else None
    return {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "model_max_length": config.context_length,
        **({"model_input_names": reads} if isinstance(config, BERTConfig) else {}),
        "clean_up_tokenization_spaces": False,
        **{f"{role}_token": texts[role] for role in _ROLES if role in texts},
        **({} if template is None else {"chat_template": template.jinja()}),
    }


def _pixels(config: ModelConfig) -> dict[str, Any]:
    """Bytes of 0 to 255 become numbers of -1 to 1, as in our training."""
    assert isinstance(config, ViTConfig)
    size = dict.fromkeys(("height", "width"), config.image_size)
    half = dict.fromkeys(("image_mean", "image_std"), [0.5] * config.n_channels)
    steps = {"do_resize": True, "size": size, "do_rescale": True, "rescale_factor": 1 / 255, "do_normalize": True}
    return {"image_processor_type": "ViTImageProcessor", **steps, **half}


def _write_json(file: Path, values: dict[str, Any]) -> None:
    write_whole(file, json.dumps(values, ensure_ascii=False, indent=2) + "\n")


def _is_ours(folder: Path) -> bool:
    return is_made_of(folder, CONFIG_FILE, lambda values: isinstance(values.get(RECORD), dict), _WRITTEN)
