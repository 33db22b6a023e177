"""Write normalization rules, splits and special tokens to a ``tokenizer.json``, and recognize them when reading.

The file must behave the same in every tool, so the normalization rules are stored as ordinary ``Replace`` steps. These
steps are several times slower than ``normalize.py``, so Kotha uses its own implementation if it recognizes them. Tests
check that the results match.

A split pattern divides text before the vocabulary is applied; no piece crosses these boundaries. Common patterns treat
``\\p{L}+`` as a word. In Bangla, vowel signs are marks (``\\p{M}``), so these patterns split a word at each vowel sign,
which a larger vocabulary cannot compensate for. The patterns here match the same text in ``regex`` and in Oniguruma
(used by ``tokenizers``).

Files that ``tokenizers`` would accept, but that would crash it or exhaust memory, are rejected here.
"""

import itertools
import json
import math
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import suppress
from typing import Any

import tokenizers
from tokenizers import Regex, decoders, models, normalizers, pre_tokenizers

from kotha.errors import TokenizerError
from kotha.text.normalize import NFC, ROUNDS, RULES

# Kotha's split: a word keeps its marks and joiners, digits stay together, and a chunk has at most one leading
# white-space character. Every white-space character therefore starts a chunk, and a unigram model gives the same result
# for a text as for its chunks.
WORDS = "\\s?[\\p{L}\\p{M}\u200c\u200d]+|\\s?\\p{N}+|\\s?[^\\s\\p{L}\\p{M}\\p{N}]+|\\s"

# Qwen3.5's split, the only pattern with marks that llama.cpp supports by name, so a BPE with it works there unchanged.
# It treats a joiner as neither letter nor mark: র‍্যাব is cut before the ZWJ (trainers.py has a workaround).
QWEN35 = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*"
    r"|\s*[\r\n]+|\s+(?!\S)|\s+"
)

# GPT-2's split, for the baseline of the report card; it cuts Bangla at each vowel sign.
GPT2 = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"

SPLITS = {"words": WORDS, "qwen35": QWEN35, "gpt2": GPT2}
# One code point per chunk.
CHARACTERS = "(?m:.)"


_TEMPLATE = "TemplateProcessing"
_NO_TEXT = "\ufdd0"  # a noncharacter, which no text contains
_MOST_DOUBLINGS = 6  # Kotha's own normalization has a few of these steps twice


def assembled(
    model: models.Model,
    specials: Iterable[str],
    decoder: decoders.Decoder,
    pre_tokenizer: pre_tokenizers.PreTokenizer | None = None,
    normalizer: normalizers.Normalizer | None = None,
) -> tokenizers.Tokenizer:
    """Assemble a ``tokenizers`` pipeline from its parts."""
    backend = tokenizers.Tokenizer(model)
    if normalizer is not None:
        backend.normalizer = normalizer
    if pre_tokenizer is not None:
        backend.pre_tokenizer = pre_tokenizer
    backend.decoder = decoder
    backend.add_special_tokens(list(specials))
    return backend


def normalizer_of(rules: tuple[str, ...]) -> normalizers.Normalizer:
    """Convert the rules to a step of a ``tokenizers`` pipeline."""
    compose = [normalizers.NFC()] if NFC in rules else []
    rewrite = [
        normalizers.Replace(Regex(pattern), replacement)
        for rule in RULES
        if rule.name in rules
        for pattern, replacement in rule.pairs
    ]
    return normalizers.Sequence((compose + rewrite) * ROUNDS + compose)


def rules_of(normalizer: dict[str, Any] | None) -> tuple[str, ...] | None:
    """Return the rules of a serialized normalizer, or None if it is not Kotha's."""
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
    """Convert a split to a step of a ``tokenizers`` pipeline, followed by GPT-2's byte alphabet if ``byte_level``."""
    cut = pre_tokenizers.Split(Regex(split), "isolated")
    if not byte_level:
        return cut
    return pre_tokenizers.Sequence([cut, pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])


def split_name_of(pre_tokenizer: dict[str, Any] | None) -> str | None:
    """Return the name of the split that a serialized pre-tokenizer uses, or None if it is not one of Kotha's."""
    text = json.dumps(pre_tokenizer)
    return next((name for name, split in SPLITS.items() if json.dumps(split) in text), None)


def without_specials(text: str) -> str:
    """Return a serialized unigram pipeline with unmatchable names for its special tokens; their ids are the same.

    In most files from elsewhere, the model itself would return the special token for a text that spells it.
    """
    state = json.loads(text)
    for added in state["added_tokens"]:
        if added["special"]:
            vocabulary, token = state["model"]["vocab"], added["id"]
            vocabulary[token : token + 1] = [
                [f"{_NO_TEXT}{token}", score] for _, score in vocabulary[token : token + 1]
            ]
    state["added_tokens"] = [added for added in state["added_tokens"] if not added["special"]]
    return json.dumps(state, ensure_ascii=False)


def marks_before(post_processor: dict[str, Any] | None) -> list[int] | None:
    """Return the special tokens that a serialized post-processor puts before a text; None if it specifies none."""
    template = next((step for step in _steps(post_processor) if step["type"] == _TEMPLATE), None)
    if template is None:
        return None
    before = itertools.takewhile(lambda part: "SpecialToken" in part, template["single"])
    known, names = template["special_tokens"], [part["SpecialToken"]["id"] for part in before]
    if unknown := [name for name in names if name not in known]:
        raise TokenizerError(
            "its post_processor puts {name!r} before the text but does not define this token", name=unknown[0]
        )
    return [token for name in names for token in known[name]["ids"]]


def without_marks(post_processor: dict[str, Any] | None) -> dict[str, Any] | None:
    """Return a serialized post-processor without the step that adds special tokens."""
    kept = [step for step in _steps(post_processor) if step["type"] != _TEMPLATE]
    if len(kept) < 2:
        return kept[0] if kept else None
    return {"type": "Sequence", "processors": kept}


def _steps(post_processor: dict[str, Any] | None) -> list[dict[str, Any]]:
    if post_processor is None:
        return []
    return post_processor["processors"] if post_processor["type"] == "Sequence" else [post_processor]


def refuse_fatal(text: str) -> None:
    """Raise a TokenizerError for content that would crash the process or exhaust memory."""
    try:
        state = json.loads(text)
    except RecursionError as error:
        raise TokenizerError("nested too deeply") from error
    except ValueError:
        return  # the library reports invalid JSON
    if isinstance(state, dict):
        with suppress(LookupError, TypeError, AttributeError):  # the library reports an invalid structure
            _refuse_short_merges(state["model"])
        for part in ("normalizer", "pre_tokenizer"):
            _refuse_doubling(part, state.get(part))


def _refuse_short_merges(model: dict[str, Any]) -> None:
    """Reject merges whose right side lacks the prefix, because `tokenizers` strips its length without checking."""
    prefix = model.get("continuing_subword_prefix") or ""
    rights = (merge.split(" ")[-1] if isinstance(merge, str) else merge[-1] for merge in model.get("merges", []))
    bad = next((right for right in rights if prefix and not right.startswith(prefix)), None)
    if bad is not None:
        raise TokenizerError(
            "a merge's right side {bad!r} does not start with {prefix!r}, the continuing_subword_prefix",
            bad=bad,
            prefix=prefix,
        )


def _refuse_doubling(part: str, state: object) -> None:
    """Reject many repetitions of a step that lengthens text: thirty can turn a character into gigabytes.

    >>> _refuse_doubling("pre_tokenizer", {"type": "Sequence", "pretokenizers": [{"type": "ByteLevel"}] * 9})
    Traceback (most recent call last):
    kotha.errors.TokenizerError: its pre_tokenizer has ByteLevel 9 times; each can make a text 2 times as long
    """
    for (name, longer), times in Counter(map(_growth, _flat(state))).items():
        if times > 1 and times * math.log2(longer) > _MOST_DOUBLINGS:
            raise TokenizerError(
                "its {part} has {name} {times} times; each can make a text {longer} times as long",
                part=part,
                name=name,
                times=times,
                longer=longer,
            )


def _flat(state: object) -> Iterator[dict[str, Any]]:
    """Yield the steps of a pipeline, including those in nested sequences."""
    pending = [state]
    while pending:
        step = pending.pop()
        if isinstance(step, dict):
            nested = [value for value in step.values() if isinstance(value, list)]
            pending += [each for values in nested for each in values]
            yield step


def _growth(step: dict[str, Any]) -> tuple[str, int]:
    """Return a name for a step, and the factor by which repeating it can lengthen a text."""
    kind, content, pattern = step.get("type"), step.get("content"), step.get("pattern")
    if kind == "ByteLevel":
        return "ByteLevel", 2
    if kind == "Replace" and isinstance(content, str) and isinstance(pattern, dict):
        plain = pattern.get("String")
        again = content.count(plain) if isinstance(plain, str) else len(content)  # a regex may match any letter
        return f"Replace {json.dumps(pattern, ensure_ascii=False)} by {content!r}", max(again, 1)
    return str(kind), 1
