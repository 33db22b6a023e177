"""What lessons measure: losses, guesses without the future or after a shuffled past, written words, parameters."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from kotha.course.lessons.training_data import Classroom
from kotha.generation.plain import continue_plainly
from kotha.generation.settings import SamplingSettings
from kotha.model.evaluating import evaluating
from kotha.model.gpt import GPT
from kotha.model.loss import token_losses

# Places of a window at which it is cut, and windows that are looked at, or read at once.
_CUTS, _WINDOWS = 6, 64
# How a lesson's model writes: mostly what it finds likely.
_WRITING = SamplingSettings(temperature=0.5, top_k=10, repetition_penalty=None)
_TEXTS, _WRITTEN = 3, 120


@torch.no_grad()
def held_out_losses(model: Any, windows: Tensor) -> Tensor:
    """Nats of each held-out token, every place of a window read at once: (N, T + 1) -> (N, T)."""
    with evaluating(model):
        found = [
            token_losses(model.hidden(some[:, :-1]), model.head.weight, some[:, 1:], model.head.bias)
            for some in torch.split(windows, _WINDOWS)
        ]
    return torch.cat(found)


def held_out_loss(model: Any, windows: Tensor) -> float:
    """Nats per token, on average."""
    return held_out_losses(model, windows).mean().item()


def cuts(length: int) -> list[int]:
    """Some places to cut a window of a length at, its end among them.

    >>> cuts(32)
    [5, 10, 16, 21, 26, 32]
    """
    return sorted({max(1, length * part // _CUTS) for part in range(1, _CUTS + 1)})


def from_the_past(model: Any, some: Tensor, place: int) -> Tensor:
    """Scores for the token at a place by a model that is given nothing but what comes before it: (N, V)."""
    scores: Tensor = model(some[:, :place])[:, -1]
    return scores


@torch.no_grad()
def loss_at(
    model: Any, windows: Tensor, places: Sequence[int], guess: Callable[[Any, Tensor, int], Tensor] = from_the_past
) -> float:
    """Nats of the tokens at some places; ``guess`` has scores for the token at a place: (N, T + 1) -> (N, V)."""
    windows, losses = windows[:_WINDOWS], []
    with evaluating(model):
        for place in places:
            losses.append(-guess(model, windows, place).log_softmax(dim=-1).gather(1, windows[:, place : place + 1]))
    return torch.cat(losses).mean().item()


def blind_loss(model: Any, windows: Tensor) -> float:
    """Nats of a next token where the model is given nothing but what comes before it, as when it writes."""
    return loss_at(model, windows, cuts(windows.shape[1] - 1))


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


@lru_cache(maxsize=256)
def let_write(model: GPT, room: Classroom, seed: int) -> tuple[list[str], float]:
    """A model's continuations of held-out texts, and the share of whole words that the texts it learned from have."""
    end, beginning = room.tokenizer.special["eos"], room.sizes.context_length // 2
    texts, new = [], []
    for place, text in enumerate(room.held_out_texts[:_TEXTS]):
        start = [end, *room.tokenizer.encode(text)][:beginning]
        settings = replace(_WRITING, seed=seed * _TEXTS + place)
        ids = continue_plainly(model, start, _WRITTEN, settings, ends={end})
        given, whole = (room.tokenizer.decode(each) for each in (start, [*start, *ids]))
        texts.append(whole)
        new += whole[len(given) :].split()[1:-1]  # the first goes on with the prompt's last word, the last may be cut
    return texts, sum(word in room.words for word in new) / max(1, len(new))


def parameters_of(*modules: nn.Module) -> float:
    """How many numbers some modules learn."""
    return float(sum(each.numel() for module in modules for each in module.parameters()))


def as_large_as(like: Callable[[], nn.Module], make: Callable[[int], nn.Module], widths: range) -> nn.Module:
    """The model of that width whose number of parameters comes nearest to another's."""
    with torch.device("meta"):
        wanted, counts = parameters_of(like()), {width: parameters_of(make(width)) for width in widths}
    return make(min(counts, key=lambda width: abs(counts[width] - wanted)))
