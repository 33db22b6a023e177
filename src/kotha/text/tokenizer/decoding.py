"""From token ids back to text, whole or as a stream.

Every tokenizer here decodes by concatenation: a token has fixed bytes, and the text is what those bytes say; one whose
decoder looks at its neighbours is refused. That makes a stream possible that never shows half a letter: bytes wait
until they form a character, and the last letter waits until the next one begins, because a vowel sign may still follow.
"""

import codecs
import re
from collections.abc import Callable
from typing import Any

from kotha.errors import TokenizerError
from kotha.i18n.message import Message
from kotha.text.akshara import is_dependent, units

_BYTE_PIECE = re.compile(r"<0x([0-9A-Fa-f]{2})>")

# How SentencePiece writes a space, and two steps of its decoding as `tokenizers` serializes them.
_SPACE = "\u2581"
_TO_SPACE = {"type": "Replace", "pattern": {"String": _SPACE}, "content": " "}
_STRIP_ONE = {"type": "Strip", "content": " ", "start": 1, "stop": 0}


def byte_alphabet() -> dict[int, str]:
    """The visible character that byte-level BPE writes for each byte: itself where printable, else one above U+0100.

    >>> byte_alphabet()[ord("a")], byte_alphabet()[ord(" ")]
    ('a', 'Ġ')
    """
    printable = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = (byte for byte in range(256) if byte not in printable)
    alphabet = {byte: chr(byte) for byte in printable}
    return alphabet | {byte: chr(0x100 + index) for index, byte in enumerate(others)}


def byte_level(text: str) -> str:
    """Text in the byte alphabet, as byte-level vocabularies write it.

    >>> byte_level(" ক")
    'Ġà¦ķ'
    """
    return "".join(_ALPHABET[byte] for byte in text.encode())


_ALPHABET = byte_alphabet()
_BYTES = {character: byte for byte, character in _ALPHABET.items()}


def spelling(state: dict[str, Any] | None) -> Callable[[str], bytes]:
    """From a piece to its bytes under a serialized decoder; a TokenizerError for one that does not concatenate.

    One liberty is taken: WordPiece's ``cleanup`` of English spacing looks back, and is not done.
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
        "its decoder {kinds} does not decode each token on its own; only ByteLevel, WordPiece, Metaspace and "
        "SentencePiece's steps are supported",
        kinds=kinds or Message("none"),
    )


def starts_with_space(state: dict[str, Any] | None) -> bool:
    """Whether a serialized decoder takes off the one space that its pieces put before the first word."""
    last = [{"type": None}, *_steps(state)][-1]
    return last["type"] in ("WordPiece", "Strip") or last.get("prepend_scheme", "never") != "never"


class CharacterDecoder:
    """Decodes token by token and gives out whole characters; a letter may still grow by the signs that follow."""

    def __init__(self, bytes_of: Callable[[int], bytes], strip_space: bool) -> None:
        self._bytes_of = bytes_of
        self._strip_space = strip_space
        self._utf8 = codecs.getincrementaldecoder("utf-8")("replace")

    def push(self, token: int) -> str:
        """Take one more token; return the characters that it completes."""
        return self._stripped(self._utf8.decode(self._bytes_of(token)))

    def finish(self) -> str:
        """Return what was still waiting: bytes that never became a character come out as U+FFFD."""
        return self._stripped(self._utf8.decode(b"", final=True))

    def _stripped(self, text: str) -> str:
        if self._strip_space and text:
            self._strip_space = False
            return text.removeprefix(" ")
        return text


class StreamDecoder(CharacterDecoder):
    """Decodes token by token and gives out whole letters only.

    What it gives out, joined, is what decoding all at once gives.
    """

    _pending = ""

    def push(self, token: int) -> str:
        """Take one more token; return the letters that are now certain, often none."""
        more = super().push(token)
        self._pending += more
        if is_dependent(more):
            return ""  # the letter goes on; looking at all of it for each sign would take ever longer
        *letters, self._pending = units(self._pending) or [""]
        return "".join(letters)

    def finish(self) -> str:
        """Return what was still waiting; bytes that never became a character come out as U+FFFD."""
        rest, self._pending = self._pending + super().finish(), ""
        return rest


def _steps(state: dict[str, Any] | None) -> list[dict[str, Any]]:
    return [] if state is None else list(state["decoders"]) if state["type"] == "Sequence" else [state]


def _is_sentencepiece(steps: list[dict[str, Any]]) -> bool:
    """Whether the steps are some of SentencePiece's, in its order: spaces, bytes, one string, no leading space."""
    known = [_TO_SPACE, {"type": "ByteFallback"}, {"type": "Fuse"}, _STRIP_ONE]
    if _STRIP_ONE in steps and {"type": "Fuse"} not in steps:
        return False  # it would strip each piece
    return steps == [step for step in known if step in steps]


def _from_byte_level(piece: str) -> bytes:
    if all(character in _BYTES for character in piece):
        return bytes(_BYTES[character] for character in piece)
    return piece.encode()  # an added token is written as it is


def _from_byte_fallback(piece: str) -> bytes:
    match = _BYTE_PIECE.fullmatch(piece)
    return bytes([int(match[1], 16)]) if match else piece.encode()
