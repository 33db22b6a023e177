"""Beam search: for a translation, several beginnings are followed side by side, and the best whole one wins.

The likeliest next word is not always the start of the likeliest sentence. In each step every beam is extended by every
token, and the best of all these live on (Graves 2012, https://arxiv.org/abs/1211.3711). A finished sentence is scored
by its log-probability over ``length ** length_penalty``: at 0 short ones win, at 1 it is the average of a token. The
search ends when no beam that still runs could beat the worst of the finished ones, however long it grew.

The source is read once: each decoder layer's view of it is kept, and the target's keys are cached and follow the beams.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import torch

from kotha.errors import KothaError, UsageError
from kotha.generate.cache import RowCache
from kotha.generate.plain import NO_NUMBERS
from kotha.model.evaluating import evaluating
from kotha.model.seq2seq import Seq2Seq


@dataclass(frozen=True, kw_only=True)
class BeamSettings:
    """How a translation is looked for."""

    start: int  # the token that a target begins with; it is not part of the answer
    end: int  # the token that ends a target; nor is it
    beams: int = 4  # beginnings that are followed side by side; 1 takes the best token each time
    length_penalty: float = 1.0  # 0 lets short sentences win; more favours longer ones
    tokens: int | None = None  # at most this many tokens; None: as the context allows

    def __post_init__(self) -> None:
        if self.beams < 1:
            raise UsageError(f"beams={self.beams} follows nothing; use 1 or more, 4 is usual")
        if self.tokens is not None and self.tokens < 1:
            raise UsageError(f"tokens={self.tokens} leaves no room for an answer; use 1 or more")
        if not -10 <= self.length_penalty <= 10:
            raise UsageError(f"length_penalty={self.length_penalty} is out of range; use 0 to 2, 1 is usual")


@dataclass(frozen=True)
class Hypothesis:
    """A sentence that was found."""

    ids: tuple[int, ...]  # its tokens, without the start and the end
    score: float  # log-probability, the end included, over its length to the power of the length penalty


@torch.no_grad()
def beam_search(model: Seq2Seq, source: Sequence[int], settings: BeamSettings) -> list[Hypothesis]:
    """The best targets for a source, best first; at most ``settings.beams``."""
    if not source:
        raise UsageError("the source is empty; there is nothing to translate")
    with evaluating(model):
        return _Search(model, source, settings).run()


class _Search:
    """One search: the running beams, and the best of the finished."""

    def __init__(self, model: Seq2Seq, source: Sequence[int], settings: BeamSettings) -> None:
        self.model, self.settings = model, settings
        weight, config = model.tokens.weight, model.config
        self.longest = min(settings.tokens or config.context_length, config.context_length)
        encoded = model.encode(torch.tensor([source], device=weight.device))
        shape = (settings.beams, -1, -1, -1)
        self.memories = [(keys.expand(shape), values.expand(shape)) for keys, values in model.remember(encoded)]
        self.cache = RowCache(config, settings.beams, weight.dtype, weight.device, longest=self.longest)
        self.running: list[tuple[int, ...]] = [()] * settings.beams
        self.sums = torch.full((settings.beams,), -torch.inf, device=weight.device)
        self.sums[0] = 0.0  # all begin alike: one of them counts
        self.pending = torch.full((settings.beams, 1), settings.start, device=weight.device)
        self.finished: list[Hypothesis] = []

    def run(self) -> list[Hypothesis]:
        """Step until nothing better can come."""
        for length in range(1, self.longest + 1):
            self._step(length)
            if self._settled():
                break
        return self.finished

    def _step(self, length: int) -> None:
        """Extend every beam by every token, and keep the best."""
        beams = self.settings.beams
        self.cache.make_room(length)
        self.cache.even = length - 1
        hidden = self.model.decode(self.pending, self.memories, cache=self.cache)[:, 0]  # (beams, C)
        self.cache.advance()
        chances = self.model.head(hidden).float().log_softmax(dim=-1) + self.sums[:, None]  # (beams, V)
        n_best = min(2 * beams, chances.numel())  # so that as many remain when the half of them end
        sums, flat = chances.flatten().topk(n_best)
        if sums[0].isnan():
            raise KothaError(NO_NUMBERS)
        vocab_size = chances.shape[-1]
        candidates = zip(sums.tolist(), (flat // vocab_size).tolist(), (flat % vocab_size).tolist(), strict=True)
        going_on: list[tuple[float, int, int]] = []
        for rank, (total, beam, token) in enumerate(candidates):
            ends = token == self.settings.end
            if rank < beams and (ends or length == self.longest):
                self._finish(total, (*self.running[beam], *(() if ends else (token,))), length)
            if not ends and len(going_on) < beams:
                going_on.append((total, beam, token))
        going_on += [(-torch.inf, 0, self.settings.end)] * (beams - len(going_on))  # a tiny vocabulary has no more
        self._follow(going_on, length)

    def _follow(self, chosen: list[tuple[float, int, int]], length: int) -> None:
        """The beams of the next step, each with the past that it grew from."""
        device = self.sums.device
        self.running = [(*self.running[beam], token) for _, beam, token in chosen]
        self.sums = torch.tensor([total for total, _, _ in chosen], device=device)
        self.pending = torch.tensor([[token] for _, _, token in chosen], device=device)
        self.cache.reorder(torch.tensor([beam for _, beam, _ in chosen], device=device), used=length)

    def _finish(self, total: float, ids: tuple[int, ...], length: int) -> None:
        if total == -torch.inf:
            return
        self.finished.append(Hypothesis(ids, total / length**self.settings.length_penalty))
        self.finished = sorted(self.finished, key=lambda each: -each.score)[: self.settings.beams]

    def _settled(self) -> bool:
        """Whether no running beam can still be better than the worst that is kept."""
        if len(self.finished) < self.settings.beams:
            return False
        # A sum only falls; over the length that flatters it most, it stays below this.
        n = self.longest if self.settings.length_penalty > 0 else len(self.running[0])
        possible = float(self.sums.max()) / n**self.settings.length_penalty
        return bool(possible <= self.finished[-1].score)
