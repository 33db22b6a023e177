"""What lessons measure besides the loss: guesses without the future, guesses after a shuffled past, written words."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np
import torch
from torch import Tensor

from kotha.course.lessons.classroom import Classroom
from kotha.course.lessons.learning import held_out_losses
from kotha.generation.plain import continue_plainly
from kotha.generation.settings import SamplingSettings
from kotha.model.evaluating import evaluating
from kotha.model.gpt import GPT

# Places of a window at which it is cut, and windows that are looked at.
_CUTS, _WINDOWS = 6, 64
# How a lesson's model writes: mostly what it finds likely.
_WRITING = SamplingSettings(temperature=0.5, top_k=10, repetition_penalty=None)
_TEXTS, _WRITTEN = 3, 120


def cuts(length: int) -> list[int]:
    """Some places to cut a window of a length at, its end among them.

    >>> cuts(32)
    [5, 10, 16, 21, 26, 32]
    """
    return sorted({max(1, length * part // _CUTS) for part in range(1, _CUTS + 1)})


@torch.no_grad()
def loss_at(model: Any, windows: Tensor, guess: Callable[[Tensor, int], Tensor], places: Sequence[int]) -> float:
    """Nats of the tokens at some places; ``guess`` has scores for the token at a place: (N, T + 1) -> (N, V)."""
    windows, losses = windows[:_WINDOWS], []
    with evaluating(model):
        for place in places:
            losses.append(-guess(windows, place).log_softmax(dim=-1).gather(1, windows[:, place : place + 1]))
    return torch.cat(losses).mean().item()


def blind_loss(model: Any, windows: Tensor) -> float:
    """Nats of a next token where the model is given nothing but what comes before it, as when it writes."""
    places = cuts(windows.shape[1] - 1)
    return loss_at(model, windows, lambda some, place: model.head(model.hidden(some[:, :place])[:, -1]), places)


def sighted_loss(model: Any, windows: Tensor) -> float:
    """The same tokens guessed as in training, the whole window before the model at once."""
    places = [place - 1 for place in cuts(windows.shape[1] - 1)]
    return held_out_losses(model, windows[:_WINDOWS])[:, places].mean().item()


@torch.no_grad()
def moved_by_shuffling(model: Any, windows: Tensor, seed: int = 0) -> float:
    """How far the last guess moves when all before the last token comes in another order; 0 is not at all, 1 is wholly.

    The distance of the two distributions: half the sum of the differences (total variation).
    """
    windows = windows[:_WINDOWS, :-1]
    order = np.random.default_rng(seed).permutation(windows.shape[1] - 1)
    shuffled = torch.cat((windows[:, order], windows[:, -1:]), dim=1)
    with evaluating(model):
        told, anew = (model.head(model.hidden(some)[:, -1]).softmax(dim=-1) for some in (windows, shuffled))
    moved: Tensor = (told - anew).abs().sum(dim=-1) / 2  # (N,)
    return moved.mean().item()


@dataclass(frozen=True)
class WrittenWords:
    """What a model wrote, and how many of its whole words are words of the texts that it learned from."""

    texts: Sequence[str]
    known: int
    words: int

    @property
    def share(self) -> float:
        """The share of known words."""
        return self.known / max(1, self.words)


@lru_cache(maxsize=256)
def let_write(model: GPT, room: Classroom, seed: int) -> WrittenWords:
    """Let a model go on with the beginnings of held-out texts, and look its words up."""
    end, beginning = room.tokenizer.special["eos"], room.sizes.context_length // 2
    texts, known, words = [], 0, 0
    for place, text in enumerate(room.held_out_texts[:_TEXTS]):
        start = [end, *room.tokenizer.encode(text)][:beginning]
        settings = replace(_WRITING, seed=seed * _TEXTS + place)
        ids = continue_plainly(model, start, _WRITTEN, settings, ends={end})
        given, whole = (room.tokenizer.decode(each) for each in (start, [*start, *ids]))
        texts.append(whole)
        new = whole[len(given) :].split()[1:-1]  # the first goes on with the prompt's last word, the last may be cut
        known, words = known + sum(word in room.words for word in new), words + len(new)
    return WrittenWords(texts, known, words)
