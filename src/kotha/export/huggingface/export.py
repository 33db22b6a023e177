"""Export to a Hugging Face folder, which ``transformers`` opens without Kotha's code.

::

    config.json, generation_config.json     settings under the layout's names; Kotha's own config under "kotha"
    model.safetensors                       weights under the layout's names; zeros for biases that the model lacks
    tokenizer.json, tokenizer_config.json   the tokenizer and the names of its special tokens preprocessor_config.json
    for images: the scaling of pixels README.md                               the model card

The folder is written atomically. ``check.py`` compares it with the original.

``tokenizer.json`` includes Kotha's normalization and the special tokens around texts in training (for a GPT the
start-of-document token), so token ids are the same. There is one exception: ``transformers`` encodes the name of a
special token in a text as the special token itself, unless ``split_special_tokens=True`` is passed.
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
    """Write the folder and verify it with transformers."""
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
    """Write the folder atomically and return its layout."""
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
        values["eos_token_id"] = sorted(ends)  # the tokens that end turns and texts
    if layout.name != "bert":
        values["max_length"] = config.context_length
    if layout.name == "marian":
        values["num_beams"] = 1
    return values


def _tokenizer_settings(
    layout: Layout, tokenizer: Tokenizer, config: TextConfig, template: ChatTemplate | None
) -> dict[str, Any]:
    """Return the content of ``tokenizer_config.json``, with the chat template of a model trained on conversations."""
    inputs = ["input_ids", "token_type_ids", "attention_mask"]
    special = special_tokens(layout, tokenizer)
    return {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "model_max_length": config.context_length,
        **({"model_input_names": inputs} if isinstance(config, BERTConfig) else {}),
        "clean_up_tokenization_spaces": False,
        **{f"{role}_token": tokenizer.pieces[special[role]] for role in _ROLES if role in special},
        **({} if template is None else {"chat_template": template.jinja()}),
    }


def _pixels(config: ViTConfig) -> dict[str, Any]:
    """Scale bytes from 0..255 to -1..1, as in Kotha's training."""
    size = dict.fromkeys(("height", "width"), config.image_size)
    half = dict.fromkeys(("image_mean", "image_std"), [0.5] * config.n_channels)
    steps = {"do_resize": True, "size": size, "do_rescale": True, "rescale_factor": 1 / 255, "do_normalize": True}
    return {"image_processor_type": "ViTImageProcessor", **steps, **half}


def _is_ours(folder: Path) -> bool:
    return is_made_of(folder, CONFIG_FILE, lambda values: isinstance(values.get(RECORD), dict), _WRITTEN)
