"""Write and read the ``config.json`` of a Hugging Face folder.

The file is untrusted input: an unsupported setting raises an error that names the setting as in the file. An exported
folder also contains Kotha's own config under ``kotha``, because a layout cannot express all settings (such as missing
biases and the initialization). This config is used only if it is consistent with the other settings.
"""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NoReturn

from kotha.errors import ConfigError, KothaError, nearest, reason
from kotha.export.weight_names import Layout, fitting_layout, load_layouts
from kotha.model.config import (
    FAMILIES,
    BERTClassifierConfig,
    ClassifierConfig,
    ModelConfig,
    TextConfig,
    ViTConfig,
    config_from_dict,
)
from kotha.text.tokenizer.prompt import start_of_document
from kotha.text.tokenizer.tokenizer import Tokenizer

CONFIG_FILE = "config.json"
RECORD = "kotha"
LAYOUTS = load_layouts(Path(__file__).with_name("layouts.toml"))
# Kotha's activations by their names in transformers; exports use the first name for each.
_ACTIVATIONS = {
    "gelu": "gelu",
    "gelu_new": "gelu-tanh",
    "gelu_pytorch_tanh": "gelu-tanh",
    "relu": "relu",
    "silu": "swiglu",
}
# Defaults in transformers for missing settings, where they differ from the fixed value.
_DEFAULTS = {"scale_embedding": False}
_ROPE = ("rope_type", "type", "rope_theta")
_ONE_OF_SEVERAL = "single_label_classification"


def choose_layout(config: ModelConfig) -> Layout:
    """Return the layout that a config fits; otherwise the error lists what the closest layout does not support."""
    return fitting_layout(config, LAYOUTS, "no Hugging Face architecture fits this model: {because}")


# -- export -----------------------------------------------------------------------------------------------------------


def write_config(layout: Layout, config: ModelConfig, tokenizer: Tokenizer | None, dtype: str) -> dict[str, Any]:
    """Return the content of ``config.json`` for a model in a layout."""
    written = {value: key for key, value in reversed(_ACTIVATIONS.items())}
    values: dict[str, Any] = {theirs: getattr(config, ours) for ours, (theirs, *_) in layout.settings.items()}
    values[layout.settings["activation"][0]] = written[config.activation]
    values |= {**layout.fixed, **{name: values[other] for name, other in layout.twins.items()}}
    if layout.name == "gpt2":
        values["embd_pdrop"] = config.dropout
    if isinstance(config, TextConfig):
        values |= special_ids(layout, tokenizer)
        if config.positions == "rotary":
            values["rope_parameters"] = {"rope_type": "default", "rope_theta": config.rotary_base}
    if isinstance(config, ViTConfig):
        values |= _labels(config.labels or _numbered(config.n_classes))
    if isinstance(config, ClassifierConfig):
        values |= {**_labels(config.labels), "problem_type": _ONE_OF_SEVERAL}
    if isinstance(config, BERTClassifierConfig):
        values["classifier_dropout"] = config.dropout
    head = {"architectures": [layout.architecture], "model_type": layout.name, "dtype": dtype}
    return {**head, **values, RECORD: {"model": config.to_dict()}}


def _labels(labels: Sequence[str]) -> dict[str, Any]:
    names = {str(index): label for index, label in enumerate(labels)}
    return {"id2label": names, "label2id": {label: int(index) for index, label in names.items()}}


def _numbered(count: int) -> list[str]:
    return [f"LABEL_{index}" for index in range(count)]


def special_ids(layout: Layout, tokenizer: Tokenizer | None) -> dict[str, int | None]:
    """Return the ids of the tokens that start, end and pad a text; None for each that the tokenizer lacks."""
    special = {} if tokenizer is None else special_tokens(layout, tokenizer)
    ids = {f"{role}_token_id": special.get(role) for role in ("bos", "eos", "pad")}
    if layout.name == "marian":
        # Marian requires a start token, which is unknown without a tokenizer.
        ids |= {"decoder_start_token_id": special.get("bos", 0), "forced_eos_token_id": None}
    return ids


def special_tokens(layout: Layout, tokenizer: Tokenizer) -> dict[str, int]:
    """Return the special tokens by role; for a GPT, bos is Kotha's start-of-document token."""
    start = start_of_document(tokenizer) if layout.family == "gpt" else None
    return tokenizer.special if start is None else {**tokenizer.special, "bos": start}


# -- import -----------------------------------------------------------------------------------------------------------


def read_config(values: dict[str, Any]) -> tuple[Layout, ModelConfig]:
    """Return the layout named in a ``config.json``, and Kotha's config with all biases that the layout has."""
    layout = _layout(values)
    _refuse_others(layout, values)
    ours = {name: values.get(theirs, usual[0] if usual else None) for name, (theirs, *usual) in layout.settings.items()}
    ours["activation"] = _activation(layout, ours["activation"])
    if "rotary" in layout.always.get("positions", ()):
        ours["rotary_base"] = _rotary_base(layout, values)
    if layout.name == "vit":
        labels = _read_labels(layout, values)
        are_names = (
            labels != _numbered(len(labels)) and len({each.strip() for each in labels} - {""}) == len(labels) > 1
        )
        ours |= {"n_classes": len(labels), "labels": tuple(labels) if are_names else ()}
    elif layout.family.endswith("-classifier"):
        ours["labels"] = tuple(_read_labels(layout, values))
    usual = {name: allowed[0] for name, allowed in layout.always.items() if name not in ours}
    try:
        return layout, FAMILIES[layout.family](**{**usual, **ours, **dict.fromkeys(layout.fills, True)})
    except ConfigError as error:
        raise KothaError(error.template, **_in_their_words(layout, error.values)) from error
    except OverflowError as error:
        raise KothaError("a number in it is too large: {why}", why=reason(error)) from error


def recorded(values: dict[str, Any], layout: Layout, config: ModelConfig) -> ModelConfig | None:
    """Return Kotha's own config from an exported folder if it is consistent with the other settings, otherwise None."""
    try:
        exact = config_from_dict(values[RECORD]["model"])
        fits = exact.family == layout.family and not layout.obstacles(exact)
        return exact if fits and read_config(write_config(layout, exact, None, ""))[1] == config else None
    except (KothaError, TypeError, KeyError, AttributeError):
        return None


def _refuse(layout: Layout, name: str, value: Any, wanted: str) -> NoReturn:
    raise KothaError(
        "{name}={value} is not supported for {title}; it must be {wanted}",
        name=name,
        value=json.dumps(value)[:200],
        title=layout.title,
        wanted=wanted,
    )


def _layout(values: dict[str, Any]) -> Layout:
    kind, named = values.get("model_type"), values.get("architectures")
    if kind is None:
        raise KothaError(
            "it has no model_type, so this is not a Hugging Face folder; Kotha's own model folders need no import"
        )
    layouts = [layout for layout in LAYOUTS if layout.name == kind]
    if not layouts:
        shown, known = str(kind)[:100], sorted({layout.name for layout in LAYOUTS})
        raise KothaError("model_type={value!r} is not supported{nearest}", value=shown, nearest=nearest(shown, known))
    for name in ("auto_map", "quantization_config"):
        if values.get(name):
            raise KothaError("{name}: custom model code and quantized weights are not supported", name=name)
    if not named:
        return layouts[0]
    by_name = {**dict.fromkeys(layouts[0].also, layouts[0]), **{each.architecture: each for each in layouts}}
    given = named if isinstance(named, list) else []
    found = [by_name[each] for each in given if isinstance(each, str) and each in by_name]
    if not found:
        _refuse(layouts[0], "architectures", named, " or ".join(by_name))
    return found[0]


def _refuse_others(layout: Layout, values: dict[str, Any]) -> None:
    """Raise an error for settings whose value differs from the layout's fixed value."""
    for name, fixed in layout.fixed.items():
        value = values.get(name, _DEFAULTS.get(name, fixed))
        if value != fixed:
            _refuse(layout, name, value, json.dumps(fixed))
    defaults = {theirs: usual for theirs, *usual in layout.settings.values()}
    for name, other in layout.twins.items():
        value, expected = (values.get(each, *defaults[other]) for each in (name, other))
        if value not in (None, expected):
            _refuse(layout, name, value, f"{other}={expected}")
    kinds = values.get("layer_types")
    if kinds is not None and (not isinstance(kinds, list) or any(kind != "full_attention" for kind in kinds)):
        _refuse(layout, "layer_types", kinds, "full_attention")


def _activation(layout: Layout, value: Any) -> str:
    known = {theirs: ours for theirs, ours in _ACTIVATIONS.items() if ours in layout.always["activation"]}
    if not isinstance(value, str) or value not in known:
        _refuse(layout, layout.settings["activation"][0], value, ", ".join(known))
    return known[value]


def _read_labels(layout: Layout, values: dict[str, Any]) -> list[str]:
    """Return the class names, in the order of their indices."""
    names = values.get("id2label") or dict(enumerate(_numbered(2)))
    by_number = {str(number): str(name) for number, name in names.items()} if isinstance(names, dict) else {}
    numbers = [str(number) for number in range(len(by_number))]
    if not numbers or by_number.keys() != set(numbers):
        _refuse(layout, "id2label", names, '{"0": …, "1": …}')
    if values.get("problem_type") not in (None, _ONE_OF_SEVERAL):
        _refuse(layout, "problem_type", values["problem_type"], _ONE_OF_SEVERAL)
    return [by_number[number] for number in numbers]


def _rotary_base(layout: Layout, values: dict[str, Any]) -> Any:
    """Return the base of the rotary positions; raise an error for other variants of rotary positions."""
    base = values.get("rope_theta", 10_000.0)
    for name in ("rope_parameters", "rope_scaling"):
        rope = values.get(name) or {}
        plain = isinstance(rope, dict) and rope.get("rope_type", rope.get("type", "default")) == "default"
        if not plain or any(key not in _ROPE for key in rope):
            _refuse(layout, name, rope, "rope_type default")
        base = rope.get("rope_theta", base)
    if values.get("partial_rotary_factor") not in (None, 1):
        _refuse(layout, "partial_rotary_factor", values["partial_rotary_factor"], "1")
    return base


def _in_their_words(layout: Layout, values: dict[str, Any]) -> dict[str, Any]:
    """Return the values of a config error, with settings named as in the file."""
    theirs = {"rotary_base": "rope_theta", "n_classes": "id2label"}
    theirs |= {ours: name for ours, (name, *_) in layout.settings.items()}
    return {**values, **{key: theirs.get(values[key], values[key]) for key in ("name", "other") if key in values}}
