"""A minimal training loop for lessons, which also records the held-out loss during training.

The loop works like that in ``kotha.training.loop``, but without checkpoints, folders or resuming. The unusual models in
a lesson have no config that could be saved in a run folder.
"""

import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from kotha.course.lessons.measures import held_out_loss
from kotha.course.lessons.result import Line
from kotha.course.lessons.training_data import Classroom, Sizes
from kotha.model.evaluating import evaluating
from kotha.model.loss import next_token_loss
from kotha.training.device import choose_arithmetic
from kotha.training.optim import Optimizers, learning_rate_share

# The number of evaluations during training, and the number of held-out windows in each.
_LOOKS, _WINDOWS_ON_THE_WAY = 8, 64
# The reported training loss is the mean of the last steps.
_LAST = 25
# Seeds that no step uses: one for held-out examples, one for the fixed training examples of a synthetic task.
HELD_OUT, _KNOWN = 2**31, 2**30


def next_tokens(model: Any, sequences: Tensor) -> Tensor:
    """Return the next-token loss: (B, T + 1) -> ()."""
    return next_token_loss(model.hidden(sequences[:, :-1]), model.head.weight, sequences[:, 1:], model.head.bias)


@dataclass(frozen=True)
class Puzzle:
    """A synthetic task and its data: randomly drawn examples with their right answers."""

    draw: Callable[[tuple[int, ...], int], Tensor]  # examples from a seed, one per row
    answer: Callable[[Any, Tensor], tuple[Tensor, Tensor]]  # logits of answers (…, V), and the right answers (…)
    rows: int
    held_out: int
    known: int | None = None  # number of fixed training examples; None: each step draws new ones

    def batch(self, seed: int, step: int) -> Tensor:
        """Return the examples for a step."""
        if self.known is None:
            return self.draw((seed, step), self.rows)
        chosen = np.random.default_rng((seed, step)).integers(0, self.known, self.rows)
        return self.draw((seed, _KNOWN), self.known)[torch.from_numpy(chosen)]

    def windows(self, most: int | None = None) -> Tensor:
        """Return held-out examples."""
        return self.draw((HELD_OUT,), self.held_out if most is None else min(most, self.held_out))

    def loss(self, model: Any, rows: Tensor) -> Tensor:
        """Return the loss on the answers."""
        scores, truth = self.answer(model, rows)
        return cross_entropy(scores.flatten(0, -2), truth.flatten())

    @torch.no_grad()
    def right(self, model: Any, rows: Tensor | None = None) -> Tensor:
        """Return a mask of the correct answers."""
        with evaluating(model):
            scores, truth = self.answer(model, self.windows() if rows is None else rows)
        return scores.argmax(dim=-1) == truth

    def share_right(self, model: Any, rows: Tensor | None = None) -> float:
        """Return the share of right answers."""
        return self.right(model, rows).float().mean().item()

    def task(self, make: Callable[[], nn.Module]) -> "Assignment":
        """Return the assignment to train a model on this task."""
        return Assignment(make, self, self.loss, self.share_right)


@dataclass(frozen=True)
class Assignment:
    """A training assignment: a model, its training data and its loss."""

    make: Callable[[], Any]
    desk: Classroom | Puzzle
    objective: Callable[[Any, Tensor], Tensor] = next_tokens
    look: Callable[[Any], float] | None = None  # measure for the curve; None: held-out loss
    steps: int | None = None  # None: as in the lesson's sizes


@dataclass
class Taught:
    """A trained model, with figures recorded during training."""

    model: Any
    task: Assignment
    seed: int
    training_loss: float = 0.0  # nats, mean of the last steps
    curve: list[tuple[int, float]] = field(default_factory=list)  # (step, measure)
    first_gradients: list[float] = field(default_factory=list)  # per block, at the first step


def learn(task: Assignment, sizes: Sizes, seed: int, on_step: Callable[[], None] = lambda: None) -> Taught:
    """Build and train a model."""
    choose_arithmetic("float32", "cpu").settle()
    torch.manual_seed(seed)
    sizes = replace(sizes, steps=task.steps or sizes.steps)
    model, config, desk = task.make(), sizes.training(seed), task.desk
    optimizers, scaler = Optimizers(model, config), torch.amp.GradScaler(enabled=False)
    windows = desk.windows(_WINDOWS_ON_THE_WAY)
    look = task.look or (lambda model: held_out_loss(model, windows))
    every, losses, taught = max(1, sizes.steps // _LOOKS), [], Taught(model, task, seed)
    for step in range(sizes.steps):
        torch.manual_seed(int(np.random.SeedSequence([seed, step]).generate_state(1)[0]))  # makes dropout reproducible
        optimizers.set_share(learning_rate_share(step + 1, config))
        optimizers.zero_grad()
        loss = task.objective(model, desk.batch(seed, step))
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


def gradients_by_block(model: nn.Module) -> list[float]:
    """Return the root mean square gradient over each block's matrices; empty if the model has no blocks."""
    blocks = getattr(getattr(model, "stack", None), "blocks", ())
    found = []
    for block in blocks:
        grads = [each.grad.flatten() for each in block.parameters() if each.grad is not None and each.dim() == 2]
        found.append(torch.cat(grads).square().mean().sqrt().item())
    return found


def curve(runs: Sequence[Taught]) -> Line:
    """Return the mean curve over all seeds."""
    points = zip(*(run.curve for run in runs), strict=True)
    return [(float(each[0][0]), statistics.fmean(y for _, y in each)) for each in points]
