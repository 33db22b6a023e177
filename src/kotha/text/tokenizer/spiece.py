"""Reading SentencePiece's ``.model`` files: the few fields of its protocol buffer that a tokenizer needs.

Only the wire format's four kinds of field are read, with every length checked against the file; nothing is executed.
Field numbers are those of sentencepiece_model.proto in the SentencePiece project.
"""

import math
import struct
from collections.abc import Iterator
from dataclasses import dataclass, field

from kotha.errors import TokenizerError

NORMAL, UNKNOWN, CONTROL, USER_DEFINED, UNUSED, BYTE = range(1, 7)
_TYPES = {1: "unigram", 2: "bpe", 3: "word", 4: "char"}


@dataclass
class SentencePieceModel:
    """What a ``.model`` file says."""

    pieces: list[tuple[str, float, int]] = field(default_factory=list)
    model_type: str = "unigram"
    byte_fallback: bool = False
    charsmap: bytes = b""
    add_dummy_prefix: bool = True
    remove_extra_whitespaces: bool = True
    space_before: bool = True  # a space leads the word after it, the usual way


def read_model(data: bytes) -> SentencePieceModel:
    """Read a model from the bytes of its file."""
    model = SentencePieceModel()
    for number, value in _fields(data):
        if number not in (1, 2, 3):
            continue
        part = dict(_fields(_bytes(value)))  # of a field that comes twice the last one counts, as the format has it
        if number == 1:
            text = _bytes(part.get(1, b"")).decode("utf-8", "replace")
            score = _float(_bytes(part[2])) if 2 in part else 0.0
            model.pieces.append((text, score, _int(part.get(3, NORMAL))))
        elif number == 2:
            model_type = _int(part.get(3, 1))
            model.model_type = _TYPES.get(model_type, f"type {model_type!r}")
            model.space_before = not _int(part.get(24, 0))
            model.byte_fallback = bool(_int(part.get(35, 0)))
        else:
            model.charsmap = _bytes(part.get(2, b""))
            model.add_dummy_prefix = bool(_int(part.get(3, 1)))
            model.remove_extra_whitespaces = bool(_int(part.get(4, 1)))
    if not model.pieces:
        raise TokenizerError("not a SentencePiece model: it holds no pieces")
    return model


def _fields(data: bytes) -> Iterator[tuple[int, int | bytes]]:
    """The fields of one message: (number, value), where fixed-size and length-prefixed values are bytes."""
    position = 0
    while position < len(data):
        key, position = _varint(data, position)
        number, wire = key >> 3, key & 7
        if wire == 0:
            value, position = _varint(data, position)
            yield number, value
            continue
        if wire == 2:
            length, position = _varint(data, position)
        elif wire in (1, 5):
            length = 8 if wire == 1 else 4
        else:
            raise TokenizerError(
                "not a SentencePiece model: unknown field type {wire} at byte {position}", wire=wire, position=position
            )
        if length > len(data) - position:
            raise TokenizerError(
                "not a SentencePiece model, or a truncated one: {length:,} bytes announced at {position}",
                length=length,
                position=position,
            )
        yield number, data[position : position + length]
        position += length


def _varint(data: bytes, position: int) -> tuple[int, int]:
    value = shift = 0
    while position < len(data) and shift < 64:
        byte = data[position]
        value |= (byte & 0x7F) << shift
        position += 1
        if byte < 0x80:
            return value, position
        shift += 7
    raise TokenizerError(
        "not a SentencePiece model, or a truncated one: it breaks off at byte {position}", position=position
    )


def _bytes(value: int | bytes) -> bytes:
    if isinstance(value, int):
        raise TokenizerError("not a SentencePiece model: a number where text was expected")
    return value


def _float(value: bytes) -> float:
    if len(value) != 4:
        raise TokenizerError("not a SentencePiece model: a score of {n} bytes where 4 were expected", n=len(value))
    score = float(struct.unpack("<f", value)[0])
    if not math.isfinite(score):
        raise TokenizerError("not a SentencePiece model: a piece with the score {score}", score=score)
    return score


def _int(value: int | bytes) -> int:
    if isinstance(value, bytes):
        raise TokenizerError("not a SentencePiece model: text where a number was expected")
    return value
