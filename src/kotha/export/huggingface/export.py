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
from pathlib import Path
from typing import Any

import torch

from kotha.artifacts.model_folder import WEIGHTS_FILE, Bundle
from kotha.export.card import About, model_card
from kotha.export.exporter import Exporter, ExportJob, with_marks_of
from kotha.export.huggingface.check import check_hf
from kotha.export.huggingface.config import (
    CONFIG_FILE,
    RECORD,
    choose_layout,
    special_ids,
    special_tokens,
    write_config,
)
from kotha.export.parity import ParityReport, our_side, rounding
from kotha.export.weight_names import Layout, foreign_weights
from kotha.i18n.message import Message
from kotha.model.config import BERTConfig, ClassifierConfig, TextConfig, ViTConfig
from kotha.storage.atomic import atomic_directory, atomic_write
from kotha.storage.output_paths import is_made_of
from kotha.storage.weights import write_weights
from kotha.text.tokenizer.chat import ChatTemplate
from kotha.text.tokenizer.tokenizer import Tokenizer

DTYPES = ("float32", "bfloat16", "float16")
_WRITTEN = (
    *("preprocessor_config.json", "generation_config.json", "tokenizer.json", "tokenizer_config.json"),
    *(WEIGHTS_FILE, "README.md"),
)
_UNKNOWN = About()
_ROLES = ("bos", "eos", "pad", "unk", "mask", "cls", "sep")


def _export(job: ExportJob) -> ParityReport:
    """Write the folder, and let transformers compare it."""
    bundle = job.bundle
    layout = write_hf(bundle, job.path, job.weights, job.about, job.overwrite)
    dtype: torch.dtype = getattr(torch, job.weights)
    report = check_hf(job.path, our_side(bundle, dtype), layout, job.lines)
    report.architecture = layout.architecture
    report.remarks += rounding(bundle, dtype)
    return report


HUGGING_FACE = Exporter(
    opens=lambda config: Message("opens as {name}", name=choose_layout(config).architecture),
    export=_export,
    weights=DTYPES,
)


def write_hf(
    bundle: Bundle,
    out: Path,
    dtype: str = DTYPES[0],
    about: About = _UNKNOWN,
    overwrite: bool = False,
) -> Layout:
    """Write the folder, whole or not at all; answers with the layout that it has."""
    config, tokenizer = bundle.config, bundle.tokenizer
    layout = choose_layout(config)
    weights = foreign_weights(bundle.model, layout, getattr(torch, dtype))
    files = {CONFIG_FILE: write_config(layout, config, tokenizer, dtype)}
    if isinstance(config, ViTConfig):
        files["preprocessor_config.json"] = _pixels(config)
    if isinstance(config, TextConfig) and not isinstance(config, ClassifierConfig):
        files["generation_config.json"] = _generation(layout, bundle, config)
    if isinstance(config, TextConfig) and tokenizer is not None:
        files["tokenizer_config.json"] = _tokenizer_settings(layout, tokenizer, config, bundle.chat)
    with atomic_directory(out, lambda old: overwrite and _is_ours(old)) as partial:
        for name, values in files.items():
            atomic_write(partial / name, json.dumps(values, ensure_ascii=False, indent=2) + "\n")
        if tokenizer is not None:
            with_marks_of(tokenizer, config).save(partial)
        write_weights(partial / WEIGHTS_FILE, weights)
        atomic_write(partial / "README.md", model_card(layout, bundle, about, dtype))
    return layout


def _generation(layout: Layout, bundle: Bundle, config: TextConfig) -> dict[str, Any]:
    values: dict[str, Any] = {
        name: value for name, value in special_ids(layout, bundle.tokenizer).items() if value is not None
    }
    if bundle.chat is not None and bundle.tokenizer is not None:
        ends = {values.get("eos_token_id"), bundle.tokenizer.special["end"]} - {None}
        values["eos_token_id"] = sorted(ends)  # a turn ends there, and a text too
    if layout.name != "bert":
        values["max_length"] = config.context_length
    if layout.name == "marian":
        values["num_beams"] = 1
    return values


def _tokenizer_settings(
    layout: Layout, tokenizer: Tokenizer, config: TextConfig, template: ChatTemplate | None
) -> dict[str, Any]:
    """What ``tokenizer_config.json`` says; with a chat template where turns were taught."""
    reads = ["input_ids", "token_type_ids", "attention_mask"]  # a BERT is told which sentence each token is of
    special = special_tokens(layout, tokenizer)
    return {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "model_max_length": config.context_length,
        **({"model_input_names": reads} if isinstance(config, BERTConfig) else {}),
        "clean_up_tokenization_spaces": False,
        **{f"{role}_token": tokenizer.pieces[special[role]] for role in _ROLES if role in special},
        **({} if template is None else {"chat_template": template.jinja()}),
    }


def _pixels(config: ViTConfig) -> dict[str, Any]:
    """Bytes of 0 to 255 become numbers of -1 to 1, as in our training."""
    size = dict.fromkeys(("height", "width"), config.image_size)
    half = dict.fromkeys(("image_mean", "image_std"), [0.5] * config.n_channels)
    steps = {"do_resize": True, "size": size, "do_rescale": True, "rescale_factor": 1 / 255, "do_normalize": True}
    return {"image_processor_type": "ViTImageProcessor", **steps, **half}


def _is_ours(folder: Path) -> bool:
    return is_made_of(folder, CONFIG_FILE, lambda values: isinstance(values.get(RECORD), dict), _WRITTEN)
