"""Byte-pair encoding (BPE) by hand: learn merges, then apply them.

Start from single symbols. Count every pair of neighbours, join the most frequent pair everywhere, and do it again: the
list of joins is the tokenizer. The tests hold both functions equal to the ``tokenizers`` library.

Sennrich, Haddow and Birch 2016, https://arxiv.org/abs/1508.07909
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import pairwise

Pair = tuple[str, str]


def learn_merges(words: Mapping[str, int], n_merges: int, min_frequency: int = 1) -> list[Pair]:
    """The first ``n_merges`` merges of a corpus that is given as words with their counts.

    >>> learn_merges({"কলা": 5, "কলম": 3, "কল": 2}, n_merges=2)
    [('ক', 'ল'), ('কল', 'া')]
    """
    spelled = {word: list(word) for word in words}
    # A symbol's number is its rank in the alphabet, then its turn of birth; ties between pairs go to the lower numbers.
    number = {symbol: rank for rank, symbol in enumerate(sorted(set("".join(words))))}
    merges: list[Pair] = []
    while len(merges) < n_merges:
        pairs = count_pairs(spelled, words)
        if not pairs:
            break
        best = max(pairs, key=lambda pair: (pairs[pair], -number[pair[0]], -number[pair[1]]))
        if pairs[best] < min_frequency:
            break
        merges.append(best)
        number.setdefault("".join(best), len(number))
        spelled = {word: join(symbols, best) for word, symbols in spelled.items()}
    return merges


def count_pairs(spelled: Mapping[str, list[str]], words: Mapping[str, int]) -> Counter[Pair]:
    """How often each pair of neighbours occurs, each word counted as often as it occurs.

    >>> count_pairs({"আম": ["আ", "ম"]}, {"আম": 7})
    Counter({('আ', 'ম'): 7})
    """
    pairs: Counter[Pair] = Counter()
    for word, symbols in spelled.items():
        for pair in pairwise(symbols):
            pairs[pair] += words[word]
    return pairs


def join(symbols: Sequence[str], pair: Pair) -> list[str]:
    """Join every occurrence of a pair, from left to right.

    >>> join(["ক", "ল", "ক", "ল"], ("ক", "ল"))
    ['কল', 'কল']
    """
    joined: list[str] = []
    position = 0
    while position < len(symbols):
        if tuple(symbols[position : position + 2]) == pair:
            joined.append("".join(pair))
            position += 2
        else:
            joined.append(symbols[position])
            position += 1
    return joined


def apply_merges(word: str, ranks: Mapping[Pair, int]) -> list[str]:
    """Cut a word: of all pairs present join the one that was learned first, until none is left.

    >>> apply_merges("কলাকল", {("ক", "ল"): 0, ("কল", "া"): 1})
    ['কলা', 'কল']
    """
    symbols = list(word)
    while True:
        present = [pair for pair in pairwise(symbols) if pair in ranks]
        if not present:
            return symbols
        symbols = join(symbols, min(present, key=lambda pair: ranks[pair]))
