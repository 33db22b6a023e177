"""The one Tokenizer: text to ids and back, whatever stands behind it.

Behind it is a ``tokenizers`` pipeline, saved as a plain ``tokenizer.json`` that any Hugging Face tool opens. In front: our
normalization (the same rules, faster), decoding by bytes, a stream that never shows half a letter, special tokens
by role, and a fingerprint that shards and models carry so that they never meet the wrong vocabulary.

Text is always text: a special token spelled out in a document is encoded letter by letter, never as the token itself.
"""

import hashlib
import json
import os
from collections.abc import Iterable, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import tokenizers

from kotha.errors import TokenizerError
from kotha.text import decoding
from kotha.text.normalize import Normalizer
from kotha.text.pipeline import rules_of, split_name_of
from kotha.text.special import find_roles

FILE_NAME = "tokenizer.json"
# A tokenizer file is a few megabytes; what is far larger is not one.
_MAX_FILE_BYTES = 256 * 1024 * 1024

Stream = decoding.StreamDecoder | decoding.BufferedDecoder


class Tokenizer:
    """Text to token ids and back.

    >>> from kotha.text.trainers import train
    >>> tokenizer = train(["আমার সোনার বাংলা"], "char", level="akshara")
    >>> tokenizer.decode(tokenizer.encode("সোনার"))
    'সোনার'
    """

    def __init__(self, backend: tokenizers.Tokenizer) -> None:
        self._state: dict[str, Any] = json.loads(backend.to_str())
        rules = rules_of(self._state["normalizer"])
        self.normalizer = Normalizer(rules) if rules is not None else None
        self._backend = backend
        # The pipeline that encodes: without the normalizer where ours does that work.
        self._encoder = backend if rules is None else tokenizers.Tokenizer.from_str(backend.to_str())
        if rules is not None:
            self._encoder.normalizer = None
        self._encoder.encode_special_tokens = True
        self._encoder.no_padding()
        self._encoder.no_truncation()
        self.vocab_size: int = backend.get_vocab_size()
        self.special: dict[str, int] = {
            role: self._id(text) for role, text in find_roles(backend.get_vocab()).items()
        }

    # -- text to ids ------------------------------------------------------------------------------------------------

    def normalize(self, text: str) -> str:
        """What encoding first makes of a text, and what decoding gives back."""
        if self.normalizer is not None:
            return self.normalizer(text)
        normalized: str = self._backend.normalizer.normalize_str(text)
        return normalized

    def encode(self, text: str) -> list[int]:
        """Token ids of a text, with no special tokens added."""
        prepared = self.normalizer(text) if self.normalizer else text
        return self._as_text(self._encoder.encode(prepared, add_special_tokens=False).ids)

    def encode_batch(self, texts: Sequence[str]) -> list[list[int]]:
        """Token ids of many texts, spread over the machine's cores."""
        if self.normalizer:
            texts = [self.normalizer(text) for text in texts]
        encodings = self._encoder.encode_batch_fast(texts, add_special_tokens=False)
        return [self._as_text(encoding.ids) for encoding in encodings]

    def spans(self, text: str) -> list[tuple[int, int, int]]:
        """Each token of a text with where it stands: (id, start, end) in code points of the normalized text."""
        prepared = self.normalizer(text) if self.normalizer else text
        encoding = self._encoder.encode(prepared, add_special_tokens=False)
        return [(token, start, end) for token, (start, end) in zip(encoding.ids, encoding.offsets, strict=True)]

    def _as_text(self, ids: list[int]) -> list[int]:
        # A foreign unigram can find a control piece that a text spells out, where it lacks the letters: unknown, then.
        if self.normalizer is None and self.kind == "unigram" and not self._special_ids.isdisjoint(ids):
            return [self.special["unk"] if token in self._special_ids else token for token in ids]
        return ids

    # -- ids to text ------------------------------------------------------------------------------------------------

    def decode(self, tokens: Iterable[int], skip_special: bool = True) -> str:
        """The text of token ids; bytes that form no character come out as U+FFFD."""
        if self._piece_bytes is None:
            return str(self._backend.decode(list(tokens), skip_special_tokens=skip_special))
        text = b"".join(self.token_bytes(token, skip_special) for token in tokens).decode("utf-8", "replace")
        return text.removeprefix(" ") if self._strip_space else text

    def stream(self, skip_special: bool = True) -> Stream:
        """A decoder that takes one token at a time and gives out whole letters."""
        if self._piece_bytes is None:
            return decoding.BufferedDecoder(lambda tokens: self.decode(tokens, skip_special))
        return decoding.StreamDecoder(lambda token: self.token_bytes(token, skip_special), self._strip_space)

    def token_bytes(self, token: int, skip_special: bool = False) -> bytes:
        """The bytes that a token stands for."""
        assert self._piece_bytes is not None, "asked for bytes of a tokenizer that does not decode by concatenation"
        if not 0 <= token < len(self._piece_bytes):
            raise TokenizerError(f"token id {token} is outside this vocabulary of {len(self._piece_bytes):,}")
        if skip_special and token in self._special_ids:
            return b""
        return self._piece_bytes[token]

    # -- the vocabulary ---------------------------------------------------------------------------------------------

    @property
    def kind(self) -> str:
        """``bpe``, ``unigram``, ``wordpiece`` or ``char``."""
        model = self._state["model"]["type"]
        if model == "Unigram" and self._state["pre_tokenizer"] is None and not self._state["model"]["byte_fallback"]:
            return "char"  # aksharas: a unigram whose pieces are single letters
        return {"BPE": "bpe", "Unigram": "unigram", "WordPiece": "wordpiece", "WordLevel": "char"}[model]

    @property
    def split_name(self) -> str | None:
        """The name of the split before the vocabulary, where it is one of ours."""
        return split_name_of(self._state["pre_tokenizer"])

    @property
    def backend(self) -> tokenizers.Tokenizer:
        """The ``tokenizers`` pipeline, as it is saved."""
        return self._backend

    @cached_property
    def pieces(self) -> list[str]:
        """The vocabulary as it is written in the file, by id; a gap in the ids is an empty piece."""
        vocabulary = self._backend.get_vocab()
        pieces = [""] * (max(vocabulary.values(), default=-1) + 1)
        for piece, token in vocabulary.items():
            pieces[token] = piece
        return pieces

    @cached_property
    def fingerprint(self) -> str:
        """The same for the same behaviour: a hash over the whole pipeline."""
        canonical = json.dumps(self._state, sort_keys=True, ensure_ascii=False, separators=(",", ":"))
        return hashlib.sha256(canonical.encode("utf-8", "surrogatepass")).hexdigest()[:32]

    @cached_property
    def _piece_bytes(self) -> list[bytes] | None:
        return decoding.piece_bytes(self._decoder, self.pieces)

    @cached_property
    def _special_ids(self) -> frozenset[int]:
        return frozenset(added["id"] for added in self._state["added_tokens"] if added["special"])

    @property
    def _decoder(self) -> dict[str, Any]:
        # Without a decoder, tokenizers joins pieces by spaces; that is WordPiece's way with no prefix to take off.
        decoder: dict[str, Any] | None = self._state["decoder"]
        return decoder or {"type": "none"}

    @property
    def _strip_space(self) -> bool:
        return decoding.starts_with_space(self._decoder)

    def _id(self, text: str) -> int:
        token = self._backend.token_to_id(text)
        assert token is not None, f"{text!r} was found in the vocabulary and has no id"
        return int(token)

    # -- files ------------------------------------------------------------------------------------------------------

    def save(self, path: str | Path) -> Path:
        """Write ``tokenizer.json`` (into a folder, or to a path ending in .json), whole or not at all."""
        target = Path(path)
        if target.suffix != ".json":
            target = target / FILE_NAME
        target.parent.mkdir(parents=True, exist_ok=True)
        partial = target.with_name(f".{target.name}.{os.getpid()}.partial")
        try:
            with partial.open("w", encoding="utf-8") as file:
                file.write(self._backend.to_str(pretty=True))
                file.flush()
                os.fsync(file.fileno())
            partial.replace(target)
        finally:
            partial.unlink(missing_ok=True)
        return target

    @classmethod
    def load(cls, path: str | Path) -> "Tokenizer":
        """Read a ``tokenizer.json``, given as the file or as the folder that holds it."""
        source = Path(path)
        if source.is_dir():
            source = source / FILE_NAME
        if not source.is_file():
            raise TokenizerError(f"no tokenizer at {source}; `kotha tokenizer train` makes one, `import` converts one")
        if source.stat().st_size > _MAX_FILE_BYTES:
            raise TokenizerError(f"{source} has {source.stat().st_size:,} bytes, far more than any tokenizer")
        try:
            return cls(tokenizers.Tokenizer.from_str(source.read_text(encoding="utf-8")))
        except UnicodeDecodeError as error:
            raise TokenizerError(f"{source} is not text: bad UTF-8 at byte {error.start}") from error
        except TokenizerError:
            raise
        except Exception as error:  # `tokenizers` raises bare Exception for everything
            raise TokenizerError(f"{source} is not a tokenizer.json that can be read: {error}") from error
