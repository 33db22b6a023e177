"""The character map compared with the rules from which it was made; test_gguf.py runs it in llama.cpp."""

import struct
import unicodedata
from functools import cache
from itertools import islice

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kotha.export.gguf.charsmap import _ACTIVE, _rewrite, byte_piece, make_charsmap, rewritings
from kotha.text.normalize import normalize
from kotha.text.stories.corpus import stories


@cache
def entries() -> dict[str, str]:
    return rewritings(normalize)


def rewrite(text: str) -> str:
    return _rewrite(text, entries(), max(map(len, entries())))


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("\u09df", "\u09af\u09bc"),
        ("\u09c7\u09be", "\u09cb"),
        ("\u0981\u09be", "\u09be\u0981"),
        ("\u09ac\u09bc", "\u09b0"),
        ("\u09a4\u09cd\u200d", "\u09ce"),
        ("\u09b0\u200c\u09cd\u09af", "\u09b0\u200d\u09cd\u09af"),
        ("\u0995\u200d", "\u0995"),
        ("e\u0301", "é"),
        ("\ufeff", ""),
        ("\u00a0", " "),
    ],
)
def test_entries_by_hand(text: str, wanted: str) -> None:
    assert entries()[text] == wanted


def test_normalized_text_has_no_entry() -> None:
    for text in ("\u0995", "a", "\u200d", "\u0995\u09cd\u200c"):
        assert text not in entries()
    joined = "\u09b0\u200d\u09cd\u09af"  # has an entry, so that no shorter entry matches its joiner
    assert entries()[joined] == joined


@given(st.text("কর ।a1\u09af" + _ACTIVE, min_size=1, max_size=3))
def test_short_strings_are_rewritten_as_the_rules_do(text: str) -> None:
    wanted = normalize(" " + text)  # a table cannot express a joiner at the very start
    assert rewrite(" " + text) == wanted


@pytest.mark.parametrize("form", ["NFC", "NFD"])
def test_stories_are_rewritten_as_the_rules_do(form: str) -> None:
    for story in islice(stories(seed=3), 40):
        text = unicodedata.normalize(form, story.text).replace("\u09af\u09bc", "\u09df")
        assert rewrite(text) == normalize(text)


def find(charsmap: bytes, text: bytes) -> tuple[int, bytes]:
    """The longest entry that is a prefix of a text, looked up as in Darts: its length and replacement."""
    (size,) = struct.unpack_from("<I", charsmap)
    units, texts = struct.unpack_from(f"<{size // 4}I", charsmap, 4), charsmap[4 + size :]
    place, found = units[0] >> 10, (0, b"")
    for length, byte in enumerate(text, 1):
        place ^= byte
        if units[place] & 0x800000FF != byte:
            break
        leaf = units[place] >> 8 & 1
        place ^= units[place] >> 10
        if leaf:
            start = units[place] & 0x7FFFFFFF
            found = length, texts[start : texts.index(b"\0", start)]
    return found


def test_the_packed_map_contains_exactly_the_entries() -> None:
    charsmap = make_charsmap(normalize, ["\u0995", "\u09af", "\u09bc", "a", "\u09a6\u09c1\u0983"])
    assert find(charsmap, "\u0995\u0996".encode()) == (3, "\u0995".encode())
    assert find(charsmap, "\u09df".encode()) == (3, "\u09af\u09bc".encode())
    emoji = "😀".encode()
    assert [find(charsmap, emoji[place:]) for place in range(4)] == [(1, byte_piece(byte).encode()) for byte in emoji]
    # A character that is only part of a longer piece stays unchanged in this piece, and is encoded by bytes elsewhere.
    assert find(charsmap, "\u09a6\u09c1\u0983".encode()) == (9, "\u09a6\u09c1\u0983".encode())
    assert find(charsmap, "\u0983".encode()) == (3, "".join(map(byte_piece, "\u0983".encode())).encode())
    for text, rewritten in entries().items():
        length, found = find(charsmap, text.encode())
        assert length == len(text.encode()), ascii(text)
        assert found.decode().count(byte_piece(0xE0)) <= len(rewritten)
