r"""Texts as sets of shingles: every run of a few consecutive words, as one 64-bit number.

Two texts that share most of their shingles are near copies (Broder 1997, "On the resemblance and containment of
documents"). A word is ``[\p{L}\p{M}\p{N}]`` and joiners, so that no vowel sign cuts a Bangla word, and case is folded;
punctuation and spaces do not count. The numbers depend on nothing but the text: not on the process, not on a seed.

The work is done on whole batches in numpy, without a Python object for each word: code points are looked up in a
table of random numbers (zero where no word is), each word is a weighted sum of its letters' numbers, each shingle a
weighted sum of its words'.
"""

from collections.abc import Sequence
from functools import cache

import numpy as np
import regex
from numpy.typing import NDArray

SHINGLE_WORDS = 5

_WORD = regex.compile(r"[\p{L}\p{M}\p{N}\u200c\u200d]+")
_LAST_LETTER = 0x3FFFF
GOLDEN = 0x9E3779B97F4A7C15  # 2^64 over the golden ratio: odd, bits well spread
# Letters after this many share their weights: no word is that long, and a line of base64 need not be exact.
_LONGEST_WORD = 256

Codes = NDArray[np.uint32]
Hashes = NDArray[np.uint64]


def code_points(text: str) -> Codes:
    """The text as an array of code points."""
    return np.frombuffer(text.encode("utf-32-le", "surrogatepass"), dtype=np.uint32)


def every_letter() -> str:
    """The code points of the planes that hold letters, in order: a table's index as a text. Surrogates are NUL here."""
    return "".join(chr(0 if 0xD800 <= code < 0xE000 else code) for code in range(_LAST_LETTER + 1))


def mix(values: Hashes) -> Hashes:
    """Scramble 64-bit numbers one to one (the finaliser of splitmix64; Steele et al. 2014)."""
    values = (values ^ (values >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    values = (values ^ (values >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return values ^ (values >> np.uint64(31))


@cache
def _letters() -> Hashes:
    """A random number for each code point that words are made of, zero for all others."""
    text = every_letter()
    small = code_points("".join(letter.lower()[0] for letter in text)).astype(np.uint64)
    table = np.zeros(0x110000, dtype=np.uint64)
    for run in _WORD.finditer(text):
        table[run.start() : run.end()] = mix(small[run.start() : run.end()] * np.uint64(GOLDEN))
    return table


@cache
def _weights(count: int) -> Hashes:
    """Odd weights, one a place: the powers of an odd number modulo 2^64."""
    return np.cumprod(np.full(count, GOLDEN, dtype=np.uint64), dtype=np.uint64)


def _words(texts: Sequence[str]) -> tuple[Hashes, NDArray[np.int64]]:
    """A number for each word of all texts, and where each text's words start, with the end as a last entry."""
    letters = _letters().take(code_points("\n".join(texts)))
    places = np.flatnonzero(letters)
    if not len(places):
        return np.zeros(0, dtype=np.uint64), np.zeros(len(texts) + 1, dtype=np.int64)
    first = np.ones(len(places), dtype=np.bool_)
    np.not_equal(places[1:], places[:-1] + 1, out=first[1:])
    begins = np.flatnonzero(first)  # first letters of words, as indexes into places
    within = np.arange(len(places)) - begins[np.cumsum(first) - 1]  # place of each letter in its word
    weights = _weights(_LONGEST_WORD).take(within, mode="clip")
    words = np.add.reduceat(letters.take(places) * weights, begins)
    return mix(words), np.searchsorted(places.take(begins), _running([len(text) + 1 for text in texts]))


def _running(sizes: Sequence[int] | NDArray[np.int64]) -> NDArray[np.int64]:
    """Running sums from 0: where each of some parts starts, with the end as a last entry."""
    sums = np.zeros(len(sizes) + 1, dtype=np.int64)
    np.cumsum(sizes, out=sums[1:])
    return sums


def shingle_hashes(texts: Sequence[str], words: int = SHINGLE_WORDS) -> tuple[Hashes, NDArray[np.int64]]:
    """The shingles of each text, repeats included: flat numbers, and len(texts) + 1 offsets into them.

    A text with fewer words than a shingle has one shingle, of all its words; a text without words has none.

    >>> shingle_hashes(["one two three four five six", "One, two!", "…"])[1].tolist()
    [0, 2, 3, 3]
    """
    numbers, starts = _words(texts)
    counts = starts[1:] - starts[:-1]
    sizes = np.where(counts >= words, counts - words + 1, np.minimum(counts, 1))  # shingles of each text
    offsets = _running(sizes)
    begins = np.arange(offsets[-1]) + np.repeat(starts[:-1] - offsets[:-1], sizes)  # first word of each shingle
    lengths = np.repeat(np.minimum(counts, words), sizes)
    short = bool((counts < words).any())
    shingles = np.zeros(len(begins), dtype=np.uint64)
    for place, weight in enumerate(_weights(words)):
        there = numbers.take(begins + place, mode="clip") * weight
        shingles += np.where(place < lengths, there, np.uint64(0)) if short else there
    return mix(shingles), offsets
