"""The unigram model by hand: the most probable way to cut a word.

Each piece has a log-probability; a cut is worth the sum over its pieces. The best cut of a word is found from left to
right: the best way to reach a position is the best way to reach an earlier one, plus one piece (Viterbi). The tests
hold it equal to the ``tokenizers`` library.

Kudo 2018, https://arxiv.org/abs/1804.10959
"""

import math
from collections.abc import Mapping


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
    return _walk_back(word, start)


def _walk_back(word: str, start: list[int]) -> list[str]:
    pieces = []
    end = len(word)
    while end > 0:
        pieces.append(word[start[end] : end])
        end = start[end]
    return pieces[::-1]
