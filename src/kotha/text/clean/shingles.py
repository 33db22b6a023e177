r"""Convert texts to shingles: a 64-bit hash for every run of a few consecutive words.

Two texts that share most of their shingles are near copies (Broder 1997, "On the resemblance and containment of
documents"). A word consists of ``[\p{L}\p{M}\p{N}]`` and joiners, so vowel signs do not split Bangla words. Case is
folded; punctuation and spaces are ignored. The hashes depend only on the text, not on the process or a seed.

Batches are processed in numpy, without a Python object per word. Each code point has a random number in a table (zero
for non-word characters). The hash of a word is a weighted sum over its characters, and the hash of a shingle is a
weighted sum over its words.
"""

from collections.abc import Sequence
from functools import cache

import numpy as np
import regex
from numpy.typing import NDArray

SHINGLE_WORDS = 5

_WORD = regex.compile(r"[\p{L}\p{M}\p{N}\u200c\u200d]+")
_LAST_LETTER = 0x3FFFF
GOLDEN = 0x9E3779B97F4A7C15  # 2^64 divided by the golden ratio, an odd number with well-mixed bits
# Characters beyond this position share a weight; real words are shorter.
_LONGEST_WORD = 256

Codes = NDArray[np.uint32]
Hashes = NDArray[np.uint64]


def code_points(text: str) -> Codes:
    """Return the code points of text as an array."""
    return np.frombuffer(text.encode("utf-32-le", "surrogatepass"), dtype=np.uint32)


def every_letter() -> str:
    """Return all code points of the planes with letters, in order, so that a match's position is a table index.

    Surrogates are replaced by NUL.
    """
    return "".join(chr(0 if 0xD800 <= code < 0xE000 else code) for code in range(_LAST_LETTER + 1))


def mix(values: Hashes) -> Hashes:
    """Scramble 64-bit numbers with a bijection (the finalizer of SplitMix64; Steele et al. 2014)."""
    values = (values ^ (values >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    values = (values ^ (values >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return values ^ (values >> np.uint64(31))


@cache
def _letters() -> Hashes:
    """Return a random number for each word character and zero for all other code points."""
    text = every_letter()
    small = code_points("".join(letter.lower()[0] for letter in text)).astype(np.uint64)
    table = np.zeros(0x110000, dtype=np.uint64)
    for run in _WORD.finditer(text):
        table[run.start() : run.end()] = mix(small[run.start() : run.end()] * np.uint64(GOLDEN))
    return table


@cache
def _weights(count: int) -> Hashes:
    """Return an odd weight for each position: the powers of an odd number modulo 2^64."""
    return np.cumprod(np.full(count, GOLDEN, dtype=np.uint64), dtype=np.uint64)


def _words(texts: Sequence[str]) -> tuple[Hashes, NDArray[np.int64]]:
    """Return the hash of every word, and the index of each text's first word, followed by the number of words."""
    letters = _letters().take(code_points("\n".join(texts)))
    positions = np.flatnonzero(letters)
    if not len(positions):
        return np.zeros(0, dtype=np.uint64), np.zeros(len(texts) + 1, dtype=np.int64)
    first = np.ones(len(positions), dtype=np.bool_)
    np.not_equal(positions[1:], positions[:-1] + 1, out=first[1:])
    begins = np.flatnonzero(first)  # first characters of words, as indices into positions
    within = np.arange(len(positions)) - begins[np.cumsum(first) - 1]  # position of each character in its word
    weights = _weights(_LONGEST_WORD).take(within, mode="clip")
    words = np.add.reduceat(letters.take(positions) * weights, begins)
    return mix(words), np.searchsorted(positions.take(begins), _running([len(text) + 1 for text in texts]))


def _running(sizes: Sequence[int] | NDArray[np.int64]) -> NDArray[np.int64]:
    """Return cumulative sums, starting from 0: the start of each part, and the end of the last."""
    sums = np.zeros(len(sizes) + 1, dtype=np.int64)
    np.cumsum(sizes, out=sums[1:])
    return sums


def shingle_hashes(texts: Sequence[str], words: int = SHINGLE_WORDS) -> tuple[Hashes, NDArray[np.int64]]:
    """Return all texts' shingles, with repeats, as a flat array of hashes and len(texts) + 1 offsets into it.

    A text with fewer words than a shingle has a single shingle of all its words; a text without words has none.

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
    for position, weight in enumerate(_weights(words)):
        terms = numbers.take(begins + position, mode="clip") * weight
        shingles += np.where(position < lengths, terms, np.uint64(0)) if short else terms
    return mix(shingles), offsets
