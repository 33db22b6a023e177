"""Slow twins to read and to watch: byte-pair encoding (BPE) and the unigram model by hand.

BPE starts from single symbols. Count every pair of neighbours, join the most frequent pair everywhere, and do it again:
the list of joins is the tokenizer (Sennrich, Haddow and Birch 2016, https://arxiv.org/abs/1508.07909).

The unigram model gives each piece a log-probability; a cut is worth the sum over its pieces. The best cut of a word is
found from left to right: the best way to reach a position is the best way to reach an earlier one, plus one piece
(Viterbi; Kudo 2018, https://arxiv.org/abs/1804.10959).

The tests hold both equal to the ``tokenizers`` library.
"""

import math
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


def best_cut(word: str, log_probability: Mapping[str, float]) -> list[str]:
    """The pieces of the most probable cut; a character that no piece covers stands alone, at a heavy price.

    >>> best_cut("কলাগাছ", {"কলা": -2.0, "গাছ": -2.0, "কলাগাছ": -9.0, "ক": -5.0})
    ['কলা', 'গাছ']
    """
    longest = max(map(len, log_probability), default=1)
    unknown = min(log_probability.values(), default=0.0) - 10.0
    score = [0.0] + [-math.inf] * len(word)  # the best score with which each position is reached
    start = [0] * (len(word) + 1)  # where the last piece on that way begins
    for end in range(1, len(word) + 1):
        for begin in range(max(0, end - longest), end):
            piece = word[begin:end]
            price = log_probability.get(piece, unknown if len(piece) == 1 else -math.inf)
            if score[begin] + price > score[end]:
                score[end], start[end] = score[begin] + price, begin
    pieces = []
    end = len(word)
    while end > 0:
        pieces.append(word[start[end] : end])
        end = start[end]
    return pieces[::-1]
