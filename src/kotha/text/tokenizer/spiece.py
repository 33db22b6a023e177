"""Read the fields that a tokenizer needs from SentencePiece ``.model`` files (protocol buffers).

The four wire types are parsed directly; every length is checked against the file, and nothing is executed. Field
numbers are from sentencepiece_model.proto in the SentencePiece project.
"""

import math
import struct
from collections.abc import Iterator
from dataclasses import dataclass, field
from operator import index
from typing import Any

from kotha.errors import TokenizerError

NORMAL, UNKNOWN, CONTROL, USER_DEFINED, UNUSED, BYTE = range(1, 7)
_TYPES = {1: "unigram", 2: "bpe", 3: "word", 4: "char"}


@dataclass
class SentencePieceModel:
    """The content of a ``.model`` file."""

    pieces: list[tuple[str, float, int]] = field(default_factory=list)
    model_type: str = "unigram"
    byte_fallback: bool = False
    charsmap: bytes = b""
    add_dummy_prefix: bool = True
    remove_extra_whitespaces: bool = True
    space_before: bool = True  # whether a space belongs to the word that follows, as usual


def read_model(data: bytes) -> SentencePieceModel:
    """Parse a model from the bytes of its file."""
    model = SentencePieceModel()
    try:
        for number, value in _fields(data):
            # The last value of a repeated field is used, as in protocol buffers.
            part = dict(_fields(memoryview(value))) if number in (1, 2, 3) else {}
            if number == 1:
                model.pieces.append(_piece(part))
            elif number == 2:
                kind = index(part.get(3, 1))
                model.model_type = _TYPES.get(kind, f"type {kind!r}")
                model.space_before = not index(part.get(24, 0))
                model.byte_fallback = bool(index(part.get(35, 0)))
            elif number == 3:
                model.charsmap = memoryview(part.get(2, b"")).tobytes()
                model.add_dummy_prefix = bool(index(part.get(3, 1)))
                model.remove_extra_whitespaces = bool(index(part.get(4, 1)))
    except (ValueError, TypeError, AttributeError, IndexError, struct.error) as error:
        raise TokenizerError("not a SentencePiece model, or truncated ({why})", why=str(error)) from error
    if not model.pieces:
        raise TokenizerError("not a SentencePiece model: it has no pieces")
    return model


def _piece(part: dict[int, Any]) -> tuple[str, float, int]:
    [score] = struct.unpack("<f", part.get(2, bytes(4)))
    if not math.isfinite(score):
        raise ValueError(f"a piece with the score {score}")
    return str(part.get(1, b""), "utf-8", "replace"), score, index(part.get(3, NORMAL))


def _fields(data: bytes | memoryview) -> Iterator[tuple[int, Any]]:
    """Yield (number, value) for the fields in a message; fixed-size and length-prefixed values are bytes."""
    position = 0
    while position < len(data):
        key, position = _varint(data, position)
        number, wire = key >> 3, key & 7
        if wire == 0:
            value, position = _varint(data, position)
            yield number, value
            continue
        if wire not in (1, 2, 5):
            raise ValueError(f"field type {wire} at byte {position}")
        length, position = _varint(data, position) if wire == 2 else (8 if wire == 1 else 4, position)
        if length > len(data) - position:
            raise ValueError(f"{length} bytes announced at {position}")
        yield number, data[position : position + length]
        position += length


def _varint(data: bytes | memoryview, position: int) -> tuple[int, int]:
    value = 0
    for shift in range(0, 64, 7):
        byte = data[position]
        value |= (byte & 0x7F) << shift
        position += 1
        if byte < 0x80:
            return value, position
    raise ValueError(f"a number without an end at byte {position}")
