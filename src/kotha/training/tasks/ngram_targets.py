"""Targets sampled from an n-gram model of the text, with which a model learns faster than from the text alone.

At each position, the text has one next token. Elsewhere in the text, other tokens follow the same context, and an
n-gram model counts these. If a part of each target is sampled from the counts, a model learns in one step what it would
otherwise learn in several passes over the text (data noising as smoothing, Xie et al. 2017,
https://arxiv.org/abs/1703.02573).

The n-gram model is interpolated Kneser-Ney with a single discount (``text/ngram.py`` has the full version). A
position does not count for itself, because a long context would otherwise predict little more than the target itself.
Sampling does not need probabilities: another occurrence of the context is chosen at random, and its next token is the
sample. A token that follows the context c times is rejected with probability D / c. After a rejection, or if the
context does not occur elsewhere, the first token of the context is dropped.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Ids = NDArray[np.int64]

ORDER = 5
DISCOUNT = 0.75


@dataclass(frozen=True)
class _Order:
    """All n-grams of one order, sorted by context and last token."""

    keys: Ids  # index of the context times V, plus the last token: (n-grams,)
    occurrences: Ids  # (n-grams,)
    counts: Ids  # occurrences; below the longest order, distinct preceding tokens: (n-grams,)
    ends: Ids  # 0, then the cumulative sum of the counts: (n-grams + 1,)
    starts: Ids  # index of the first n-gram of each context, and the end: (contexts + 1,)


class NgramSampler:
    """Samples a next token for each position of the training text.

    >>> sampler = NgramSampler(np.array([1, 2, 3, 1, 2, 4, 1, 2, 4, 0]), vocab_size=5)
    >>> sequences, draws = np.array([[1, 2, 3]]), np.full((1, 2, 1, ORDER, 2), 0.9)
    >>> sampler.sample(sequences, draws).tolist()  # 1 is followed by 2; elsewhere, 1 2 is followed by 4
    [[[2], [4]]]
    """

    def __init__(self, line: NDArray[np.integer], vocab_size: int) -> None:
        """``line`` is the concatenated documents."""
        self._vocab_size = vocab_size
        self._orders = list[_Order]()
        tokens, all_numbers = line.astype(np.int64), [np.zeros(len(line), np.int64)]
        found: list[tuple[Ids, Ids]] = []
        for order in range(1, min(ORDER, len(line)) + 1):
            before = all_numbers[-1] if order == 1 else np.roll(all_numbers[-1], 1)
            unique, ranks, occurrences = np.unique(
                (before * vocab_size + tokens)[order - 1 :], return_inverse=True, return_counts=True
            )
            found.append((unique, occurrences))
            all_numbers.append(np.concatenate([np.full(order - 1, -1), ranks]))
        n_histories = 1
        for order, (keys, occurrences) in enumerate(found, 1):
            counts = occurrences
            if order < len(found):  # each distinct longer n-gram adds a preceding token to its suffix
                longer, first = np.unique(all_numbers[order + 1][order:], return_index=True)
                assert len(longer) == len(found[order][0]), "every n-gram has a first occurrence"
                counts = np.bincount(all_numbers[order][order:][first], minlength=len(keys))
            ends = np.concatenate([[0], np.cumsum(counts)])
            starts = np.searchsorted(keys, np.arange(n_histories + 1) * vocab_size)
            self._orders.append(_Order(keys, occurrences, counts, ends, starts))
            n_histories = len(keys)

    def sample(self, sequences: Ids, draws: NDArray[np.float64]) -> Ids:
        """Sample K next tokens for each position: (B, T + 1), (B, T, K, ORDER, 2) -> (B, T, K).

        ``sequences`` are from the text; ``draws`` are uniform random numbers from 0 to 1.
        """
        n_samples = draws.shape[2]
        numbers = self._numbers(sequences)
        histories = [each[:, :-1].ravel() for each in numbers]
        own = [each[:, 1:].ravel() for each in numbers]  # the n-gram that ends with the actual next token
        draws = draws.reshape(-1, ORDER, 2)
        sampled = np.repeat(sequences[:, 1:].ravel(), n_samples)
        left = np.arange(len(sampled))  # samples without a token yet
        for level in reversed(range(len(self._orders))):
            positions, order = left // n_samples, self._orders[level]
            excluded = own[level + 1][positions]
            counted = excluded >= 0
            if level + 1 < len(self._orders):  # counted once per distinct longer n-gram
                longer = own[level + 2][positions]
                counted &= (longer >= 0) & (self._orders[level + 1].occurrences[longer] == 1)
            history = histories[level][positions]
            start, end = (order.ends[order.starts[np.maximum(history, 0) + i]] for i in (0, 1))
            others = end - start - counted
            choice = start + (draws[left, level, 0] * others).astype(np.int64)
            choice += counted & (choice >= order.ends[excluded + 1] - 1)
            chosen = np.searchsorted(order.ends, choice, side="right").clip(1, len(order.keys)) - 1
            count = np.maximum(order.counts[chosen] - (counted & (chosen == excluded)), 1)
            taken = (history >= 0) & (others > 0)
            if level:  # unigrams are the last resort
                taken &= draws[left, level, 1] * count >= DISCOUNT
            sampled[left[taken]] = order.keys[chosen[taken]] % self._vocab_size
            left = left[~taken]
        return sampled.reshape(*sequences[:, 1:].shape, n_samples)

    def _numbers(self, sequences: Ids) -> list[Ids]:
        """Return the indices of the n-grams that end at each position, by order from 0; -1 for unseen n-grams."""
        found = [np.zeros_like(sequences)]
        for level, order in enumerate(self._orders):
            history = found[-1] if level == 0 else np.pad(found[-1][:, :-1], ((0, 0), (1, 0)), constant_values=-1)
            keys = history * self._vocab_size + sequences
            ranks = np.searchsorted(order.keys, keys).clip(max=len(order.keys) - 1)
            found.append(np.where((history >= 0) & (order.keys[ranks] == keys), ranks, -1))
        return found
