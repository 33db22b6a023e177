"""How our rules, splits and marks are written as parts of a ``tokenizer.json``, and recognised there again.

The file must mean the same to anyone who opens it, so the normalization rules go into it as ordinary ``Replace``
steps. They run several times slower there than in ``normalize.py``; recognising them lets us run our own, and the
tests hold both equal.
"""

import itertools
import json
from collections.abc import Iterable
from typing import Any

import tokenizers
from tokenizers import Regex, decoders, models, normalizers, pre_tokenizers

from kotha.errors import TokenizerError
from kotha.text.normalize import NFC, ROUNDS, RULES
from kotha.text.tokenizer.split import SPLITS

_TEMPLATE = "TemplateProcessing"


def assembled(
    model: models.Model,
    specials: Iterable[str],
    decoder: decoders.Decoder,
    pre_tokenizer: pre_tokenizers.PreTokenizer | None = None,
    normalizer: normalizers.Normalizer | None = None,
) -> tokenizers.Tokenizer:
    """A pipeline of its parts."""
    backend = tokenizers.Tokenizer(model)
    if normalizer is not None:
        backend.normalizer = normalizer
    if pre_tokenizer is not None:
        backend.pre_tokenizer = pre_tokenizer
    backend.decoder = decoder
    backend.add_special_tokens(list(specials))
    return backend


def normalizer_of(rules: tuple[str, ...]) -> normalizers.Normalizer:
    """The rules as a step of a ``tokenizers`` pipeline."""
    compose = [normalizers.NFC()] if NFC in rules else []
    rewrite = [
        normalizers.Replace(Regex(pattern), replacement)
        for rule in RULES
        if rule.name in rules
        for pattern, replacement in rule.pairs
    ]
    return normalizers.Sequence((compose + rewrite) * ROUNDS + compose)


def rules_of(normalizer: dict[str, Any] | None) -> tuple[str, ...] | None:
    """The rules that a serialized normalizer consists of, or None when it is not one of ours."""
    if normalizer is None:
        return ()
    steps = normalizer.get("normalizers", [])
    patterns = {step.get("pattern", {}).get("Regex") for step in steps if step.get("type") == "Replace"}
    names = [rule.name for rule in RULES if all(pattern in patterns for pattern, _ in rule.pairs)]
    if any(step.get("type") == "NFC" for step in steps):
        names.insert(0, NFC)
    rules = tuple(names)
    return rules if json.loads(normalizer_of(rules).__getstate__()) == normalizer else None


def splitter_of(split: str, byte_level: bool = False) -> pre_tokenizers.PreTokenizer:
    """The split as a step of a ``tokenizers`` pipeline, with GPT-2's byte alphabet behind it where asked for."""
    cut = pre_tokenizers.Split(Regex(split), "isolated")
    if not byte_level:
        return cut
    return pre_tokenizers.Sequence([cut, pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])


def split_name_of(pre_tokenizer: dict[str, Any] | None) -> str | None:
    """The name of the split that a serialized pre-tokenizer uses, or None when it is not one of ours."""
    text = json.dumps(pre_tokenizer)
    return next((name for name, split in SPLITS.items() if json.dumps(split) in text), None)


def marks_before(post_processor: dict[str, Any] | None) -> list[int] | None:
    """The tokens that a serialized post-processor puts before a text, or None when it says nothing of marks."""
    template = next((step for step in _steps(post_processor) if step["type"] == _TEMPLATE), None)
    if template is None:
        return None
    before = itertools.takewhile(lambda part: "SpecialToken" in part, template["single"])
    known, names = template["special_tokens"], [part["SpecialToken"]["id"] for part in before]
    if unknown := [name for name in names if name not in known]:
        raise TokenizerError(
            "its post_processor puts {name!r} before a text, and does not say which token that is", name=unknown[0]
        )
    return [token for name in names for token in known[name]["ids"]]


def without_marks(post_processor: dict[str, Any] | None) -> dict[str, Any] | None:
    """A serialized post-processor that puts nothing around a text."""
    kept = [step for step in _steps(post_processor) if step["type"] != _TEMPLATE]
    if len(kept) < 2:
        return kept[0] if kept else None
    return {"type": "Sequence", "processors": kept}


def _steps(post_processor: dict[str, Any] | None) -> list[dict[str, Any]]:
    if post_processor is None:
        return []
    return post_processor["processors"] if post_processor["type"] == "Sequence" else [post_processor]
