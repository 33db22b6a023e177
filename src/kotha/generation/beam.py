"""Beam search: for a translation, several beginnings are followed side by side, and the best whole one wins.

The likeliest next word is not always the start of the likeliest sentence. In each step every beam is extended by every
token, and the best of all these live on (Graves 2012, https://arxiv.org/abs/1211.3711). A finished sentence is scored
by its log-probability over ``length ** length_penalty``: at 0 short ones win, at 1 it is the average of a token. The
search ends when no beam that still runs could beat the worst of the finished ones, however long it grew.

A source is read once: each decoder layer's view of it is kept, and the target's keys are cached and follow the beams.
Many sources are searched side by side, a row of the model's batch for each beam of each; one that is settled leaves.
"""

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from kotha.errors import DataError, KothaError, UsageError
from kotha.generation.cache import RowCache
from kotha.generation.plain import NO_NUMBERS
from kotha.i18n.message import Message, OnProgress, Option
from kotha.model.config import Seq2SeqConfig
from kotha.model.evaluating import evaluating
from kotha.model.seq2seq import Seq2Seq
from kotha.text.tokenizer.tokenizer import Tokenizer


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
            raise UsageError("{beams} follows nothing; use 1 or more, 4 is usual", beams=Option("beams", self.beams))
        if self.tokens is not None and self.tokens < 1:
            raise UsageError(
                "{tokens} leaves no room for an answer; use 1 or more", tokens=Option("tokens", self.tokens)
            )
        if not -10 <= self.length_penalty <= 10:
            raise UsageError(
                "{length_penalty} is out of range; use 0 to 2, 1 is usual",
                length_penalty=Option("length_penalty", self.length_penalty),
            )


@dataclass(frozen=True)
class Hypothesis:
    """A sentence that was found."""

    ids: tuple[int, ...]  # its tokens, without the start and the end
    score: float  # log-probability, the end included, over its length to the power of the length penalty


def beam_search(model: Seq2Seq, source: Sequence[int], settings: BeamSettings) -> list[Hypothesis]:
    """The best targets for a source, best first; at most ``settings.beams``."""
    return beam_searches(model, [source], settings)[0]


@torch.no_grad()
def beam_searches(model: Seq2Seq, sources: Sequence[Sequence[int]], settings: BeamSettings) -> list[list[Hypothesis]]:
    """The best targets for each of several sources that are searched side by side."""
    if not all(sources):
        raise UsageError("the source is empty; there is nothing to translate")
    with evaluating(model):
        return _SideBySide(model, sources, settings).run() if sources else []


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
            if rank < beams and (ends or length == self.longest):
                self._finish(total, (*self.running[beam], *(() if ends else (token,))), length)
            if not ends and len(going_on) < beams:
                going_on.append((total, beam, token))
        going_on += [(-math.inf, 0, self.settings.end)] * (beams - len(going_on))  # a tiny vocabulary has no more
        self.running = [(*self.running[beam], token) for _, beam, token in going_on]
        self.sums = [total for total, _, _ in going_on]
        return [beam for _, beam, _ in going_on]

    def _finish(self, total: float, ids: tuple[int, ...], length: int) -> None:
        if total == -math.inf:
            return
        self.finished.append(Hypothesis(ids, total / length**self.settings.length_penalty))
        self.finished = sorted(self.finished, key=lambda each: -each.score)[: self.settings.beams]

    def settled(self) -> bool:
        """Whether no running beam can still be better than the worst that is kept."""
        length = len(self.running[0])
        if length == self.longest:
            return True
        if len(self.finished) < self.settings.beams:
            return False
        # A sum only falls; over the length that flatters it most, it stays below this.
        n = self.longest if self.settings.length_penalty > 0 else length
        return bool(max(self.sums) / n**self.settings.length_penalty <= self.finished[-1].score)


class _SideBySide:
    """Searches that share the model's steps; row ``i`` is a beam of search ``i // beams``."""

    def __init__(self, model: Seq2Seq, sources: Sequence[Sequence[int]], settings: BeamSettings) -> None:
        self.model, self.beams = model, settings.beams
        weight, config = model.tokens.weight, model.config
        self.device = weight.device
        self.longest = min(settings.tokens or config.context_length, config.context_length)
        self.searches = [_Search(settings, self.longest) for _ in sources]
        lengths = torch.tensor([len(source) for source in sources])
        real = (torch.arange(int(lengths.max())) < lengths[:, None]).to(self.device)
        self.real = None if real.all() else real  # (n, S); what is as long as all others needs no mask
        source = pad_sequence([torch.tensor(source) for source in sources], batch_first=True).to(self.device)
        self.memories = model.remember(model.encode(source, self.real))
        self._take(torch.arange(len(sources), device=self.device).repeat_interleave(self.beams))
        n_rows = len(sources) * self.beams
        self.cache = RowCache(config, n_rows, weight.dtype, self.device, longest=self.longest)
        self.pending = torch.full((n_rows, 1), settings.start, device=self.device)

    def _take(self, rows: Tensor) -> None:
        """What was read of the sources, for these of its rows."""
        self.memories = [(keys[rows], values[rows]) for keys, values in self.memories]
        self.real = None if self.real is None else self.real[rows]

    def run(self) -> list[list[Hypothesis]]:
        """Step until nothing better can come for any."""
        running, length = self.searches, 0
        while running:
            length += 1
            running = self._step(running, length)
        return [search.finished for search in self.searches]

    def _step(self, running: list[_Search], length: int) -> list[_Search]:
        """Extend every beam by every token, and keep the best of each search; the searches that go on."""
        self.cache.make_room(length)
        self.cache.even = length - 1
        hidden = self.model.decode(self.pending, self.memories, self.real, self.cache)[:, 0]  # (rows, C)
        self.cache.advance()
        sums = torch.tensor([search.sums for search in running], device=self.device)  # (n, beams)
        chances = self.model.head(hidden).float().log_softmax(dim=-1).unflatten(0, sums.shape) + sums[:, :, None]
        n_best = min(2 * self.beams, chances[0].numel())  # so that as many remain when the half of them end
        best, flat = chances.flatten(1).topk(n_best)  # (n, n_best)
        if best.isnan().any():
            raise KothaError(NO_NUMBERS)
        vocab_size = chances.shape[-1]
        candidates = zip(best.tolist(), (flat // vocab_size).tolist(), (flat % vocab_size).tolist(), strict=True)
        going_on, rows = [], []
        for place, (search, these) in enumerate(zip(running, candidates, strict=True)):
            grown_from = search.choose(zip(*these, strict=True))
            if not search.settled():
                going_on.append(search)
                rows += [place * self.beams + beam for beam in grown_from]
        self._follow(going_on, torch.tensor(rows, dtype=torch.long, device=self.device), length)
        return going_on

    def _follow(self, going_on: list[_Search], rows: Tensor, length: int) -> None:
        """The rows of the next step, each with the past that it grew from."""
        if len(rows) < len(self.pending):
            self._take(rows)  # all beams of a source have read the same, so any of them will do
        self.pending = torch.tensor([[ids[-1]] for search in going_on for ids in search.running], device=self.device)
        self.cache.reorder(rows, used=length)
        self.cache.n_rows = len(rows)


# -- texts -------------------------------------------------------------------------------------------------------------

# Sentences that are searched side by side: as many as keep two cores busy, while their cache stays below so many bytes.
_AT_ONCE = 32
_CACHE_BYTES = 256 << 20


def translate(
    model: Seq2Seq, tokenizer: Tokenizer, sources: Sequence[str], beams: int = 4, on_progress: OnProgress | None = None
) -> list[str]:
    """The best translation of each source; of one that is too long the beginning is read, of an empty one nothing."""
    if not {"bos", "eos"} <= tokenizer.special.keys():
        raise DataError("the tokenizer has no mark to start and end a target; use the one the model was trained with")
    settings = BeamSettings(start=tokenizer.special["bos"], end=tokenizer.special["eos"], beams=beams)
    room = model.config.context_length - 1
    read = [tokenizer.encode(source)[:room] if source.strip() else [] for source in sources]
    asked = {place: [*ids, settings.end] for place, ids in enumerate(read) if ids}
    found, done = [""] * len(sources), len(sources) - len(asked)
    for places in _groups(asked, _side_by_side(model.config, beams)):
        for place, best in zip(places, beam_searches(model, [asked[each] for each in places], settings), strict=True):
            found[place] = tokenizer.decode(best[0].ids) if best else ""
        done += len(places)
        if on_progress is not None:
            on_progress(Message("translating"), done, len(sources))
    return found


def _side_by_side(config: Seq2SeqConfig, beams: int) -> int:
    """How many sentences are searched at once."""
    one = 2 * 4 * config.n_decoder_layers * config.n_kv_heads * config.d_head * config.context_length * beams
    return max(1, min(_AT_ONCE, _CACHE_BYTES // one))


def _groups(asked: dict[int, list[int]], size: int) -> Iterator[list[int]]:
    """The places of sentences, those of like length together: what is filled up is read for nothing."""
    places = sorted(asked, key=lambda place: len(asked[place]))
    for start in range(0, len(places), size):
        yield places[start : start + size]
