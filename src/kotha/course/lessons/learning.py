"""A small model learns: the loop of a lesson, as plain as it can be, and how its loss on held-out text came down.

It is what ``kotha.training.loop`` does without its safeguards: no checkpoints, no folders, nothing to resume. The odd
models of a lesson have no config that a run folder could keep.
"""

import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
import torch
from torch import Tensor, nn

from kotha.course.lessons.classroom import Sizes
from kotha.course.lessons.occasion import Occasion
from kotha.course.lessons.result import Condition, Line
from kotha.model.evaluating import evaluating
from kotha.model.loss import next_token_loss, token_losses
from kotha.training.device import choose_arithmetic
from kotha.training.optim import Optimizers, learning_rate_share

# How often held-out windows are looked at on the way, and how many.
_LOOKS, _WINDOWS_ON_THE_WAY = 8, 64
# Training losses are noisy: the last so many are averaged.
_LAST = 25
# Windows that are read at once where nothing is learned.
_ROWS = 64


class Pupil(Protocol):
    """Whatever guesses tokens: a vector for each place, and a head that reads it."""

    head: nn.Linear

    def hidden(self, tokens: Tensor, /) -> Tensor:
        """(B, T) -> (B, T, C)."""
        ...


class Desk(Protocol):
    """What a model learns from: the texts of the classroom, or a made-up task."""

    def batch(self, seed: int, step: int) -> Tensor:
        """What a step reads, one example a row; it depends on the seed and the step alone."""
        ...

    def windows(self, most: int | None = None) -> Tensor:
        """Examples that nothing learns from."""
        ...


# The loss of a batch of examples at a step.
Objective = Callable[[Any, Tensor, int], Tensor]
Maker = Callable[[], nn.Module]


@dataclass
class Taught:
    """A model that has learned, and how it went."""

    model: Any
    training_loss: float = 0.0  # nats, mean of the last steps
    curve: list[tuple[int, float]] = field(default_factory=list)  # step, and held-out nats there
    first_gradients: list[float] = field(default_factory=list)  # of each block, before the first step


def next_tokens(model: Pupil, sequences: Tensor, step: int = 0) -> Tensor:
    """Guess each token from what the model sees where it stands: (B, T + 1) -> ()."""
    return next_token_loss(model.hidden(sequences[:, :-1]), model.head.weight, sequences[:, 1:], model.head.bias)


@torch.no_grad()
def held_out_losses(model: Any, windows: Tensor) -> Tensor:
    """Nats of each held-out token, every place of a window read at once: (N, T + 1) -> (N, T)."""
    with evaluating(model):
        found = [
            token_losses(model.hidden(some[:, :-1]), model.head.weight, some[:, 1:], model.head.bias)
            for some in torch.split(windows, _ROWS)
        ]
    return torch.cat(found)


def held_out_loss(model: Any, windows: Tensor) -> float:
    """Nats per token, on average."""
    return held_out_losses(model, windows).mean().item()


def learn(
    make: Maker,
    room: Desk,
    sizes: Sizes,
    seed: int,
    objective: Objective = next_tokens,
    look: Callable[[Any], float] | None = None,
    on_step: Callable[[], None] = lambda: None,
) -> Taught:
    """Make a model and teach it; ``look`` measures it on the way, by its held-out loss if nothing else is said."""
    choose_arithmetic("float32", "cpu").settle()
    torch.manual_seed(seed)
    model, config = make(), sizes.training(seed)
    optimizers, scaler = Optimizers(model, config), torch.amp.GradScaler(enabled=False)
    windows = room.windows(_WINDOWS_ON_THE_WAY)
    look = look or (lambda model: held_out_loss(model, windows))
    every, losses, taught = max(1, sizes.steps // _LOOKS), [], Taught(model)
    for step in range(sizes.steps):
        torch.manual_seed(int(np.random.SeedSequence([seed, step]).generate_state(1)[0]))  # what dropout drops
        optimizers.set_share(learning_rate_share(step + 1, config))
        optimizers.zero_grad()
        loss = objective(model, room.batch(seed, step), step)
        torch.autograd.backward(loss)
        if step == 0:
            taught.first_gradients = gradients_by_block(model)
        nn.utils.clip_grad_norm_(model.parameters(), config.gradient_clip or float("inf"))
        optimizers.step(scaler)
        losses.append(loss.item())
        if (step + 1) % every == 0:
            taught.curve.append((step + 1, look(model)))
        on_step()
    taught.training_loss = sum(losses[-_LAST:]) / len(losses[-_LAST:])
    return taught


def parameters_of(model: nn.Module) -> float:
    """How many numbers a model learns."""
    return float(sum(each.numel() for each in model.parameters()))


def gradients_by_block(model: nn.Module) -> list[float]:
    """How large the gradient in the matrices of each block is, root mean square; a model without blocks has none."""
    blocks = getattr(getattr(model, "stack", None), "blocks", ())
    found = []
    for block in blocks:
        grads = [each.grad.flatten() for each in block.parameters() if each.grad is not None and each.dim() == 2]
        found.append(torch.cat(grads).square().mean().sqrt().item())
    return found


def learn_all(
    occasion: Occasion, conditions: Mapping[str, Maker], desk: Desk | None = None, **how: Any
) -> dict[str, list[Taught]]:
    """Every condition with every seed, seed by seed: what slows a machine for a while slows all alike."""
    desk = desk or occasion.room
    step = occasion.counter(len(conditions) * len(occasion.seeds) * occasion.sizes.steps)
    found: dict[str, list[Taught]] = {name: [] for name in conditions}
    for seed in occasion.seeds:
        for name, make in conditions.items():
            found[name].append(learn(make, desk, occasion.sizes, seed, on_step=step, **how))
    return found


def curves(found: Mapping[str, Sequence[Taught]], conditions: Sequence[Condition]) -> list[Line]:
    """A line for each condition: what was measured on the way, the mean over seeds."""
    lines = []
    for condition in conditions:
        points = zip(*(run.curve for run in found[condition.key]), strict=True)
        line = [(float(each[0][0]), statistics.fmean(y for _, y in each)) for each in points]
        lines.append(Line(condition.title, line))
    return lines
