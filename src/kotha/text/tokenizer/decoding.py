"""Decode token ids to text, all at once or as a stream.

Every tokenizer decodes by concatenation: a token has fixed bytes, and the text is the UTF-8 decoding of all bytes. A
decoder that depends on neighbouring tokens is rejected. A stream returns only complete aksharas: bytes are buffered
until they form a character, and an akshara is held back until the next one starts, because a vowel sign may still
follow.
"""

import codecs
import re
from collections.abc import Callable
from typing import Any

from kotha.errors import TokenizerError
from kotha.i18n.message import Message
from kotha.text.akshara import is_dependent, units

_BYTE_PIECE = re.compile(r"<0x([0-9A-Fa-f]{2})>")

# SentencePiece's symbol for a space, and two of its decoding steps as serialized by `tokenizers`.
_SPACE = "\u2581"
_TO_SPACE = {"type": "Replace", "pattern": {"String": _SPACE}, "content": " "}
_STRIP_ONE = {"type": "Strip", "content": " ", "start": 1, "stop": 0}


def byte_alphabet() -> dict[int, str]:
    """Return the visible character of each byte in byte-level BPE: itself if printable, otherwise one above U+00FF.

    >>> byte_alphabet()[ord("a")], byte_alphabet()[ord(" ")]
    ('a', 'Ġ')
    """
    printable = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = (byte for byte in range(256) if byte not in printable)
    alphabet = {byte: chr(byte) for byte in printable}
    return alphabet | {byte: chr(0x100 + index) for index, byte in enumerate(others)}


def byte_level(text: str) -> str:
    """Convert text to the byte alphabet of byte-level vocabularies.

    >>> byte_level(" ক")
    'Ġà¦ķ'
    """
    return "".join(_ALPHABET[byte] for byte in text.encode())


_ALPHABET = byte_alphabet()
_BYTES = {character: byte for byte, character in _ALPHABET.items()}


def spelling(state: dict[str, Any] | None) -> Callable[[str], bytes]:
    """Return the function that maps pieces to bytes for a serialized decoder.

    Raises a TokenizerError if the decoder does not concatenate; WordPiece's ``cleanup`` of English spacing is ignored.
    """
    steps = _steps(state)
    kinds = [step["type"] for step in steps]
    if kinds == ["ByteLevel"]:
        return _from_byte_level
    if kinds == ["WordPiece"]:
        prefix = steps[0]["prefix"]
        return lambda piece: (piece[len(prefix) :] if piece.startswith(prefix) else " " + piece).encode()
    if kinds == ["Metaspace"]:
        mark = steps[0]["replacement"]
        return lambda piece: piece.replace(mark, " ").encode()
    if state is not None and _is_sentencepiece(steps):
        mark = _SPACE if _TO_SPACE in steps else " "
        spell = _from_byte_fallback if {"type": "ByteFallback"} in steps else str.encode
        return lambda piece: spell(piece.replace(mark, " "))
    raise TokenizerError(
        "its decoder {kinds} does not decode each token independently; only ByteLevel, WordPiece, Metaspace and the "
        "steps of SentencePiece are supported",
        kinds=kinds or Message("none"),
    )


def starts_with_space(state: dict[str, Any] | None) -> bool:
    """Return whether a serialized decoder removes a leading space from the text."""
    last = [{"type": None}, *_steps(state)][-1]
    return last["type"] in ("WordPiece", "Strip") or last.get("prepend_scheme", "never") != "never"


class CharacterDecoder:
    """Decodes token by token into complete characters; later signs may still extend an akshara."""

    def __init__(self, bytes_of: Callable[[int], bytes], strip_space: bool) -> None:
        self._bytes_of = bytes_of
        self._strip_space = strip_space
        self._utf8 = codecs.getincrementaldecoder("utf-8")("replace")

    def push(self, token: int) -> str:
        """Add a token; return the characters that it completes."""
        return self._stripped(self._utf8.decode(self._bytes_of(token)))

    def finish(self) -> str:
        """Return the remaining text; incomplete characters become U+FFFD."""
        return self._stripped(self._utf8.decode(b"", final=True))

    def _stripped(self, text: str) -> str:
        if self._strip_space and text:
            self._strip_space = False
            return text.removeprefix(" ")
        return text


class StreamDecoder(CharacterDecoder):
    """Decodes token by token into complete aksharas; concatenated, they equal the text decoded all at once."""

    _pending = ""

    def push(self, token: int) -> str:
        """Add a token; return the aksharas that are now complete, often none."""
        more = super().push(token)
        self._pending += more
        if is_dependent(more):
            return ""  # the akshara continues; splitting the buffer at each sign would be quadratic
        *letters, self._pending = units(self._pending) or [""]
        return "".join(letters)

    def finish(self) -> str:
        """Return the remaining text; incomplete characters become U+FFFD."""
        rest, self._pending = self._pending + super().finish(), ""
        return rest


def _steps(state: dict[str, Any] | None) -> list[dict[str, Any]]:
    return [] if state is None else list(state["decoders"]) if state["type"] == "Sequence" else [state]


def _is_sentencepiece(steps: list[dict[str, Any]]) -> bool:
    """Return whether the steps are a subset of SentencePiece's, in order: spaces, bytes, fuse, strip leading space."""
    known = [_TO_SPACE, {"type": "ByteFallback"}, {"type": "Fuse"}, _STRIP_ONE]
    if _STRIP_ONE in steps and {"type": "Fuse"} not in steps:
        return False  # without Fuse, Strip applies to each piece
    return steps == [step for step in known if step in steps]


def _from_byte_level(piece: str) -> bytes:
    if all(character in _BYTES for character in piece):
        return bytes(_BYTES[character] for character in piece)
    return piece.encode()  # an added token is stored as plain text


def _from_byte_fallback(piece: str) -> bytes:
    match = _BYTE_PIECE.fullmatch(piece)
    return bytes([int(match[1], 16)]) if match else piece.encode()
