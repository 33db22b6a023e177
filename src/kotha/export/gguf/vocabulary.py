"""Convert a tokenizer to llama.cpp's vocabulary, so that a text gives the same token ids.

llama.cpp selects tokenizers by name. A wrong name does not cause an error, but the text is tokenized differently, and
the model's output is wrong.

- **BPE** becomes ``gpt2`` with the pre-tokenizer ``qwen35`` (or ``gpt-2``), which must be the one used in training.
  In this case llama.cpp does not normalize text, so its callers must pass text in Kotha's canonical form.
- **Unigram** becomes ``t5``, which finds the segmentation with the best score (``llama`` would merge greedily). ``t5``
  uses a character map, so text does not have to be normalized first: the map of a SentencePiece model, or one made from
  Kotha's rules (``charsmap.py``). ``t5`` has no byte fallback, so the map converts characters outside the vocabulary to
  private-use characters. The token ids of these characters are the same as in Kotha, but the characters are missing
  from llama.cpp's output.

WordPiece and character tokenizers are not supported.
"""

import base64
import json
from dataclasses import dataclass, field
from typing import Any

from kotha.errors import TokenizerError
from kotha.export.gguf.charsmap import byte_piece, make_charsmap
from kotha.i18n.message import Message, Option, Text
from kotha.text.tokenizer import spiece
from kotha.text.tokenizer.prompt import start_of_document
from kotha.text.tokenizer.tokenizer import Tokenizer

# llama.cpp's names for Kotha's splits and GPT-2's pre-tokenizer.
_PRE_TOKENIZERS = {"qwen35": "qwen35", "gpt2": "gpt-2"}
_NEVER = -100_000.0  # score of special tokens, so that text is never encoded as one
# The token roles that have a key in GGUF.
_ROLES = {"bos": "bos", "eos": "eos", "end": "eot", "unk": "unknown", "pad": "padding", "mask": "mask"}


@dataclass
class Vocabulary:
    """A tokenizer in llama.cpp's form; ``fields`` contains the GGUF fields for which the gguf writer has a method."""

    fields: dict[str, Any]
    others: dict[str, int] = field(default_factory=dict)  # other fields: flags and ids of special tokens
    normalizes: bool = False
    """Whether llama.cpp normalizes text like the tokenizer; if not, its input must be normalized."""
    remarks: list[Text] = field(default_factory=list)  # differences from Kotha's tokenizer


def vocabulary_of(tokenizer: Tokenizer, vocab_size: int) -> Vocabulary:
    """Convert a tokenizer, padded to the model's ``vocab_size``; an unsupported tokenizer raises an error."""
    state: dict[str, Any] = json.loads(tokenizer.backend.to_str())
    if tokenizer.kind not in ("bpe", "unigram"):
        raise TokenizerError(
            "llama.cpp does not support {kind} tokenizers; train the model with a bpe or unigram tokenizer, "
            "or export to hf",
            kind=tokenizer.kind,
        )
    vocabulary = _bpe(tokenizer, state) if tokenizer.kind == "bpe" else _unigram(tokenizer, state)
    start = start_of_document(tokenizer)
    special = tokenizer.special if start is None else {**tokenizer.special, "bos": start}
    vocabulary.others |= {f"{_ROLES[role]}_token_id": token for role, token in special.items() if role in _ROLES}
    vocabulary.others |= {"add_bos_token": start is not None, "add_eos_token": False}
    # Every row in the embedding table needs a token, including gaps and rows beyond the tokenizer's vocabulary.
    for name, nothing in (("token_types", spiece.UNUSED), ("token_scores", _NEVER), ("token_list", "")):
        if name in vocabulary.fields:
            vocabulary.fields[name] += [nothing] * (vocab_size - len(vocabulary.fields[name]))
    pieces = enumerate(vocabulary.fields["token_list"])
    vocabulary.fields["token_list"] = [piece or f"<|unused-{token}|>" for token, piece in pieces]
    return vocabulary


def _bpe(tokenizer: Tokenizer, state: dict[str, Any]) -> Vocabulary:
    model, cut = state["model"], state["pre_tokenizer"]
    steps = cut["pretokenizers"] if cut and cut["type"] == "Sequence" else [cut]
    by_bytes = next((step for step in steps if step and step["type"] == "ByteLevel"), None)
    name = tokenizer.split_name or ("gpt2" if by_bytes and by_bytes["use_regex"] else None)
    if by_bytes is None or name not in _PRE_TOKENIZERS:
        raise TokenizerError(
            "llama.cpp does not support the pre-tokenizer {name!r}; train the tokenizer with {split}, or export to hf",
            name=name or "custom",
            split=Option("split", "qwen35"),
        )
    foreign_rules = state["normalizer"] is not None and tokenizer.normalizer is None
    if by_bytes["add_prefix_space"] or model["ignore_merges"] or foreign_rules:
        raise TokenizerError(
            "this BPE tokenizer has a prefix, merges or a normalization that llama.cpp does not support; export to hf"
        )
    merges = [merge if isinstance(merge, str) else " ".join(merge) for merge in model["merges"]]
    fields = {
        "tokenizer_model": "gpt2",
        "tokenizer_pre": _PRE_TOKENIZERS[name],
        "token_list": list(tokenizer.pieces),
        "token_types": _kinds(state, tokenizer),
        "token_merges": merges,
    }
    return Vocabulary(fields, normalizes=not _rules(tokenizer))


def _unigram(tokenizer: Tokenizer, state: dict[str, Any]) -> Vocabulary:
    """Convert a unigram vocabulary, with Kotha's rules and byte tokens or with a SentencePiece model's settings."""
    kinds = _kinds(state, tokenizer, with_bytes=True)
    scores = [float(score) for _, score in state["model"]["vocab"]]
    fields: dict[str, Any] = {
        "tokenizer_model": "t5",
        "tokenizer_pre": "default",
        "token_list": [piece.replace(" ", "\u2581") for piece in tokenizer.pieces],
        "token_types": kinds,
        "token_scores": scores + [_NEVER] * (tokenizer.vocab_size - len(scores)),  # added tokens have no score
    }
    if tokenizer.normalizer is None or not state["model"]["byte_fallback"]:
        return _sentencepiece(tokenizer, state, fields)
    normal = [piece for piece, kind in zip(tokenizer.pieces, kinds, strict=True) if kind == spiece.NORMAL]
    for token, kind in enumerate(kinds):
        if kind == spiece.BYTE:
            fields["token_list"][token] = byte_piece(int(tokenizer.pieces[token][3:5], 16))
            kinds[token] = spiece.UNUSED
    return Vocabulary(
        {**fields, "precompiled_charsmap": make_charsmap(tokenizer.normalize, normal)},
        others={"add_space_prefix": False, "remove_extra_whitespaces": False},
        normalizes=True,
        remarks=[
            Message("llama.cpp encodes characters outside the vocabulary byte by byte, but omits them from its output")
        ],
    )


def _sentencepiece(tokenizer: Tokenizer, state: dict[str, Any], fields: dict[str, Any]) -> Vocabulary:
    normalizer = state["normalizer"]
    steps = (normalizer or {}).get("normalizers", [normalizer] if normalizer else [])
    kinds = [step["type"] for step in steps]
    ours = tokenizer.normalizer is not None
    if not ours and not set(kinds) <= {"Replace", "Precompiled", "Prepend", "Strip"}:
        raise TokenizerError(
            "llama.cpp does not support this tokenizer's normalization ({names}); export to hf", names=kinds
        )
    for step in steps:
        if "Precompiled" in step["type"]:
            fields.setdefault("precompiled_charsmap", base64.b64decode(step["precompiled_charsmap"]))
    flags: dict[str, int] = {
        "add_space_prefix": "Prepend" in kinds or '"prepend_scheme": "always"' in json.dumps(state),
        "remove_extra_whitespaces": any(step.get("pattern") == {"Regex": " {2,}"} for step in steps),
    }
    return Vocabulary(fields, flags, normalizes=not ours or not _rules(tokenizer))


def _kinds(state: dict[str, Any], tokenizer: Tokenizer, with_bytes: bool = False) -> list[int]:
    """Return the type of each token as SentencePiece's number, which GGUF uses too."""
    special = {"": spiece.UNUSED}
    if with_bytes:
        special |= {f"<0x{byte:02X}>": spiece.BYTE for byte in range(256)}
    kinds = [special.get(piece, spiece.NORMAL) for piece in tokenizer.pieces]
    for added in state["added_tokens"]:
        kinds[added["id"]] = spiece.CONTROL if added["special"] else spiece.USER_DEFINED
    if "unk" in tokenizer.special:
        kinds[tokenizer.special["unk"]] = spiece.UNKNOWN
    return kinds


def _rules(tokenizer: Tokenizer) -> tuple[str, ...]:
    return () if tokenizer.normalizer is None else tokenizer.normalizer.rules
