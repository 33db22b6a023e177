"""Our normalization as a table that llama.cpp reads: SentencePiece's precompiled map of characters.

Such a map rewrites a text from left to right, each time the longest beginning that it has an entry for. Our rules are
patterns that look around themselves; so entries are made by asking the rules. All short strings of the characters that
they are about are tried, shortest first, and a string gets an entry where the table so far would leave something else
than the rules do. Beyond such a table are a joiner at the very start of a text (nothing stands before it that an entry
could begin with), longer runs of misplaced signs than are tried, Korean typed in parts, and some orders of marks on the
letters of other scripts (of 3,500 lines made of Bangla news, 3 read otherwise, all three quoting Arabic).

The map also spells letters that have no piece: their bytes become private characters, one for each byte, which the
vocabulary holds as pieces. Letters that have a piece are entries of their own, and longer than a byte, so they win.

On disk it is a double array in the layout of Darts-clone: https://github.com/s-yata/darts-clone.
"""

import struct
import unicodedata
from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache
from itertools import combinations, product
from typing import Any

import numpy as np

_JOINERS, _HASANTA, _NUKTA, _MOON = "\u200c\u200d", "\u09cd", "\u09bc", "\u0981"
_SIGNS = "\u09be\u09bf\u09c0\u09c1\u09c2\u09c3\u09c7\u09c8\u09cb\u09cc\u09d7"
_LETTERS = "\u0985\u09a1\u09a2\u09a4\u09ac\u09af\u09b0\u09dc\u09dd\u09df"
# Stands for all letters that the rules do not name.
_OTHERS = "\u0995"
_ACTIVE = _JOINERS + _HASANTA + _NUKTA + _MOON + _SIGNS + _LETTERS + _OTHERS
_BEFORE_JOINERS = [
    *map(chr, range(0x20, 0x7F)),
    *map(chr, range(0x980, 0xA00)),
    *"\u0964\u0965\u2013\u2014\u2018\u2019\u201c\u201d\u2026\n",
]
# Arabic's marks: two of them have one order.
_VOWEL_MARKS = "".join(map(chr, range(0x64B, 0x653)))
# Private characters that stand for bytes; a text that holds one is spelled by its bytes like any unknown letter.
_BYTES = 0xF0000

# Places of a block of 256 that are taken when no more children are looked for there.
_FULL = 250

Rewrite = Callable[[str], str]
CharacterMap = dict[bytes, bytes]


def byte_piece(byte: int) -> str:
    """The private character that stands for a byte."""
    return chr(_BYTES + byte)


def make_charsmap(normalize: Rewrite, pieces: Iterable[str]) -> bytes:
    """The map of a normalization, for a vocabulary of these ``pieces``."""
    pieces = list(pieces)
    within = {letter for piece in pieces for letter in piece}
    alone = {piece for piece in pieces if len(piece) == 1}

    def spell(text: str, letters: set[str]) -> bytes:
        return "".join(each if each in letters else "".join(map(byte_piece, each.encode())) for each in text).encode()

    entries = rewritings(normalize)
    table = {text.encode(): spell(rewritten, within) for text, rewritten in entries.items()}
    for letter in within:
        table.setdefault(letter.encode(), spell(letter, alone))
    for piece in pieces:  # a letter that has no piece of its own is left whole where a longer one holds it
        parts = (piece[start:end] for start, end in combinations(range(len(piece) + 1), 2))
        if not alone.issuperset(piece) and not any(part in entries for part in parts):
            table[piece.encode()] = piece.encode()
    for byte in range(1, 0x100):
        table.setdefault(bytes([byte]), byte_piece(byte).encode())
    return _pack(table)


@lru_cache(maxsize=2)
def rewritings(normalize: Rewrite) -> dict[str, str]:
    """Strings and what they become, enough that rewriting by the longest of them does what the rules do."""
    entries: dict[str, str] = {}
    longest = 0
    tried = {text for text in _candidates() if text[0] not in _JOINERS}  # what a joiner does depends on what is before
    for text in sorted(tried, key=lambda text: (len(text), text)):
        wanted = normalize(text)
        if _rewrite(text, entries, longest) != wanted:
            entries[text] = wanted
            longest = max(longest, len(text))
    return entries


def _candidates() -> Iterator[str]:
    for length in (1, 2, 3):
        yield from map("".join, product(_ACTIVE, repeat=length))
    yield from map(chr, (*range(1, 0x20), *range(0x7F, 0xA1), 0xAD, 0x1680, *range(0x2000, 0x2070), 0x3000, 0xFEFF))
    yield "\r\n"
    for number in range(0xA0, 0x30000):
        character = chr(number)
        apart = unicodedata.normalize("NFD", character)
        if apart != character and not 0xAC00 <= number < 0xD7A4:  # Hangul is composed by rule, 11,172 letters
            yield from (character, apart, unicodedata.normalize("NFC", apart[:-1]) + apart[-1])
    yield from map("".join, product(_VOWEL_MARKS, repeat=2))
    runs = ["".join(each) for length in (1, 2, 3) for each in product(_JOINERS, repeat=length)]
    yield from map("".join, product(_BEFORE_JOINERS, runs))
    for run in runs:
        yield from (f"\u09b0{run}\u09cd\u09af", f"\u09ac\u09bc{run}\u09cd\u09af", f"\u09a4\u09cd{run}")
    for sign in (_HASANTA, _NUKTA, _MOON):
        yield from (sign * count for count in range(2, 6))
    yield from (f"{_MOON}\u09c7{second}{third}" for second, third in product("\u09be\u09d7", _SIGNS))


def _rewrite(text: str, entries: dict[str, str], longest: int) -> str:
    found, place = [], 0
    while place < len(text):
        for length in range(min(longest, len(text) - place), 0, -1):
            part = text[place : place + length]
            if part in entries:
                found.append(entries[part])
                break
        else:
            length = 1
            found.append(text[place])
        place += length
    return "".join(found)


# -- the double array -------------------------------------------------------------------------------------------------


def _pack(table: CharacterMap) -> bytes:
    """The table in the file's layout: the array's size, the array, the replacements each with a zero behind it.

    A node of its tree has children by their bytes, and under 0, which no text holds, the place of its replacement.
    """
    root, places, texts = dict[int, Any](), dict[bytes, int](), bytearray()
    for text, rewritten in sorted(table.items()):
        if b"\0" in text:
            continue
        if rewritten not in places:
            places[rewritten] = len(texts)
            texts += rewritten + b"\0"
        node = root
        for byte in text:
            node = node.setdefault(byte, {})
        node[0] = places[rewritten]
    array = _double_array(root)
    return struct.pack("<I", len(array)) + array + bytes(texts)


def _double_array(root: dict[int, Any]) -> bytes:
    """Units of 32 bits: a child by byte c of the node whose children begin at b lies at b ^ c, its value at b ^ 0.

    A unit knows its byte and not its parent, so no two nodes may begin their children at the same place.
    """
    units, taken, begun = (np.zeros(0, kind) for kind in (np.uint32, bool, bool))
    every, first_open = np.arange(256), 0
    waiting = [(0, root, 0)]
    while waiting:
        place, node, label = waiting.pop()
        labels = np.array(list(node))
        start, fits = first_open, np.zeros(0, bool)
        while not fits.any():
            if start == len(units):
                units, taken, begun = (
                    np.concatenate((each, np.zeros(256, each.dtype))) for each in (units, taken, begun)
                )
                taken[0] = True  # the root's own place
            block = slice(start, start + 256)
            fits = (~taken[block])[every[:, None] ^ labels].all(axis=1) & ~begun[block]
            start += 256
        base = start - 256 + int(fits.argmax())
        taken[base ^ labels], begun[base] = True, True
        while first_open < len(units) and taken[first_open : first_open + 256].sum() > _FULL:
            first_open += 256
        units[place] = (place ^ base) << 10 | (0 in node) << 8 | label
        if 0 in node:
            units[base] = 1 << 31 | node[0]
        waiting += [(base ^ byte, child, byte) for byte, child in node.items() if byte]
    assert len(units) < 1 << 21, "a map of characters too large for its layout"
    return units.astype("<u4").tobytes()
