"""A corpus counted the way that trainers need it: chunks, and the letters that chunks are made of.

Pieces should be made of whole letters, and the trainers of ``tokenizers`` know only code points. So each letter that
is frequent enough is written as one private code point, the trainer runs on that, and what it learned is written back.
A chunk is cut at a letter that is too rare or broken: nothing is learned across it.

The letters of common Bangla, made by rule, the most common first.

A corpus of stories has few of the letters that a newspaper needs. A vocabulary that knows only its corpus spells the
others by code point, and a token then ends inside a letter. So the letters of common Bangla get a piece each, whatever
the corpus.

A letter (akshara) is a consonant or conjunct with an ending: a vowel sign, ং ঃ ঁ, both, or none. The tables say how
common each part is, in bits: one bit more is half as common. The bits of a letter are the sum of its parts', as if the
parts were independent. They are not quite (ৌঁ is rare, but in পৌঁছে), so a last table names letters that the sum
misses, beside those that take no sign; and after a ya-phala, the a of ব্যাংক and অ্যাপ is as common as no sign. The
tables (``common_letters.json``) were read off newspapers, blogs, travel books and Tagore; what they give, by number of
letters: ``docs/dev/experiments.md``.
"""

import json
from collections import Counter
from collections.abc import Iterable, Iterator
from functools import cache, partial
from pathlib import Path

import regex

from kotha.text.akshara import is_whole, units
from kotha.text.clean.leakage import batches
from kotha.text.normalize import Normalizer
from kotha.text.parallel.local import LocalPool, WorkerPool

_YA_PHALA = "্য"
# What is rarer than this is left to the corpus.
_MOST_BITS = 17


@cache
def common_letters() -> tuple[str, ...]:
    """The letters of common Bangla, the most common first.

    >>> common_letters()[:8]
    ('র', 'রা', 'ন', 'ক', 'ব', 'ল', 'ত', 'ম')
    """
    tables = json.loads(Path(__file__).with_name("common_letters.json").read_text(encoding="utf-8"))
    bits = {letter: int(cost) for cost, letters in tables["named"].items() for letter in letters.split()}
    for base_cost, bases in tables["consonants"].items():
        for base in bases.split():
            for cost, texts in tables["ya_phala_endings" if base.endswith(_YA_PHALA) else "endings"].items():
                for ending in texts.split(" "):
                    bits.setdefault(base + ending, int(base_cost) + int(cost))
    return tuple(sorted((letter for letter, cost in bits.items() if cost <= _MOST_BITS), key=bits.__getitem__))


# Private code points of plane 15, one for each letter.
_FIRST_CODE = 0xF0000
_MAX_CODES = 0xFFFD

# What ends a word in the text that trainers are given; no chunk contains it, because letters are written as codes.
CUT = "\n"

# Past this many different chunks, the rarer half is forgotten, so that memory stays flat on any corpus.
_MAX_CHUNKS = 4_000_000

# No piece holds more digits than this: longer numbers are too many to learn one by one.
_MAX_DIGITS = 4

_BANGLA = regex.compile(r"\p{Bengali}")


def count_chunks(
    texts: Iterable[str], split: str, normalizer: Normalizer, pool: WorkerPool | None = None
) -> Counter[str]:
    """How often each chunk of the split occurs in the normalized texts, in the order of first occurrence.

    Batches are counted by a pool, by default right here, and added up in their order: the result is always the same.
    """
    counts: Counter[str] = Counter()
    task = partial(ChunkCounter, split, normalizer)
    for found in (pool or LocalPool(1)).map(task, batches(texts, len)):
        counts.update(found)
        if len(counts) > _MAX_CHUNKS:
            counts = Counter(dict(counts.most_common(_MAX_CHUNKS // 2)))
    return counts


class ChunkCounter:
    """Counts the chunks of a batch of texts."""

    def __init__(self, split: str, normalizer: Normalizer) -> None:
        self._pattern, self._normalizer = regex.compile(split), normalizer

    def __call__(self, texts: list[str]) -> Counter[str]:
        """How often each chunk occurs in these texts."""
        counts: Counter[str] = Counter()
        for text in texts:
            counts.update(self._pattern.findall(self._normalizer(text)))
        return counts


class Letters:
    """The letters of a corpus and their private codes."""

    def __init__(self, chunks: Counter[str]) -> None:
        self.chunks = chunks
        self.code: dict[str, str] = {}
        self.letter: dict[str, str] = {}
        self._units = {chunk: units(chunk) for chunk in chunks}
        self.counts: Counter[str] = Counter()
        for chunk, count in chunks.items():
            for unit in self._units[chunk]:
                self.counts[unit] += count

    def keep(self, coverage: float, most: int, common: int) -> None:
        """Give a code to the most frequent whole letters that make up ``coverage`` of the corpus, at most ``most``.

        Where it then has fewer than ``common`` Bangla letters, the most common that it lacks are added; in a corpus of
        which only a part is Bangla, so many fewer.
        """
        own = most_frequent(self.counts, coverage, most, whole=True)
        lacking = round(common * self.share_of_bangla()) - sum(_BANGLA.match(letter) is not None for letter in own)
        unseen = [letter for letter in common_letters() if letter not in own]
        kept = [*own, *unseen[: max(0, lacking)]][: min(most, _MAX_CODES)]
        self.letter = {chr(_FIRST_CODE + index): letter for index, letter in enumerate(kept)}
        self.code = {letter: code for code, letter in self.letter.items()}

    def coded_words(self) -> Counter[str]:
        """The corpus in codes: each stretch of kept letters with its count; long numbers cut into pieces."""
        words: Counter[str] = Counter()
        for chunk, count in self.chunks.items():
            coded = "".join(self.code.get(unit, CUT) for unit in _cut_digits(self._units[chunk]))
            for word in coded.split(CUT):
                if word:
                    words[word] += count
        return words

    def spell(self, coded: str) -> str:
        """A coded piece as text."""
        return "".join(self.letter[code] for code in coded)

    def share_of_bangla(self) -> float:
        """The share of Bangla among the letters that belong to an alphabet."""
        spelled = {unit: count for unit, count in self.counts.items() if unit[0].isalpha()}
        return sum(spelled[unit] for unit in spelled if _BANGLA.match(unit)) / max(1, sum(spelled.values()))

    def code_points(self) -> Counter[str]:
        """How often each code point occurs."""
        counts: Counter[str] = Counter()
        for unit, count in self.counts.items():
            for character in unit:
                counts[character] += count
        return counts


def most_frequent(counts: Counter[str], coverage: float, most: int, whole: bool = False) -> list[str]:
    """The most frequent entries that together make up a share of all, in a stable order.

    >>> most_frequent(Counter({"ক": 90, "খ": 9, "গ": 1}), coverage=0.95, most=10)
    ['ক', 'খ']
    """
    kept: list[str] = []
    target, seen = coverage * counts.total(), 0
    for entry, count in sorted(counts.items(), key=lambda item: (-item[1], item[0])):
        if seen >= target or len(kept) >= most:
            break
        seen += count
        if not whole or is_whole(entry):
            kept.append(entry)
    return kept


def _cut_digits(letters: list[str]) -> Iterator[str]:
    digits = 0
    for letter in letters:
        digits = digits + 1 if letter.isdigit() else 0
        if digits > _MAX_DIGITS:
            digits = 1
            yield ""  # no letter, so it has no code
        yield letter
