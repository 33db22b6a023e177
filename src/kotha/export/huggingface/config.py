"""``config.json`` of a Hugging Face folder, written from our config and read back.

Reading trusts nothing: a setting that our models do not have is refused by its foreign name. Beside the foreign
settings a folder of ours carries our own config under ``kotha``, because a layout cannot say everything (which biases
were never there, how a model was started); it is believed only where it says the same as the rest.
"""

import hashlib
import json
from collections.abc import Sequence
from dataclasses import fields
from typing import Any

from kotha.artifacts.model_folder import FORMAT
from kotha.errors import ConfigError, KothaError, nearest, reason
from kotha.export.huggingface.layouts import ACTIVATIONS, CLASSIFIERS, LAYOUTS, MARIAN, VIT, Layout
from kotha.i18n.message import Message
from kotha.model.config import (
    BERTClassifierConfig,
    ClassifierConfig,
    GPTConfig,
    ModelConfig,
    TextConfig,
    ViTConfig,
    config_from_dict,
)
from kotha.text.tokenizer.prompt import start_of_document
from kotha.text.tokenizer.tokenizer import Tokenizer

CONFIG_FILE = "config.json"
RECORD = "kotha"
# What else a folder of a layout may call itself.
_ALSO = {"gpt2": ("GPT2Model",), "bert": ("BertForMaskedLM",)}
# Where transformers, left without a value, takes one that we do not have.
_LEFT_OUT = {"scale_embedding": False}
_ROPE = ("rope_type", "type", "rope_theta")


# -- out --------------------------------------------------------------------------------------------------------------


def write_config(layout: Layout, config: ModelConfig, tokenizer: Tokenizer | None, dtype: str) -> dict[str, Any]:
    """What ``config.json`` says of a model in a layout."""
    written = {value: key for key, value in reversed(ACTIVATIONS.items())}
    values: dict[str, Any] = {theirs: getattr(config, ours) for ours, (theirs, _) in layout.settings.items()}
    values[layout.settings["activation"][0]] = written[config.activation]
    values |= {**layout.fixed, **{name: values[other] for name, other in layout.twins.items()}}
    if layout.model_type == "gpt2":
        values["embd_pdrop"] = config.dropout
    if isinstance(config, TextConfig) and config.positions == "rotary":
        values["rope_parameters"] = {"rope_type": "default", "rope_theta": config.rotary_base}
    if isinstance(config, ViTConfig):
        values |= _labels(config.labels or [f"LABEL_{index}" for index in range(config.n_classes)])
    else:
        values |= special_ids(layout, tokenizer)
    if isinstance(config, ClassifierConfig):
        values |= {**_labels(config.labels), "problem_type": "single_label_classification"}
        if isinstance(config, BERTClassifierConfig):
            values["classifier_dropout"] = config.dropout
    record = {"model": config.to_dict(), "vocabulary": None if tokenizer is None else vocabulary_mark(tokenizer)}
    head = {"architectures": [layout.architecture], "model_type": layout.model_type, "dtype": dtype}
    return {**head, **values, RECORD: record}


def _labels(labels: Sequence[str]) -> dict[str, Any]:
    names = {str(index): label for index, label in enumerate(labels)}
    return {"id2label": names, "label2id": {label: int(index) for index, label in names.items()}}


def vocabulary_mark(tokenizer: Tokenizer) -> str:
    """The same for the same pieces under the same ids; unlike a fingerprint, it outlives a saving by transformers."""
    return hashlib.sha256("\0".join(tokenizer.pieces).encode()).hexdigest()[:32]


def special_ids(layout: Layout, tokenizer: Tokenizer | None) -> dict[str, int | None]:
    """The tokens that begin, end and fill up a text; null where the tokenizer has none."""
    special = {} if tokenizer is None else _with_start(tokenizer, layout)
    ids = {f"{role}_token_id": special.get(role) for role in ("bos", "eos", "pad")}
    if layout is MARIAN:
        # Marian must name a token to start from; of a model without a tokenizer nobody knows which.
        ids |= {"decoder_start_token_id": special.get("bos", 0), "forced_eos_token_id": None}
    return ids


def special_texts(layout: Layout, tokenizer: Tokenizer) -> dict[str, str]:
    """How special tokens are written, by role."""
    return {role: tokenizer.pieces[token] for role, token in _with_start(tokenizer, layout).items()}


def _with_start(tokenizer: Tokenizer, layout: Layout) -> dict[str, int]:
    """The tokens by role; what begins a text is what a GPT of ours reads it behind."""
    start = start_of_document(tokenizer) if layout.family is GPTConfig else None
    return tokenizer.special if start is None else {**tokenizer.special, "bos": start}


# -- in ---------------------------------------------------------------------------------------------------------------


def read_config(values: dict[str, Any]) -> tuple[Layout, ModelConfig]:
    """The layout that a ``config.json`` names, and our config with all that the layout has."""
    layout = _layout(values)
    _refuse_fixed(layout, values)
    ours = {name: values.get(theirs, left_out) for name, (theirs, left_out) in layout.settings.items()}
    ours["activation"] = _activation(layout, ours["activation"])
    if "rotary" in layout.always.get("positions", ((), ""))[0]:
        ours["rotary_base"] = _rotary_base(values)
    if layout is VIT:
        labels = values.get("id2label")
        ours["n_classes"] = len(labels) if isinstance(labels, dict) else values.get("num_labels", 2)
        ours["labels"] = _class_names(labels)
    if layout in CLASSIFIERS:
        ours["labels"] = _read_labels(values)
    usual = {name: allowed[0] for name, (allowed, _) in layout.always.items() if name not in ours}
    try:
        return layout, layout.family(**{**usual, **ours, **dict.fromkeys(layout.fills, True)})
    except ConfigError as error:
        raise KothaError(error.template, **_in_their_words(layout, error.values)) from error
    except OverflowError as error:
        raise KothaError("a number in it is beyond any machine: {why}", why=reason(error)) from error


def recorded(values: dict[str, Any], layout: Layout, config: ModelConfig) -> ModelConfig | None:
    """Our own config out of a folder of ours, where it agrees with what the layout says; else None."""
    record = values.get(RECORD)
    try:
        exact = config_from_dict(record["model"])  # type: ignore[index]
        full = layout.full(exact)
    except (ConfigError, TypeError, KeyError, AttributeError):
        return None
    said = {*layout.settings, *layout.always, *layout.fills, "rotary_base", "n_classes", "labels"}
    names = [each.name for each in fields(config) if each.name in said]
    same = type(full) is type(config) and all(getattr(full, name) == getattr(config, name) for name in names)
    return exact if same and not layout.obstacles(exact) else None


def _layout(values: dict[str, Any]) -> Layout:
    known = {layout.model_type: layout for layout in LAYOUTS}
    kind = values.get("model_type")
    if kind is None:
        ours = values.get("format") == FORMAT
        what = Message("a model of Kotha already") if ours else Message("no Hugging Face folder")
        raise KothaError("it names no model_type; this is {what}", what=what)
    if not isinstance(kind, str) or kind not in known:
        raise KothaError(
            "model_type={value!r} cannot be read{nearest}",
            value=str(kind)[:100],
            nearest=nearest(str(kind)[:100], known),
        )
    layout = known[kind]
    named = values.get("architectures")
    classifiers = {each.architecture: each for each in CLASSIFIERS if each.model_type == kind}
    if isinstance(named, list) and named and isinstance(named[0], str) and named[0] in classifiers:
        layout = classifiers[named[0]]
    if values.get("auto_map"):
        raise KothaError("auto_map: this model brings code of its own, and nothing of a folder is executed here")
    if values.get("quantization_config"):
        raise KothaError("quantization_config: these weights were made smaller; find the folder with the full ones")
    accepted = (layout.architecture, *_ALSO.get(kind, ()), *classifiers)
    if named and not (isinstance(named, list) and any(each in accepted for each in named)):
        raise KothaError(
            "architectures={value} cannot be read; of {title}, {names}",
            value=str(named)[:200],
            title=layout.title,
            names=" or ".join(accepted),
        )
    return layout


def _refuse_fixed(layout: Layout, values: dict[str, Any]) -> None:
    for name, fixed in layout.fixed.items():
        value = values.get(name, _LEFT_OUT.get(name, fixed))
        if value != fixed:
            raise KothaError(
                "{name}={value} is not what our {title} has: {wanted}",
                name=name,
                value=json.dumps(value)[:200],
                title=layout.title,
                wanted=json.dumps(fixed),
            )
    left_out = dict(layout.settings.values())
    for name, other in layout.twins.items():
        expected = values.get(other, left_out[other])
        value = values.get(name, left_out[other])
        if value != expected and value is not None:
            raise KothaError(
                "{name}={value} differs from {other}={expected}, and ours are the same",
                name=name,
                value=repr(value),
                other=other,
                expected=repr(expected),
            )
    kinds = values.get("layer_types")
    if kinds is not None and not (isinstance(kinds, list) and all(kind == "full_attention" for kind in kinds)):
        raise KothaError(
            "layer_types={value}: every layer of ours looks at all that came before", value=str(kinds)[:200]
        )


def _activation(layout: Layout, value: Any) -> str:
    known = {theirs: ours for theirs, ours in ACTIVATIONS.items() if ours in layout.always["activation"][0]}
    if not isinstance(value, str) or value not in known:
        name = layout.settings["activation"][0]
        raise KothaError(
            "{name}={value!r} is not an activation of ours; {names} can be read",
            name=name,
            value=str(value)[:100],
            names=list(known),
        )
    return known[value]


def _read_labels(values: dict[str, Any]) -> tuple[str, ...]:
    """The names of the classes, in the order of their numbers."""
    names = values.get("id2label")
    if names is None:
        count = values.get("num_labels", 2)
        names = {str(index): f"LABEL_{index}" for index in range(count if isinstance(count, int) else 2)}
    if not isinstance(names, dict) or sorted(names) != sorted(str(index) for index in range(len(names))):
        raise KothaError("id2label={value} does not name the classes from 0 on", value=str(names)[:200])
    if values.get("problem_type") not in (None, "single_label_classification"):
        raise KothaError(
            "problem_type={value}: ours give each text one class of several",
            value=repr(values["problem_type"]),
        )
    return tuple(str(names[str(index)]) for index in range(len(names)))


def _class_names(names: Any) -> tuple[str, ...]:
    """What the classes of images are called; nothing where that says no more than their numbers, or names one twice."""
    known = [str(index) for index in range(len(names))] if isinstance(names, dict) else []
    if not known or sorted(map(str, names)) != sorted(known):
        return ()
    found = tuple(str(names[index] if index in names else names[int(index)]) for index in known)
    plain = all(name == f"LABEL_{index}" for index, name in enumerate(found))
    return () if plain or len(set(found)) < len(found) or not all(map(str.strip, found)) or len(found) < 2 else found


def _rotary_base(values: dict[str, Any]) -> Any:
    """How fast positions turn; any other way to count them is refused."""
    base = values.get("rope_theta", 10_000.0)
    for name in ("rope_parameters", "rope_scaling"):
        rope = values.get(name)
        if rope is None:
            continue
        plain = isinstance(rope, dict) and rope.get("rope_type", rope.get("type", "default")) == "default"
        if not plain or any(key not in _ROPE for key in rope):
            raise KothaError(
                "{name}={value}: ours turn by the position alone (rope_type 'default')",
                name=name,
                value=json.dumps(rope)[:200],
            )
        base = rope.get("rope_theta", base)
    share = values.get("partial_rotary_factor")
    if share is not None and share != 1:
        raise KothaError("partial_rotary_factor={value}: ours turn the whole of a head", value=repr(share))
    return base


def _in_their_words(layout: Layout, values: dict[str, Any]) -> dict[str, Any]:
    """The values of an error of our config, its settings called as theirs are."""
    theirs = {"rotary_base": "rope_theta", "n_classes": "num_labels"}
    theirs |= {ours: name for ours, (name, _) in layout.settings.items()}
    return {**values, **{key: theirs.get(values[key], values[key]) for key in ("name", "other") if key in values}}
