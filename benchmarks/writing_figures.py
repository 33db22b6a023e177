"""Metrics for comparing generated with human text: variety, repetition, and the share of existing words.

Words are sequences of letters and combining marks. All figures but the last are computed on texts cut to the same
number of words, because they depend on the length.
"""

import itertools
from collections.abc import Collection, Iterable, Sequence
from dataclasses import asdict, dataclass
from statistics import fmean

import regex

_TOGETHER = 2400
_WORD = regex.compile(r"[\p{L}\p{M}\u200c\u200d]+")


def words_of(text: str) -> list[str]:
    """Return the words in a text."""
    return _WORD.findall(text)


def runs(words: Sequence[str], n: int) -> list[tuple[str, ...]]:
    """Return all sequences of n consecutive words.

    >>> runs(["a", "b", "c"], 2)
    [('a', 'b'), ('b', 'c')]
    """
    return list(zip(*(words[start:] for start in range(n)), strict=False))


@dataclass(frozen=True)
class Figures:
    """The figures for some texts; each is a mean over texts, except the variety of all texts together."""

    distinct_1: float  # share of distinct words in a text
    distinct_2: float  # share of distinct word pairs in a text
    repeats_4: float  # share of sequences of four words that occur earlier in the same text
    variety: float  # share of distinct words among the first words of all texts
    known: float  # share of words that occur in the training text

    @classmethod
    def of(cls, texts: Sequence[Sequence[str]], vocabulary: Collection[str]) -> "Figures":
        """Compute the figures for texts, each given as a list of words."""
        together = list(itertools.chain.from_iterable(texts))
        return cls(
            distinct_1=fmean(distinct(words, 1) for words in texts),
            distinct_2=fmean(distinct(words, 2) for words in texts),
            repeats_4=fmean(1 - distinct(words, 4) for words in texts),
            variety=distinct(together[:_TOGETHER], 1),
            known=fmean(word in vocabulary for word in together),
        )

    def distance(self, other: "Figures") -> float:
        """Return the distance between two sets of texts: the mean difference of their figures, which are all shares."""
        pairs = zip(asdict(self).values(), asdict(other).values(), strict=True)
        return fmean(abs(mine - theirs) for mine, theirs in pairs)


def distinct(words: Sequence[str], n: int) -> float:
    """Return the share of distinct sequences of n words; 1 if there are none."""
    found = runs(words, n)
    return len(set(found)) / len(found) if found else 1.0


def hashes(texts: Iterable[str], n: int) -> set[int]:
    """Return compact hashes of all sequences of n words in many texts."""
    return {hash(run) for text in texts for run in runs(words_of(text), n)}


def share_found(texts: Iterable[Sequence[str]], n: int, known: Collection[int]) -> float:
    """Return the share of all sequences of n words whose hashes are in the known set."""
    found = [hash(run) in known for words in texts for run in runs(words, n)]
    return fmean(found) if found else 0.0
