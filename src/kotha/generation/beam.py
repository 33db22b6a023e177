"""Beam search: for a translation, several beginnings are followed side by side, and the best whole one wins.

The likeliest next word is not always the start of the likeliest sentence. In each step every beam is extended by every
token, and the best of all these live on (Graves 2012, https://arxiv.org/abs/1211.3711). A finished sentence is scored
by its log-probability a token, else short ones would win. The search ends when no beam that still runs could beat the
worst of the finished ones, however long it grew.

A source is read once: each decoder layer's view of it is kept, and the target's keys are cached and follow the beams.
Many sources are searched side by side, a row of the model's batch for each beam of each; one that is settled leaves.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from kotha.errors import DataError, KothaError, UsageError
from kotha.generation.cache import RowCache
from kotha.generation.plain import NO_NUMBERS
from kotha.i18n.message import Message, OnProgress, Option
from kotha.model.evaluating import evaluating
from kotha.model.seq2seq import Seq2Seq
from kotha.text.tokenizer.tokenizer import Tokenizer


@dataclass(frozen=True, kw_only=True)
class BeamSettings:
    """How a translation is looked for."""

    start: int  # the token that a target begins with; it is not part of the answer
    end: int  # the token that ends a target; nor is it
    beams: int = 4  # beginnings that are followed side by side; 1 takes the best token each time
    tokens: int | None = None  # at most this many tokens; None: as the context allows

    def __post_init__(self) -> None:
        if self.beams < 1:
            raise UsageError("{beams} is too small; use 1 or more (4 is typical)", beams=Option("beams", self.beams))
        if self.tokens is not None and self.tokens < 1:
            raise UsageError("{tokens} is too small; use 1 or more", tokens=Option("tokens", self.tokens))


@dataclass(frozen=True)
class Hypothesis:
    """A sentence that was found."""

    ids: tuple[int, ...]  # its tokens, without the start and the end
    score: float  # log-probability a token, the end included


def beam_search(model: Seq2Seq, source: Sequence[int], settings: BeamSettings) -> list[Hypothesis]:
    """The best targets for a source, best first; at most ``settings.beams``."""
    return beam_searches(model, [source], settings)[0]


@torch.no_grad()
def beam_searches(model: Seq2Seq, sources: Sequence[Sequence[int]], settings: BeamSettings) -> list[list[Hypothesis]]:
    """The best targets for each of several sources that are searched side by side."""
    if not all(sources):
        raise UsageError("the source is empty; there is nothing to translate")
    if not sources:
        return []
    device, beams, context = model.tokens.weight.device, settings.beams, model.config.context_length
    longest = min(settings.tokens or context, context)
    searches = running = [_Search(settings, longest) for _ in sources]
    ids = [torch.tensor(source, device=device) for source in sources]
    real = pad_sequence([torch.ones_like(each, dtype=torch.bool) for each in ids], batch_first=True)  # (n, S)
    with evaluating(model):
        memories = model.project_kv(model.encode(pad_sequence(ids, batch_first=True), None if real.all() else real))
        n_rows = len(sources) * beams
        cache = RowCache(model.config, n_rows, model.tokens.weight.dtype, device, longest=longest)
        rows = torch.arange(len(sources), device=device).repeat_interleave(beams)  # beam i is one of search i // beams
        pending = torch.full((n_rows, 1), settings.start, device=device)
        while running:
            if len(rows) != len(real):  # all beams of a source have read the same, so any of them will do
                memories, real = [(keys[rows], values[rows]) for keys, values in memories], real[rows]
            used, cache.n_rows = len(running[0].running[0]), len(rows)
            cache.make_room(used + 1)
            cache.even = used
            hidden = model.decode(pending, memories, None if real.all() else real, cache)[:, 0]  # (rows, C)
            grown = _grow(running, model.head(hidden).float().log_softmax(dim=-1))
            running = [search for search in running if not search.settled]
            rows = torch.tensor([row for search in running for row in grown[search]], dtype=torch.long, device=device)
            pending = torch.tensor([[line[-1]] for search in running for line in search.running], device=device)
            cache.reorder(rows, used=used + 1)
    return [search.finished for search in searches]


def _grow(running: Sequence["_Search"], chances: Tensor) -> dict["_Search", list[int]]:
    """Extend every beam of each search by every token, (rows, V), and keep the best; the rows that they grew from."""
    sums = torch.tensor([search.sums for search in running], device=chances.device)  # (n, beams)
    beams, vocab_size = sums.shape[1], chances.shape[-1]
    totals = (chances.view(*sums.shape, -1) + sums[:, :, None]).flatten(1)
    best, flat = totals.topk(min(2 * beams, totals.shape[1]))  # so that as many remain when the half of them end
    if best.isnan().any():
        raise KothaError(NO_NUMBERS)
    candidates = zip(best.tolist(), (flat // vocab_size).tolist(), (flat % vocab_size).tolist(), strict=True)
    return {
        search: [place * beams + beam for beam in search.choose(zip(*these, strict=True))]
        for place, (search, these) in enumerate(zip(running, candidates, strict=True))
    }


class _Search:
    """One source's search: the running beams, and the best of the finished."""

    def __init__(self, settings: BeamSettings, longest: int) -> None:
        self.settings, self.longest = settings, longest
        self.running: list[tuple[int, ...]] = [()] * settings.beams
        self.sums = [0.0] + [-math.inf] * (settings.beams - 1)  # all begin alike: one of them counts
        self.finished: list[Hypothesis] = []

    def choose(self, candidates: Iterable[tuple[float, int, int]]) -> list[int]:
        """Keep the best of the candidates (sum, beam, token), best first; the beams that they grew from."""
        beams, length = self.settings.beams, len(self.running[0]) + 1
        going_on: list[tuple[float, int, int]] = []
        for rank, (total, beam, token) in enumerate(candidates):
            ends = token == self.settings.end
            if rank < beams and (ends or length == self.longest) and total > -math.inf:
                ids = (*self.running[beam], *(() if ends else (token,)))
                self.finished.append(Hypothesis(ids, total / length))
            if not ends and len(going_on) < beams:
                going_on.append((total, beam, token))
        self.finished = sorted(self.finished, key=lambda each: -each.score)[:beams]
        going_on += [(-math.inf, 0, self.settings.end)] * (beams - len(going_on))  # a tiny vocabulary has no more
        self.running = [(*self.running[beam], token) for _, beam, token in going_on]
        self.sums = [total for total, _, _ in going_on]
        return [beam for _, beam, _ in going_on]

    @property
    def settled(self) -> bool:
        """Whether no running beam can still be better than the worst that is kept."""
        if len(self.running[0]) == self.longest or len(self.finished) < self.settings.beams:
            return len(self.running[0]) == self.longest
        # A sum only falls; over the length that flatters it most, it stays below this.
        return max(self.sums) / self.longest <= self.finished[-1].score


# -- texts -------------------------------------------------------------------------------------------------------------

# Sentences that are searched side by side: as many as keep two cores busy, while their cache stays below so many bytes.
_AT_ONCE = 32
_CACHE_BYTES = 256 << 20


def translate(
    model: Seq2Seq, tokenizer: Tokenizer, sources: Sequence[str], beams: int = 4, on_progress: OnProgress | None = None
) -> list[str]:
    """The best translation of each source; of one that is too long the beginning is read, of an empty one nothing."""
    if not {"bos", "eos"} <= tokenizer.special.keys():
        raise DataError(
            "the tokenizer has no bos and eos tokens, which translation needs; use the one the model was trained with"
        )
    config = model.config
    settings = BeamSettings(start=tokenizer.special["bos"], end=tokenizer.special["eos"], beams=beams)
    room = config.context_length - 1
    read = [tokenizer.encode(source)[:room] if source.strip() else [] for source in sources]
    # Those of like length together: what is filled up is read for nothing.
    asked = sorted((place for place, ids in enumerate(read) if ids), key=lambda place: len(read[place]))
    one = 2 * 4 * config.n_decoder_layers * config.n_kv_heads * config.d_head * config.context_length * beams
    at_once = max(1, min(_AT_ONCE, _CACHE_BYTES // one))
    found, done = [""] * len(sources), len(sources) - len(asked)
    for start in range(0, len(asked), at_once):
        places = asked[start : start + at_once]
        searched = beam_searches(model, [[*read[place], settings.end] for place in places], settings)
        for place, best in zip(places, searched, strict=True):
            found[place] = tokenizer.decode(best[0].ids) if best else ""
        done += len(places)
        if on_progress is not None:
            on_progress(Message("translating"), done, len(sources))
    return found
