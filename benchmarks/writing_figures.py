"""Figures of written text that can be set beside a person's: how varied it is, how it repeats, whether its words exist.

Words are runs of letters and their signs. All figures but the last are of texts cut to the same number of words, since
each depends on length.
"""

import itertools
from collections.abc import Collection, Iterable, Sequence
from dataclasses import asdict, dataclass
from statistics import fmean

import regex

_TOGETHER = 2400
_WORD = regex.compile(r"[\p{L}\p{M}\u200c\u200d]+")


def words_of(text: str) -> list[str]:
    """The words of a text."""
    return _WORD.findall(text)


def runs(words: Sequence[str], n: int) -> list[tuple[str, ...]]:
    """All runs of n words.

    >>> runs(["a", "b", "c"], 2)
    [('a', 'b'), ('b', 'c')]
    """
    return list(zip(*(words[start:] for start in range(n)), strict=False))


@dataclass(frozen=True)
class Figures:
    """What some texts come to; each a mean over texts, but for the variety of all together."""

    distinct_1: float  # different words, as a share of all, in a text
    distinct_2: float  # different pairs of words, in a text
    repeats_4: float  # share of runs of four words that the same text had before
    variety: float  # different words among the first words of all texts, as a share of them
    known: float  # share of words that the training text has

    @classmethod
    def of(cls, texts: Sequence[Sequence[str]], vocabulary: Collection[str]) -> "Figures":
        """Measure texts, each a list of words."""
        together = list(itertools.chain.from_iterable(texts))
        return cls(
            distinct_1=fmean(distinct(words, 1) for words in texts),
            distinct_2=fmean(distinct(words, 2) for words in texts),
            repeats_4=fmean(1 - distinct(words, 4) for words in texts),
            variety=distinct(together[:_TOGETHER], 1),
            known=fmean(word in vocabulary for word in together),
        )

    def distance(self, other: "Figures") -> float:
        """How far apart two sets of texts are: the mean of their differences, all of which are shares."""
        pairs = zip(asdict(self).values(), asdict(other).values(), strict=True)
        return fmean(abs(mine - theirs) for mine, theirs in pairs)


def distinct(words: Sequence[str], n: int) -> float:
    """Different runs of n words as a share of all; 1 where there is none."""
    found = runs(words, n)
    return len(set(found)) / len(found) if found else 1.0


def hashes(texts: Iterable[str], n: int) -> set[int]:
    """All runs of n words of many texts, as numbers: a few bytes each."""
    return {hash(run) for text in texts for run in runs(words_of(text), n)}


def share_found(texts: Iterable[Sequence[str]], n: int, known: Collection[int]) -> float:
    """The share of all runs of n words that are among the known ones."""
    found = [hash(run) in known for words in texts for run in runs(words, n)]
    return fmean(found) if found else 0.0
