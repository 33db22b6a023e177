"""Beam search for translation: extend several candidates in parallel and return the best finished one.

The most likely next token is not always the start of the most likely sentence. At each step every beam is extended by
every token, and the best extensions are kept (Graves 2012, https://arxiv.org/abs/1211.3711). A finished sentence is
scored by its log-probability per token, because the sum would favour short sentences. The search ends when no running
beam can beat the worst finished candidate.

Each source is encoded once, and its keys and values are computed once per decoder layer. The target's keys and values
are cached and reordered with the beams. Many sources are translated in one batch, with one row per beam and source.
Finished searches are removed from the batch.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from kotha.errors import DataError, NotFiniteError, UsageError
from kotha.generation.cache import RowCache
from kotha.i18n.message import Message, OnProgress, Option
from kotha.model.evaluating import evaluating, overflow_as_nan
from kotha.model.seq2seq import Seq2Seq
from kotha.text.tokenizer.tokenizer import Tokenizer


@dataclass(frozen=True, kw_only=True)
class BeamSettings:
    """Settings of a beam search."""

    start: int  # start-of-target token, not part of the output
    end: int  # end-of-target token, not part of the output
    beams: int = 4  # candidates kept at each step; 1 is greedy decoding
    tokens: int | None = None  # largest number of tokens (default: as many as fit the context)

    def __post_init__(self) -> None:
        if self.beams < 1:
            raise UsageError("{beams} is too small; use 1 or more (4 is typical)", beams=Option("beams", self.beams))
        if self.tokens is not None and self.tokens < 1:
            raise UsageError("{tokens} is too small; use 1 or more", tokens=Option("tokens", self.tokens))


@dataclass(frozen=True)
class Hypothesis:
    """A finished candidate."""

    ids: tuple[int, ...]  # without the start and end tokens
    score: float  # log-probability per token, including the end token


def beam_search(model: Seq2Seq, source: Sequence[int], settings: BeamSettings) -> list[Hypothesis]:
    """Return up to ``settings.beams`` targets for a source, best first."""
    return beam_searches(model, [source], settings)[0]


@torch.no_grad()
def beam_searches(model: Seq2Seq, sources: Sequence[Sequence[int]], settings: BeamSettings) -> list[list[Hypothesis]]:
    """Return the best targets for each source, computed in one batch."""
    if not all(sources):
        raise UsageError("the source is empty; there is nothing to translate")
    if not sources:
        return []
    device, beams, context = model.tokens.weight.device, settings.beams, model.config.context_length
    longest = min(settings.tokens or context, context)
    searches = running = [_Search(settings, longest) for _ in sources]
    ids = [torch.tensor(source, device=device) for source in sources]
    real = pad_sequence([torch.ones_like(each, dtype=torch.bool) for each in ids], batch_first=True)  # (n, S)
    with evaluating(model), overflow_as_nan(model):
        memories = model.project_kv(model.encode(pad_sequence(ids, batch_first=True), None if real.all() else real))
        n_rows = len(sources) * beams
        cache = RowCache(model.config, n_rows, model.tokens.weight.dtype, device, longest=longest)
        rows = torch.arange(len(sources), device=device).repeat_interleave(beams)  # beam i is one of search i // beams
        pending = torch.full((n_rows, 1), settings.start, device=device)
        while running:
            if len(rows) != len(real):  # all beams of a source share its encoder output
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
    """Extend every beam of each search by every token, keep the best extensions, and return the rows they extend."""
    sums = torch.tensor([search.sums for search in running], device=chances.device)  # (n, beams)
    beams, vocab_size = sums.shape[1], chances.shape[-1]
    totals = (chances.view(*sums.shape, -1) + sums[:, :, None]).flatten(1)
    best, flat = totals.topk(min(2 * beams, totals.shape[1]))  # enough candidates even if half of them have ended
    if best.isnan().any():
        raise NotFiniteError
    candidates = zip(best.tolist(), (flat // vocab_size).tolist(), (flat % vocab_size).tolist(), strict=True)
    return {
        search: [index * beams + beam for beam in search.choose(zip(*these, strict=True))]
        for index, (search, these) in enumerate(zip(running, candidates, strict=True))
    }


class _Search:
    """The search for one source: its running beams and best finished candidates."""

    def __init__(self, settings: BeamSettings, longest: int) -> None:
        self.settings, self.longest = settings, longest
        self.running: list[tuple[int, ...]] = [()] * settings.beams
        self.sums = [0.0] + [-math.inf] * (settings.beams - 1)  # all beams are equal at first, so only one is active
        self.finished: list[Hypothesis] = []

    def choose(self, candidates: Iterable[tuple[float, int, int]]) -> list[int]:
        """Keep the best of the candidates (sum, beam, token), sorted best first, and return the beams they extend."""
        beams, length = self.settings.beams, len(self.running[0]) + 1
        continued: list[tuple[float, int, int]] = []
        for rank, (total, beam, token) in enumerate(candidates):
            ends = token == self.settings.end
            if rank < beams and (ends or length == self.longest) and total > -math.inf:
                ids = (*self.running[beam], *(() if ends else (token,)))
                self.finished.append(Hypothesis(ids, total / length))
            if not ends and len(continued) < beams:
                continued.append((total, beam, token))
        self.finished = sorted(self.finished, key=lambda each: -each.score)[:beams]
        continued += [(-math.inf, 0, self.settings.end)] * (
            beams - len(continued)
        )  # a tiny vocabulary has fewer candidates
        self.running = [(*self.running[beam], token) for _, beam, token in continued]
        self.sums = [total for total, _, _ in continued]
        return [beam for _, beam, _ in continued]

    @property
    def settled(self) -> bool:
        """Whether no running beam can still beat the worst finished candidate."""
        if len(self.running[0]) == self.longest or len(self.finished) < self.settings.beams:
            return len(self.running[0]) == self.longest
        # Log-probabilities only decrease, so the sum divided by the maximum length is an upper bound on the score.
        return max(self.sums) / self.longest <= self.finished[-1].score


# -- texts -------------------------------------------------------------------------------------------------------------

# Sentences per batch (enough to keep two cores busy), and the limit on their cache in bytes.
_AT_ONCE = 32
_CACHE_BYTES = 256 << 20


def translate(
    model: Seq2Seq, tokenizer: Tokenizer, sources: Sequence[str], beams: int = 4, on_progress: OnProgress | None = None
) -> list[str]:
    """Return the best translation of each source. Long sources are truncated; an empty source gives an empty string."""
    if not {"bos", "eos"} <= tokenizer.special.keys():
        raise DataError(
            "the tokenizer has no bos and eos tokens, which translation requires; use the tokenizer that the model "
            "was trained with"
        )
    config = model.config
    settings = BeamSettings(start=tokenizer.special["bos"], end=tokenizer.special["eos"], beams=beams)
    room = config.context_length - 1
    read = [tokenizer.encode(source)[:room] if source.strip() else [] for source in sources]
    # Sorted by length, to reduce padding.
    order = sorted((index for index, ids in enumerate(read) if ids), key=lambda index: len(read[index]))
    one = 2 * 4 * config.n_decoder_layers * config.n_kv_heads * config.d_head * config.context_length * beams
    at_once = max(1, min(_AT_ONCE, _CACHE_BYTES // one))
    found, done = [""] * len(sources), len(sources) - len(order)
    for start in range(0, len(order), at_once):
        batch = order[start : start + at_once]
        searched = beam_searches(model, [[*read[index], settings.end] for index in batch], settings)
        for index, best in zip(batch, searched, strict=True):
            found[index] = tokenizer.decode(best[0].ids) if best else ""
        done += len(batch)
        if on_progress is not None:
            on_progress(Message("translating"), done, len(sources))
    return found
