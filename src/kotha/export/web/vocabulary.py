"""Convert a tokenizer for the web page to tables and the names of the steps that use them.

The page implements the tokenizers that Kotha trains: unigram, byte-level BPE, and characters or grapheme clusters.
Other tokenizers are rejected with an error. Patterns are written so that JavaScript interprets them in the same way as
``regex``.
"""

import json
from typing import Any

from kotha.errors import ConfigError
from kotha.i18n.message import Message, Text
from kotha.text.normalize import NFC, ROUNDS, RULES
from kotha.text.tokenizer.pipeline import CHARACTERS, SPLITS, splitter_of
from kotha.text.tokenizer.prompt import start_of_document
from kotha.text.tokenizer.tokenizer import Tokenizer

_KINDS = {"Unigram": "unigram", "BPE": "bpe", "WordLevel": "words"}
_SPELLINGS = {
    ("ByteLevel",): "byte-level",
    ("ByteFallback", "Fuse"): "byte-fallback",
    ("Fuse",): "text",
}


def describe_vocabulary(tokenizer: Tokenizer) -> dict[str, Any]:
    """Return the description of a tokenizer for the page, JSON-serializable; raise an error if it is unsupported."""
    state = json.loads(tokenizer.backend.to_str())
    model, kind = state["model"], _KINDS.get(state["model"]["type"])
    if kind is None or tokenizer.normalizer is None:
        foreign = Message("a normalization other than Kotha's")
        what = Message("a {kind} vocabulary", kind=tokenizer.kind) if kind is None else foreign
        raise _refusal(what)
    rules = [
        (pattern.replace("\\z", "$"), replacement)
        for rule in RULES
        if rule.name in tokenizer.normalizer.rules
        for pattern, replacement in rule.pairs
    ]
    return {
        "kind": kind,
        "nfc": NFC in tokenizer.normalizer.rules,
        "rules": rules,
        "rounds": ROUNDS,
        "split": _split(state["pre_tokenizer"], kind),
        "spelling": _spelling(state["decoder"]),
        "pieces": tokenizer.pieces,
        "scores": [score for _, score in model["vocab"]] if kind == "unigram" else [],
        "merges": [pair.split(" ") if isinstance(pair, str) else pair for pair in model.get("merges", [])],
        "added": [(added["content"], added["id"]) for added in state["added_tokens"] if not added["special"]],
        "unknown": tokenizer.special.get("unk"),
        "special": [added["id"] for added in state["added_tokens"] if added["special"]],
        "start": start_of_document(tokenizer),
        "ends": sorted({tokenizer.special[role] for role in ("eos", "end") if role in tokenizer.special}),
    }


def _split(pre_tokenizer: dict[str, Any] | None, kind: str) -> str | None:
    """Return the name of the pre-tokenizer, which must be one of Kotha's."""
    if pre_tokenizer is None:
        return None
    for name, pattern in {"characters": CHARACTERS, **SPLITS}.items():
        if pre_tokenizer == json.loads(splitter_of(pattern, byte_level=kind == "bpe").__getstate__()):
            return name
    raise _refusal(Message("a pre-tokenizer other than Kotha's"))


def _spelling(decoder: dict[str, Any] | None) -> str:
    steps = [] if decoder is None else decoder["decoders"] if decoder["type"] == "Sequence" else [decoder]
    found = _SPELLINGS.get(tuple(step["type"] for step in steps))
    if found is None:
        raise _refusal(Message("a decoder other than Kotha's"))
    return found


def _refusal(what: Text) -> ConfigError:
    return ConfigError(
        "cannot export to a web page: the tokenizer has {what}; the page supports Kotha's "
        "unigram, bpe and char tokenizers",
        what=what,
    )
