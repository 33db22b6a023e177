"""The n-gram baseline: an n-gram model with interpolated modified Kneser-Ney smoothing.

The probability of a token after a history is its relative count after that history, minus a discount. The discounted
mass is distributed by the same rule for the history that is one token shorter, down to the uniform 1/V. Below the top
order, a count is not the number of occurrences but the number of different preceding tokens: "Francisco" is frequent
but unlikely in other contexts, because it follows only one word. *Modified* means three discounts per order, for counts
of 1, 2 and more, estimated from the numbers of n-grams seen one to four times. Of the methods compared by Chen and
Goodman, it was the best for n-gram models (1999, https://doi.org/10.1006/csla.1999.0128), and it is KenLM's default.

Implementations of this smoothing differ in some conventions. Here a document is preceded by n - 1 end tokens, which
serve as history and are never predicted, as in NLTK (KenLM adds one token, and counts n-grams that begin with it by
occurrence). The unigram distribution is interpolated with the uniform distribution, 1/V. If the discounts cannot be
estimated, because no n-gram has one of the counts, they are 0.5, 1 and 1.5, as in KenLM.

N-grams are counted by sorting. An n-gram is represented by a 64-bit key: the number of its history times V, plus its
last token. After sorting, equal keys are adjacent, and their ranks are the numbers of the n-grams for the next order. A
test compares this with an implementation that uses dictionaries.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from kotha.errors import UsageError
from kotha.i18n.message import Option
from kotha.text.held_out import Line

Amounts = NDArray[np.float64]
Discounts = tuple[float, float, float]

# Discounts for counts of 1, 2 and more, if there is too little text to estimate them.
FALLBACK: Discounts = (0.5, 1.0, 1.5)
MAX_ORDER = 9


@dataclass(frozen=True)
class _Order:
    """All n-grams of one order: sorted keys with discounted counts, and the totals of each history."""

    keys: Line  # number of the history times V, plus last token: (n-grams,)
    kept: Amounts  # discounted counts: (n-grams,)
    totals: Amounts  # counts by history: (histories,)
    saved: Amounts  # discounted mass by history, distributed by the order below: (histories,)

    def find(self, keys: Line) -> Line:
        """Return the index of each n-gram; -1 for unseen ones."""
        if not len(self.keys):
            return np.full(len(keys), -1)
        found = np.searchsorted(self.keys, keys).clip(max=len(self.keys) - 1)
        return np.where(self.keys[found] == keys, found, -1)


class KneserNey:
    """An n-gram model over token ids.

    ``line`` contains concatenated documents, each of which ends with ``end``.

    >>> model = KneserNey(np.array([1, 2, 0, 1, 2, 0, 1, 3, 0]), order=2, vocab_size=4, end=0)
    >>> model.nats(np.array([1, 2, 0])).round(3).tolist()
    [0.49, 0.808, 0.412]
    """

    def __init__(self, line: Line, order: int, vocab_size: int, end: int) -> None:
        if not 1 <= order <= MAX_ORDER:
            raise UsageError(
                "{order} must be between 1 and {max_order}; typical values are 3 and 5",
                order=Option("order", order),
                max_order=MAX_ORDER,
            )
        if not len(line):
            raise UsageError("cannot count n-grams: the text has no tokens")
        assert 0 <= end < vocab_size, f"end={end} in a vocabulary of {vocab_size}"
        assert line.min() >= 0, "a token below 0"
        assert line.max() < vocab_size, f"token {line.max()} in a vocabulary of {vocab_size}"
        self.order, self.vocab_size, self.end = order, vocab_size, end
        self.discounts: list[Discounts] = []
        self._orders: list[_Order] = []
        self._count(np.asarray(line, np.int64))

    def nats(self, line: Line) -> Amounts:
        """Return the loss in nats of every token in concatenated documents: (N,) -> (N,)."""
        tokens, offsets = self._padded(np.asarray(line, np.int64))
        targets = np.flatnonzero(offsets >= self.order - 1)
        probabilities = np.full(len(targets), 1 / self.vocab_size)
        numbers = np.zeros(len(tokens), np.int64)  # number of the history that ends at each token; 0 if it is empty
        for level, order in enumerate(self._orders):
            positions = np.flatnonzero(offsets >= level)
            found, histories = np.full(len(tokens), -1), self._histories(numbers, positions, level)
            known = histories >= 0
            found[positions[known]] = order.find(histories[known] * self.vocab_size + tokens[positions[known]])
            here = self._histories(numbers, targets, level)
            probabilities = _interpolated(order, here, found[targets], probabilities)
            numbers = found
        nats: Amounts = -np.log(probabilities)
        return nats

    # -- counting -----------------------------------------------------------------------------------------------------

    def _count(self, line: Line) -> None:
        tokens, offsets = self._padded(line)
        numbers, n_histories = np.zeros(len(tokens), np.int64), 1
        keys: list[Line] = []
        counts: list[Line] = []  # for each order: occurrences; below the top order, different preceding tokens
        for level in range(self.order):
            positions = np.flatnonzero(offsets >= level)
            all_keys = self._histories(numbers, positions, level) * self.vocab_size + tokens[positions]
            unique, first, ranks = _ranked(all_keys)
            is_target = offsets[positions] >= self.order - 1
            times = np.bincount(ranks[is_target], minlength=len(unique))
            if level:  # each distinct n-gram adds one preceding token to its suffix
                shorter = numbers[positions[first[times > 0]]]
                counts[-1] = np.bincount(shorter, minlength=len(keys[-1]))
            keys.append(unique)
            counts.append(times)
            numbers = np.full(len(tokens), -1)
            numbers[positions] = ranks
        for level in range(self.order):
            given = estimate_discounts(counts[level])
            self.discounts.append(given)
            taken = np.array([0.0, *given])[counts[level].clip(max=3)]
            histories = keys[level] // self.vocab_size
            totals, saved = (
                np.bincount(histories, each, n_histories).astype(np.float64) for each in (counts[level], taken)
            )
            self._orders.append(_Order(keys[level], counts[level] - taken, totals, saved))
            n_histories = len(keys[level])

    def _padded(self, line: Line) -> tuple[Line, Line]:
        """Return the line with ``order - 1`` end tokens before each document, and each token's offset in it."""
        pads = self.order - 1
        closed = line == self.end
        document = np.cumsum(closed) - closed  # index of each token's document
        positions = np.arange(len(line)) + pads * (document + 1)
        n_documents = int(document[-1]) + 1 if len(line) else 0
        tokens = np.full(len(line) + pads * n_documents, self.end)
        tokens[positions] = line
        starts = np.flatnonzero(np.diff(document, prepend=-1))  # start of each document in the line
        firsts = starts + pads * np.arange(n_documents)
        offsets = np.arange(len(tokens)) - np.repeat(firsts, np.diff(firsts, append=len(tokens)))
        return tokens, offsets

    @staticmethod
    def _histories(numbers: Line, positions: Line, level: int) -> Line:
        """Return the number of the history of ``level`` tokens before each position."""
        return numbers[positions - 1] if level else np.zeros(len(positions), np.int64)


def estimate_discounts(counts: Line) -> Discounts:
    """Estimate discounts for counts of 1, 2 and more by Chen and Goodman's formula: (n-grams,) -> three numbers.

    >>> estimate_discounts(np.array([1, 1, 1, 1, 2, 2, 3, 4]))
    (0.5, 1.25, 1.0)
    """
    once, twice, thrice, four = (int(np.count_nonzero(counts == times)) for times in (1, 2, 3, 4))
    if not (once and twice and thrice and four):
        return FALLBACK
    share = once / (once + 2 * twice)
    found = 1 - 2 * share * twice / once, 2 - 3 * share * thrice / twice, 3 - 4 * share * four / thrice
    return found if all(0 <= each <= most for most, each in enumerate(found, 1)) else FALLBACK


def _interpolated(order: _Order, histories: Line, found: Line, below: Amounts) -> Amounts:
    """Interpolate the probabilities with those of the order below, which are used alone for unseen histories."""
    known = np.flatnonzero(histories >= 0)
    known = known[order.totals[histories[known]] > 0]
    total, saved = order.totals[histories[known]], order.saved[histories[known]]
    kept = np.where(found[known] >= 0, order.kept[found[known]], 0.0)
    probabilities = below.copy()
    probabilities[known] = (kept + saved * below[known]) / total
    return probabilities


def _ranked(keys: Line) -> tuple[Line, Line, Line]:
    """Return sorted unique keys, the first position of each, and the rank of every key: (n,) -> (m,), (m,), (n,)."""
    order = np.argsort(keys, kind="stable")
    ordered = keys[order]
    is_new = np.diff(ordered, prepend=ordered[:1] - 1) != 0
    ranks = np.empty_like(keys)
    ranks[order] = np.cumsum(is_new) - 1
    return ordered[is_new], order[is_new], ranks
