"""Measures used in lessons: losses, predictions from a prefix or from shuffled tokens, generated words, parameters."""

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

# The number of cuts per window, and of windows per measurement and per batch.
_CUTS, _WINDOWS = 6, 64
# Conservative sampling settings for a lesson's model.
_WRITING = SamplingSettings(temperature=0.5, top_k=10, repetition_penalty=None)
_TEXTS, _WRITTEN = 3, 120


@torch.no_grad()
def held_out_losses(model: Any, windows: Tensor) -> Tensor:
    """Return the loss for each held-out token in nats, from one pass per window: (N, T + 1) -> (N, T)."""
    with evaluating(model):
        found = [
            token_losses(model.hidden(some[:, :-1]), model.head.weight, some[:, 1:], model.head.bias)
            for some in torch.split(windows, _WINDOWS)
        ]
    return torch.cat(found)


def held_out_loss(model: Any, windows: Tensor) -> float:
    """Return the mean loss in nats per token."""
    return held_out_losses(model, windows).mean().item()


def cuts(length: int) -> list[int]:
    """Return positions at which to cut a window, the last one at its end.

    >>> cuts(32)
    [5, 10, 16, 21, 26, 32]
    """
    return sorted({max(1, length * part // _CUTS) for part in range(1, _CUTS + 1)})


def from_the_past(model: Any, some: Tensor, place: int) -> Tensor:
    """Return the logits for the token at a position, given only the tokens before it: (N, V)."""
    scores: Tensor = model(some[:, :place])[:, -1]
    return scores


@torch.no_grad()
def loss_at(
    model: Any, windows: Tensor, places: Sequence[int], guess: Callable[[Any, Tensor, int], Tensor] = from_the_past
) -> float:
    """Return the mean loss for the tokens at some positions; ``guess`` returns the logits: (N, T + 1) -> (N, V)."""
    windows, losses = windows[:_WINDOWS], []
    with evaluating(model):
        for place in places:
            losses.append(-guess(model, windows, place).log_softmax(dim=-1).gather(1, windows[:, place : place + 1]))
    return torch.cat(losses).mean().item()


def blind_loss(model: Any, windows: Tensor) -> float:
    """Return the next-token loss given only the earlier tokens, as in generation."""
    return loss_at(model, windows, cuts(windows.shape[1] - 1))


def sighted_loss(model: Any, windows: Tensor) -> float:
    """Return the loss for the same tokens when the model gets the full window, as in training."""
    places = [place - 1 for place in cuts(windows.shape[1] - 1)]
    return held_out_losses(model, windows[:_WINDOWS])[:, places].mean().item()


@torch.no_grad()
def moved_by_shuffling(model: Any, windows: Tensor, seed: int = 0) -> float:
    """Return how much the last prediction changes when the earlier tokens are shuffled, from 0 to 1.

    The measure is the total variation distance between the two distributions: half the sum of the absolute differences.
    """
    windows = windows[:_WINDOWS, :-1]
    order = np.random.default_rng(seed).permutation(windows.shape[1] - 1)
    shuffled = torch.cat((windows[:, order], windows[:, -1:]), dim=1)
    with evaluating(model):
        original, changed = (model.head(model.hidden(some)[:, -1]).softmax(dim=-1) for some in (windows, shuffled))
    moved: Tensor = (original - changed).abs().sum(dim=-1) / 2  # (N,)
    return moved.mean().item()


@lru_cache(maxsize=256)
def let_write(model: GPT, room: Classroom, seed: int) -> tuple[list[str], float]:
    """Return continuations of held-out texts, and the share of generated words that occur in the training data."""
    end, beginning = room.tokenizer.special["eos"], room.sizes.context_length // 2
    texts, new = [], []
    for place, text in enumerate(room.held_out_texts[:_TEXTS]):
        start = [end, *room.tokenizer.encode(text)][:beginning]
        settings = replace(_WRITING, seed=seed * _TEXTS + place)
        ids = continue_plainly(model, start, _WRITTEN, settings, ends={end})
        prompt, text = (room.tokenizer.decode(each) for each in (start, [*start, *ids]))
        texts.append(text)
        new += text[len(prompt) :].split()[1:-1]  # the first continues the prompt's last word, the last may be cut
    return texts, sum(word in room.words for word in new) / max(1, len(new))


def parameters_of(*modules: nn.Module) -> float:
    """Return the number of parameters in some modules."""
    return float(sum(each.numel() for module in modules for each in module.parameters()))


def as_large_as(like: Callable[[], nn.Module], make: Callable[[int], nn.Module], widths: range) -> nn.Module:
    """Build the model whose width gives the number of parameters closest to that of ``like``."""
    with torch.device("meta"):
        wanted, counts = parameters_of(like()), {width: parameters_of(make(width)) for width in widths}
    return make(min(counts, key=lambda width: abs(counts[width] - wanted)))
