"""Mutations of an input: its bytes, its numbers, the tree of a JSON text, or its files.

Mutations are drawn from a given random generator, so an input is identified by its number.
"""

import copy
import json
import random
import re
from collections.abc import Sequence
from typing import Any

from tests.fuzz.layers import Parcel, opened

# Values that cause errors in readers: zero, limits of each width, numbers that cost memory or time if they are trusted.
NUMBERS = (0, 1, 2, 3, 7, 8, 64, 127, 128, 255, 256, 1000, 32767, 65535, 65536, 10**6, 10**9, 2**31 - 1, 2**31)
NUMBERS += (2**32 - 1, 2**32, 2**40, 2**62, 2**63 - 1, 2**63, 2**64 - 1)
WORDS = (b"", b"\x00", b"\xff", b"\xfe\xff", b"\xef\xbb\xbf", b"\r", b"\n", b"\r\n", b'"', b"'", b",", b"\t")
WORDS += (b"{", b"}", b"[", b"]", b":", b"\\", b"\\u0000", b"\\ud800", b"null", b"NaN", b"Infinity", b"-1", b"1e999")
WORDS += (b"0x", b"../", *(each.encode() for each in ("ক্ষ", "\u09cd", "\u200d", "😀", "\u2028")))
WORDS += (b"\xed\xa0\x80", b"%00")
VALUES: tuple[Any, ...] = (None, True, False, *NUMBERS, -1, -(2**63), 10**30, 10**400, 0.5, -0.0, 1e308, 1e-320)
VALUES += (float("inf"), float("nan"), "", "four", "৪", "../..", "/etc/passwd", "\x00", "\ud800", "a" * 5000, "্" * 300)
VALUES += ([], [1], [[]], ["a"], {}, {"a": 1}, {"a": {"b": []}}, [None] * 3, [0] * 3000, {"": ""}, [{}], [[0, 0], [0]])
_DIGITS = re.compile(rb"\d+")
_MOST_BYTES = 1 << 17  # maximum size of an input


def mutated(rng: random.Random, parcel: Parcel, others: Sequence[Parcel]) -> Parcel:
    """Return an input with one or several mutations."""
    parcel = dict(parcel)
    for _ in range(rng.choice((1, 1, 1, 2, 2, 3, 5, 8))):
        _damage(rng, parcel, others)
    return parcel


def _damage(rng: random.Random, parcel: Parcel, others: Sequence[Parcel]) -> None:
    name = rng.choice(list(parcel)) if parcel else "empty"
    if len(parcel) > 1 and rng.random() < 0.04:
        _damage_names(rng, parcel, name)
        return
    other = rng.choice(others).get(name, b"") if others else b""
    parcel[name] = damaged(rng, name, parcel.get(name, b""), other)[:_MOST_BYTES]


def _damage_names(rng: random.Random, parcel: Parcel, name: str) -> None:
    """Remove a file, empty it, or swap it with another one."""
    match rng.randrange(3):
        case 0:
            del parcel[name]
        case 1:
            parcel[name] = b""
        case _:
            parcel[name] = parcel[rng.choice(list(parcel))]


def damaged(rng: random.Random, name: str, data: bytes, other: bytes = b"") -> bytes:
    """Return a file with one mutation; ``other`` is another file with that name, from which a part may be copied."""
    if rng.random() < 0.75 and (layers := opened(name, data)) and layers[0]:
        parts, close = layers
        _damage(rng, parts, ())
        try:
            return close(parts)
        except (ValueError, KeyError, OverflowError, TypeError):
            return data
    if name.endswith((".json", ".jsonl", ".http")) and rng.random() < 0.7:
        lines = data.split(b"\n") if name.endswith(".jsonl") else [data]
        place = rng.randrange(len(lines))
        try:
            lines[place] = json.dumps(_damaged_tree(rng, json.loads(lines[place]))).encode()
            return b"\n".join(lines)
        except (ValueError, RecursionError, OverflowError):
            pass  # it is no longer JSON, or cannot be JSON
    return _damaged_bytes(rng, data, other)


# -- bytes ------------------------------------------------------------------------------------------------------------


def _damaged_bytes(rng: random.Random, data: bytes, other: bytes) -> bytes:
    held = bytearray(data)
    at = rng.randrange(len(held) + 1)
    end = min(len(held), at + rng.choice((1, 1, 2, 4, 8, 16, 64, 1024)))
    match rng.randrange(11):
        case 0 if at < len(held):
            held[at] ^= 1 << rng.randrange(8)
        case 1:
            held[at:end] = rng.randbytes(end - at)
        case 2:
            held[at:at] = rng.choice(WORDS) * rng.choice((1, 1, 1, 2, 100, 5000))
        case 3:
            held[at:end] = rng.choice(WORDS)
        case 4:
            del held[at:end]
        case 5:
            del held[at:]
        case 6:
            held[at:at] = held[at:end] * rng.choice((1, 2, 50))
        case 7 if other:
            start = rng.randrange(len(other))
            held[at:end] = other[start : start + rng.choice((1, 8, 64, 512))]
        case 8:
            return _damaged_digits(rng, data)
        case 9:
            held[at:end] = _varint(rng.choice(NUMBERS))
        case _:
            _damage_number(rng, held, at)
    return bytes(held)


def _damage_number(rng: random.Random, held: bytearray, at: int) -> None:
    """Replace an integer of some width and byte order by another one, or change it by one."""
    width, order = rng.choice((1, 2, 4, 8)), rng.choice(("little", "big"))
    found = int.from_bytes(held[at : at + width], order)
    new = rng.choice(NUMBERS) if rng.random() < 0.5 else found + rng.choice((-8, -4, -2, -1, 1, 2, 4, 8))
    held[at : at + width] = (new % (1 << 8 * width)).to_bytes(width, order)


def _damaged_digits(rng: random.Random, data: bytes) -> bytes:
    found = list(_DIGITS.finditer(data))
    if not found:
        return data
    digits = rng.choice(found)
    new = rng.choice((*NUMBERS, 10**400)) * rng.choice((1, 1, -1))
    return data[: digits.start()] + str(new).encode() + data[digits.end() :]


def _varint(number: int) -> bytes:
    """Encode an integer as a protocol buffer varint."""
    found = bytearray()
    while number > 127:
        found.append(number & 127 | 128)
        number >>= 7
    return bytes([*found, number])


# -- trees ------------------------------------------------------------------------------------------------------------


def _damaged_tree(rng: random.Random, value: Any) -> Any:
    """Return the tree with one of its values replaced, removed, duplicated or renamed."""
    if not isinstance(value, dict | list) or not value or rng.random() < 0.08:
        return _damaged_value(rng, value)
    held = value.copy()
    place = rng.choice(list(held)) if isinstance(held, dict) else rng.randrange(len(held))
    match rng.randrange(12):
        case 0:
            del held[place]
        case 1 if isinstance(held, list):
            held[place:place] = [copy.deepcopy(held[place])] * rng.choice((1, 1, 3, 300))
        case 1:
            held[rng.choice(("", "x", "__class__", "type", str(place) + "x", "৪"))] = held.pop(place)
        case 2:
            held[place] = held[rng.choice(list(held)) if isinstance(held, dict) else rng.randrange(len(held))]
        case _:
            held[place] = _damaged_tree(rng, held[place])
    return held


def _damaged_value(rng: random.Random, value: Any) -> Any:
    chance = rng.random()
    if type(value) in (int, float) and chance < 0.4:
        return rng.choice((value + 1, value - 1, -value, value * 2, value // 2, value / 3, str(value)))
    if isinstance(value, str) and chance < 0.4:
        damaged = _damaged_bytes(rng, value.encode("utf-8", "replace"), b"")
        return damaged.decode("utf-8", rng.choice(("replace", "surrogateescape")))
    if chance > 0.97:
        for _ in range(rng.choice((10, 900, 3000))):
            value = [value]
        return value
    return rng.choice(VALUES)
