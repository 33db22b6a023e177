"""The Tokenizer converts text to token ids and back, for every kind of vocabulary.

The Tokenizer wraps a ``tokenizers`` pipeline, saved as a standard ``tokenizer.json`` that any Hugging Face tool can
read. It adds Kotha's normalization (the same rules, but faster), decoding by bytes, streaming that never splits an
akshara, special tokens by role, and a fingerprint, which shards and models store to detect a different vocabulary.

Input is always plain text: a special token that is spelled out in a document is encoded as ordinary characters, never
as the special token.
"""

import hashlib
import json
import reprlib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import tokenizers

from kotha.arguments import checked
from kotha.errors import TokenizerError, UsageError, reason
from kotha.i18n.message import Message, Option
from kotha.storage.atomic import atomic_write
from kotha.storage.output_paths import check_file_place
from kotha.storage.status import exists, is_directory, is_file, reading
from kotha.text.normalize import Normalizer
from kotha.text.tokenizer import decoding
from kotha.text.tokenizer.pipeline import (
    marks_before,
    refuse_fatal,
    rules_of,
    split_name_of,
    without_marks,
    without_specials,
)
from kotha.text.tokenizer.special import find_roles

FILE_NAME = "tokenizer.json"
# A tokenizer file is a few megabytes; a far larger file is not a tokenizer.
MAX_FILE_BYTES = 256 * 1024 * 1024
# Tables have a row for each id, so the largest id is limited.
_MAX_VOCABULARY = 1 << 24


class Tokenizer:
    """Converts text to token ids and back.

    >>> from kotha.text.tokenizer.trainers import train
    >>> tokenizer = train(["আমার সোনার বাংলা"], "char", level="akshara")
    >>> tokenizer.decode(tokenizer.encode("সোনার"))
    'সোনার'
    """

    def __init__(self, backend: tokenizers.Tokenizer) -> None:
        # Padding and truncation do not belong to a vocabulary.
        backend.no_padding()
        backend.no_truncation()
        vocabulary = backend.get_vocab()
        self.vocab_size: int = max(vocabulary.values(), default=-1) + 1
        if self.vocab_size > _MAX_VOCABULARY:  # checked before to_str below, which visits every id
            raise TokenizerError(
                "the highest token id is {last:,}; the limit is {most:,}",
                last=self.vocab_size - 1,
                most=_MAX_VOCABULARY - 1,
            )
        text = backend.to_str()
        # Scores have six decimal places, because `tokenizers` may not restore longer decimals exactly.
        self._state: dict[str, Any] = json.loads(text, parse_float=lambda text: round(float(text), 6))
        rules = rules_of(self._state["normalizer"])
        self.normalizer = Normalizer(rules) if rules is not None else None
        self._backend = backend
        # The pipeline for encoding, without its normalizer if Kotha's replaces it.
        foreign = rules is None and self._state["model"]["type"] == "Unigram"
        self._encoder = tokenizers.Tokenizer.from_str(without_specials(text)) if foreign else backend
        if rules is not None:
            self._encoder = tokenizers.Tokenizer.from_str(text)
            self._encoder.normalizer = None
        self._encoder.encode_special_tokens = True
        self.special: dict[str, int] = {role: vocabulary[text] for role, text in find_roles(vocabulary).items()}
        # The model's own unknown token, whatever its text; byte-level models have none.
        model = self._state["model"]
        unknown = model["unk_id"] if "unk_id" in model else vocabulary.get(model["unk_token"])
        if unknown is not None:
            self.special["unk"] = unknown
        self._spell = decoding.spelling(self._state["decoder"])

    def __repr__(self) -> str:
        return f"Tokenizer({self.kind}, {self.vocab_size:,} pieces)"

    def __len__(self) -> int:
        return self.vocab_size

    # -- text to ids ------------------------------------------------------------------------------------------------

    def normalize(self, text: str) -> str:
        """Return the normalized text, which is what encoding uses and decoding returns."""
        if self.normalizer is not None:
            return self.normalizer(text)
        with library_errors(Message("this tokenizer cannot normalize the text")):
            normalized = str(self._backend.normalizer.normalize_str(text))
        return normalized.removeprefix(" ") if self._strip_space else normalized

    @checked()
    def encode(self, text: str) -> list[int]:
        """Return the token ids of a text, without added special tokens."""
        return self._as_text(self._encoding(text).ids)

    @checked()
    def encode_batch(self, texts: Sequence[str], normalized: bool = False) -> list[list[int]]:
        """Return the token ids of many texts, using all cores; ``normalized`` skips normalization."""
        if self.normalizer and not normalized:
            texts = [self.normalizer(text) for text in texts]
        with library_errors(Message("this tokenizer cannot encode the texts")):
            encodings = self._encoder.encode_batch_fast(texts, add_special_tokens=False)
        return [self._as_text(encoding.ids) for encoding in encodings]

    def spans(self, text: str) -> list[tuple[int, int, int]]:
        """Return each token of a text with its position: (id, start, end) in code points of the normalized text.

        For an imported tokenizer with its own normalization, positions refer to the original text.
        """
        encoding = self._encoding(text)
        ids = self._as_text(encoding.ids)
        return [(token, start, end) for token, (start, end) in zip(ids, encoding.offsets, strict=True)]

    def spells_special(self, text: str) -> bool:
        """Return whether a text spells a special token that other tools would encode as such, but Kotha as text."""
        prepared = self.normalize(text) if self.kind == "unigram" and self.normalizer is None else ""
        return any(self.pieces[token] in prepared for token in self._special_ids)

    def _encoding(self, text: str) -> tokenizers.Encoding:
        prepared = self.normalizer(text) if self.normalizer else text
        problem = Message("this tokenizer cannot encode the text")
        if self.kind == "char" and "unk" not in self.special:
            problem = Message(
                "the text has a character that this vocabulary lacks, and there is no unknown token for it"
            )
        with library_errors(problem):
            return self._encoder.encode(prepared, add_special_tokens=False)

    def _as_text(self, ids: list[int]) -> list[int]:
        # With some imported vocabularies, the text can spell a control piece; the unknown token is used instead.
        if self._special_ids.isdisjoint(ids):
            return ids
        unknown = self.special.get("unk")
        if unknown is None:
            raise TokenizerError(
                "the text contains the spelling of a special token, and this vocabulary has no unknown token "
                "to replace it"
            )
        return [unknown if token in self._special_ids else token for token in ids]

    # -- ids to text ------------------------------------------------------------------------------------------------

    def decode(self, tokens: Iterable[int], skip_special: bool = True) -> str:
        """Decode token ids to text; bytes that are not valid UTF-8 become U+FFFD."""
        try:
            text = b"".join(self.token_bytes(token, skip_special) for token in tokens).decode("utf-8", "replace")
        except TypeError as error:  # checking beforehand would take as long as decoding
            raise UsageError(
                "tokens={tokens} cannot be decoded; pass a list of token ids", tokens=reprlib.repr(tokens)
            ) from error
        return text.removeprefix(" ") if self._strip_space else text

    def stream(self) -> decoding.StreamDecoder:
        """Return a decoder that takes one token at a time and returns complete aksharas."""
        return decoding.StreamDecoder(partial(self.token_bytes, skip_special=True), self._strip_space)

    def characters(self) -> decoding.CharacterDecoder:
        """Return a decoder that takes one token at a time and returns complete characters."""
        return decoding.CharacterDecoder(partial(self.token_bytes, skip_special=True), self._strip_space)

    def token_bytes(self, token: int, skip_special: bool = False) -> bytes:
        """Return the bytes of a token."""
        if not 0 <= token < len(self._piece_bytes):
            raise TokenizerError(
                "token id {token} is outside this vocabulary of {n:,}", token=token, n=len(self._piece_bytes)
            )
        if skip_special and token in self._special_ids:
            return b""
        return self._piece_bytes[token]

    # -- the vocabulary ---------------------------------------------------------------------------------------------

    @property
    def kind(self) -> str:
        """The kind of the vocabulary: ``bpe``, ``unigram``, ``wordpiece`` or ``char``."""
        model = self._state["model"]["type"]
        if model == "Unigram" and self._state["pre_tokenizer"] is None and not self._state["model"]["byte_fallback"]:
            return "char"  # akshara level: a unigram model whose pieces are single aksharas
        return {"BPE": "bpe", "Unigram": "unigram", "WordPiece": "wordpiece", "WordLevel": "char"}[model]

    @property
    def split_name(self) -> str | None:
        """The name of the split pattern, if it is one of Kotha's."""
        return split_name_of(self._state["pre_tokenizer"])

    @property
    def backend(self) -> tokenizers.Tokenizer:
        """The ``tokenizers`` pipeline, as it is saved."""
        return self._backend

    @property
    def marks_before(self) -> list[int] | None:
        """The special tokens that the file puts before text in other tools; None if it specifies nothing."""
        return marks_before(self._state["post_processor"])

    @cached_property
    def pieces(self) -> list[str]:
        """The vocabulary by id, as written in the file; unused ids are empty strings."""
        pieces = [""] * self.vocab_size
        for piece, token in self._backend.get_vocab().items():
            pieces[token] = piece
        return pieces

    @cached_property
    def fingerprint(self) -> str:
        """A hash of the pipeline, equal if the ids are equal; it excludes special tokens added by other tools."""
        state = {**self._state, "post_processor": without_marks(self._state["post_processor"])}
        canonical = json.dumps(state, sort_keys=True, ensure_ascii=False, separators=(",", ":"))
        return hashlib.sha256(canonical.encode()).hexdigest()[:32]

    @cached_property
    def _piece_bytes(self) -> list[bytes]:
        gap = self._spell("")  # computed once, because there may be millions of gaps
        return [self._spell(piece) if piece else gap for piece in self.pieces]

    @cached_property
    def _special_ids(self) -> frozenset[int]:
        return frozenset(added["id"] for added in self._state["added_tokens"] if added["special"])

    @property
    def _strip_space(self) -> bool:
        return decoding.starts_with_space(self._state["decoder"])

    # -- files ------------------------------------------------------------------------------------------------------

    def save(self, path: str | Path) -> Path:
        """Write ``tokenizer.json`` atomically, into a folder or to a path ending in .json."""
        target = _file_at(path)
        if target == Path(path) and is_file(target):
            try:
                type(self).load(target)
            except TokenizerError as error:
                raise TokenizerError(
                    "{target} exists and is not a tokenizer; choose another name", target=target
                ) from error
        atomic_write(target, self._backend.to_str(pretty=True))
        return target

    @classmethod
    def load(cls, path: str | Path) -> "Tokenizer":
        """Read a ``tokenizer.json``, given its path or the folder that contains it."""
        source = Path(path)
        if is_directory(source):
            source = source / FILE_NAME
        if not is_file(source):
            raise TokenizerError(
                "no tokenizer at {source}; train one with `kotha tokenizer train`, or convert one with "
                "`kotha tokenizer import`",
                source=source,
            )
        check_size(source)
        with (
            library_errors(Message("{source} is not a valid tokenizer.json", source=source)),
            reading(source),
        ):
            text = source.read_text(encoding="utf-8")
            refuse_fatal(text)
            return cls(tokenizers.Tokenizer.from_str(text))


def check_size(path: Path) -> None:
    """Raise a TokenizerError for a file far larger than any tokenizer."""
    if path.stat().st_size > MAX_FILE_BYTES:
        raise TokenizerError(
            "{path} is {n:,} bytes, which is too large for a tokenizer file", path=path, n=path.stat().st_size
        )


@contextmanager
def library_errors(problem: Message) -> Iterator[None]:
    """Raise a TokenizerError if ``tokenizers`` raises a bare Exception or panics.

    A Rust panic is raised as pyo3's PanicException, which cannot be imported and derives from BaseException.
    """
    try:
        yield
    except TypeError as error:  # the library's error for a str without a UTF-8 encoding
        raise TokenizerError("the text is not valid Unicode: it contains a lone surrogate") from error
    except BaseException as error:
        known = isinstance(error, TokenizerError | UnicodeDecodeError)
        if known or type(error) is Exception or type(error).__name__ == "PanicException":
            raise TokenizerError("{problem}: {error}", problem=problem, error=reason(error)) from error
        raise


def check_free(path: str | Path, overwrite: bool = False) -> None:
    """Raise an error before training if a tokenizer exists at a path or cannot be written there."""
    if exists(check_file_place(_file_at(path))) and not overwrite:
        raise TokenizerError(
            "{path} already exists; choose another folder, or replace it with {overwrite}",
            path=_file_at(path),
            overwrite=Option("overwrite", True),
        )


def _file_at(path: str | Path) -> Path:
    return Path(path) if Path(path).suffix == ".json" else Path(path) / FILE_NAME
