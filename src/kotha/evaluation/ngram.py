"""What counting alone reaches: an n-gram model with interpolated modified Kneser-Ney smoothing.

The chance of a token after some history is what was counted after that history, each count reduced by a discount, and
the mass so saved is spread by the same rule for a history that is one token shorter, down to the uniform 1/V. Below the
top order a token counts not by how often it stood there but by after how many different tokens: "Francisco" is frequent
and says little of the future, for it follows one word. *Modified* means three discounts an order, for counts of 1, 2
and more, estimated from how many n-grams were seen once to four times. It is the best of the counting models (Chen and
Goodman 1999, https://doi.org/10.1006/csla.1999.0128) and the one that KenLM makes by default.

What must agree when two programs are compared: before a document stand n - 1 end marks, which are history and never
guessed (NLTK pads so; KenLM puts one mark, and counts n-grams that begin with it by occurrence); the unigram is mixed
with 1/V; where the discounts cannot be estimated, because no n-gram was seen just so often, they are 0.5, 1 and 1.5
(KenLM's).

Counting is sorting: an n-gram is the number of its history times V plus its last token, one 64-bit key; equal keys lie
side by side once sorted, and their rank numbers the n-grams for the next order. A test says the same in dictionaries,
and holds the two equal.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from kotha.errors import UsageError
from kotha.i18n.message import Option
from kotha.text.held_out import Line

Amounts = NDArray[np.float64]
Discounts = tuple[float, float, float]

# For counts of 1, 2 and more, where there is too little text to estimate them.
FALLBACK: Discounts = (0.5, 1.0, 1.5)
MAX_ORDER = 9


@dataclass(frozen=True)
class _Order:
    """All n-grams of one order: sorted keys with discounted counts, and for each history what they add up to."""

    keys: Line  # history number times V plus last token: (n-grams,)
    kept: Amounts  # each count less its discount: (n-grams,)
    totals: Amounts  # counts by history: (histories,)
    saved: Amounts  # discounts by history, to be spread by the order below: (histories,)

    def find(self, keys: Line) -> Line:
        """The number of each n-gram, -1 for one that was never seen."""
        if not len(self.keys):
            return np.full(len(keys), -1)
        places = np.searchsorted(self.keys, keys).clip(max=len(self.keys) - 1)
        return np.where(self.keys[places] == keys, places, -1)


class KneserNey:
    """An n-gram model of token ids.

    ``line`` holds documents end to end, each closed by ``end``.

    >>> model = KneserNey(np.array([1, 2, 0, 1, 2, 0, 1, 3, 0]), order=2, vocab_size=4, end=0)
    >>> model.nats(np.array([1, 2, 0])).round(3).tolist()
    [0.49, 0.808, 0.412]
    """

    def __init__(self, line: Line, order: int, vocab_size: int, end: int) -> None:
        if not 1 <= order <= MAX_ORDER:
            raise UsageError(
                "{order} must be between 1 and {max_order}; 3 and 5 are usual",
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
        """Nats of every token of documents end to end, each read from its start: (N,) -> (N,)."""
        tokens, offsets = self._padded(np.asarray(line, np.int64))
        targets = np.flatnonzero(offsets >= self.order - 1)
        chances = np.full(len(targets), 1 / self.vocab_size)
        numbers = np.zeros(len(tokens), np.int64)  # of the history that ends here; the empty one is number 0
        for level, order in enumerate(self._orders):
            places = np.flatnonzero(offsets >= level)
            found, histories = np.full(len(tokens), -1), self._histories(numbers, places, level)
            known = histories >= 0
            found[places[known]] = order.find(histories[known] * self.vocab_size + tokens[places[known]])
            here = self._histories(numbers, targets, level)
            chances = _interpolated(order, here, found[targets], chances)
            numbers = found
        nats: Amounts = -np.log(chances)
        return nats

    # -- counting -----------------------------------------------------------------------------------------------------

    def _count(self, line: Line) -> None:
        tokens, offsets = self._padded(line)
        numbers, n_histories = np.zeros(len(tokens), np.int64), 1
        keys: list[Line] = []
        counts: list[Line] = []  # of each order's n-grams: how often, and below the top after how many tokens
        for level in range(self.order):
            places = np.flatnonzero(offsets >= level)
            all_keys = self._histories(numbers, places, level) * self.vocab_size + tokens[places]
            unique, first, ranks = _ranked(all_keys)
            is_target = offsets[places] >= self.order - 1
            times = np.bincount(ranks[is_target], minlength=len(unique))
            if level:  # each n-gram that occurs is one more token before its shorter self
                shorter = numbers[places[first[times > 0]]]
                counts[-1] = np.bincount(shorter, minlength=len(keys[-1]))
            keys.append(unique)
            counts.append(times)
            numbers = np.full(len(tokens), -1)
            numbers[places] = ranks
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
        """The line with ``order - 1`` ends before each document, and each token's place in its document so padded."""
        pads = self.order - 1
        closed = line == self.end
        document = np.cumsum(closed) - closed  # the number of its document, for each token
        places = np.arange(len(line)) + pads * (document + 1)
        n_documents = int(document[-1]) + 1 if len(line) else 0
        tokens = np.full(len(line) + pads * n_documents, self.end)
        tokens[places] = line
        starts = np.flatnonzero(np.diff(document, prepend=-1))  # of each document in the line
        firsts = starts + pads * np.arange(n_documents)
        offsets = np.arange(len(tokens)) - np.repeat(firsts, np.diff(firsts, append=len(tokens)))
        return tokens, offsets

    @staticmethod
    def _histories(numbers: Line, places: Line, level: int) -> Line:
        """The number of the ``level`` tokens before each place."""
        return numbers[places - 1] if level else np.zeros(len(places), np.int64)


def estimate_discounts(counts: Line) -> Discounts:
    """Discounts for counts of 1, 2 and more, by Chen and Goodman's formula: from (n-grams,) counts.

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
    """Chances by one order, with what it saved spread by the order below; a history never followed leaves those."""
    known = np.flatnonzero(histories >= 0)
    known = known[order.totals[histories[known]] > 0]
    total, saved = order.totals[histories[known]], order.saved[histories[known]]
    kept = np.where(found[known] >= 0, order.kept[found[known]], 0.0)
    chances = below.copy()
    chances[known] = (kept + saved * below[known]) / total
    return chances


def _ranked(keys: Line) -> tuple[Line, Line, Line]:
    """The different keys in order, where each first stands, and the rank of every one: (n,) -> (m,), (m,), (n,)."""
    order = np.argsort(keys, kind="stable")
    ordered = keys[order]
    is_new = np.diff(ordered, prepend=ordered[:1] - 1) != 0
    ranks = np.empty_like(keys)
    ranks[order] = np.cumsum(is_new) - 1
    return ordered[is_new], order[is_new], ranks
