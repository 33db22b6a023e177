"""Slow, readable versions of the computations; the fast versions must give the same results."""

import math
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence

import torch

from kotha.model.gpt import GPT
from kotha.text.ngram import FALLBACK, Discounts

Gram = tuple[int, ...]


class PlainKneserNey:
    """An n-gram model of token ids; see ``KneserNey`` for the arguments."""

    def __init__(
        self, line: Sequence[int], order: int, vocab_size: int, end: int, discounts: Sequence[Discounts] | None = None
    ) -> None:
        self.order, self.vocab_size, self.end = order, vocab_size, end
        self.counts: list[Counter[Gram]] = [Counter() for _ in range(order)]  # by length of the n-gram minus one
        top = Counter((*history, token) for history, token in self._places(line))
        self.counts[-1] = top
        for level in range(order - 1, 0, -1):  # below the top order: the number of different preceding tokens
            distinct = {gram[-level - 1 :] for gram in top}
            self.counts[level - 1] = Counter(gram[1:] for gram in distinct)
        self.discounts = [self._estimate(each) for each in self.counts] if discounts is None else list(discounts)
        self.followers: defaultdict[Gram, list[tuple[int, int]]] = defaultdict(list)  # each history's tokens, counts
        for counts in self.counts:
            for gram, count in counts.items():
                self.followers[gram[:-1]].append((gram[-1], count))

    def chance(self, history: Gram, token: int) -> float:
        """The probability of a token after the ``order - 1`` (or fewer) tokens before it."""
        below = self.chance(history[1:], token) if history else 1 / self.vocab_size
        followers = self.followers.get(history, [])
        total = sum(count for _, count in followers)
        if not total:
            return below
        discounts = (0.0, *self.discounts[len(history)])
        count = dict(followers).get(token, 0)
        kept = count - discounts[min(count, 3)]
        saved = sum(discounts[min(count, 3)] for _, count in followers)
        return (kept + saved * below) / total

    def nats(self, line: Sequence[int]) -> list[float]:
        """The loss in nats of every token in concatenated documents."""
        return [-math.log(self.chance(history, token)) for history, token in self._places(line)]

    def _places(self, line: Sequence[int]) -> Iterator[tuple[Gram, int]]:
        """Every token with the ``order - 1`` tokens before it; a document is preceded by end tokens."""
        before = (self.end,) * (self.order - 1)
        history = before
        for token in line:
            yield history, token
            history = before if token == self.end else (*history, token)[1:] if before else ()

    @staticmethod
    def _estimate(counts: Counter[Gram]) -> Discounts:
        n = Counter(counts.values())
        if not (n[1] and n[2] and n[3] and n[4]):
            return FALLBACK
        share = n[1] / (n[1] + 2 * n[2])
        found = 1 - 2 * share * n[2] / n[1], 2 - 3 * share * n[3] / n[2], 3 - 4 * share * n[4] / n[3]
        return found if all(0 <= each <= most for most, each in enumerate(found, 1)) else FALLBACK


@torch.no_grad()
def token_nats_plainly(model: GPT, sequence: Sequence[int], context: int, stride: int) -> list[float]:
    """The slow version of ``token_nats``: the model reads the text before each token separately."""
    nats = []
    for place, token in enumerate(sequence[1:]):
        moves = max(0, -(-(place + 1 - context) // stride))  # how often the window has moved
        seen = torch.tensor([list(sequence[moves * stride : place + 1])], device=model.tokens.weight.device)
        chances = model(seen)[0, -1].double().softmax(-1)  # (V,)
        nats.append(-math.log(float(chances[token])))
    return nats
