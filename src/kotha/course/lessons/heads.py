"""Lesson: one wide head compared with several narrow ones of the same total size.

The task is designed for this question: after a row of symbols, the model has to name those at four positions. A head
has a single softmax and therefore returns one weighted mean per query, from which the order of four symbols is hard to
recover. Several heads return several means, one per head.
"""

from functools import partial

import numpy as np
import torch
from torch import Tensor, nn

from kotha.course.lessons.learning import Puzzle
from kotha.course.lessons.measures import parameters_of
from kotha.course.lessons.runner import LessonPlan, MeasuredLesson
from kotha.course.lessons.training_data import Sizes
from kotha.inside.hook_points import attentions
from kotha.model.config import GPTConfig
from kotha.model.gpt import GPT
from kotha.model.initialization import initialize

_SYMBOLS, _LENGTH, _PLACES = 16, 12, (1, 4, 7, 10)


def draw(seed: tuple[int, ...], rows: int) -> Tensor:
    """Draw rows of random symbols, each followed by the question token: (rows, T + 1)."""
    symbols = np.random.default_rng(seed).integers(0, _SYMBOLS, (rows, _LENGTH))
    return torch.from_numpy(np.concatenate((symbols, np.full((rows, 1), _SYMBOLS)), axis=1))


class Recaller(GPT):
    """A one-layer GPT that predicts four symbols at once at the question token."""

    def __init__(self, config: GPTConfig) -> None:
        super().__init__(config)
        self.head = nn.Linear(config.d_model, len(_PLACES) * _SYMBOLS)
        initialize(self, config)

    def recall(self, rows: Tensor) -> tuple[Tensor, Tensor]:
        """Return the logits and the symbols for the four positions: (B, T + 1) -> (B, 4, symbols), (B, 4)."""
        logits: Tensor = self.head(self.hidden(rows)[:, -1])
        return logits.view(-1, len(_PLACES), _SYMBOLS), rows[:, _PLACES]


def four_places(batch_size: int) -> Puzzle:
    """Return the task of naming the symbols at four positions."""
    return Puzzle(draw, Recaller.recall, batch_size, held_out=512)


def make(sizes: Sizes, n_heads: int) -> Recaller:
    """Build a one-layer model with ``n_heads`` heads, always with the same total width."""
    config = sizes.gpt(vocab_size=_SYMBOLS + 1, context_length=_LENGTH + 1, n_layers=1, n_heads=n_heads)
    return Recaller(config)


def heads(lesson: MeasuredLesson) -> LessonPlan:
    """Compare different numbers of heads by correct symbols, completely correct rows and attention parameters."""
    puzzle = four_places(lesson.sizes.batch_size)
    return LessonPlan(
        {key: puzzle.task(partial(make, lesson.sizes, n)) for key, n in {"one": 1, "two": 2, "four": 4}.items()},
        {
            "right": lambda run: puzzle.share_right(run.model),
            "whole": lambda run: puzzle.right(run.model).all(dim=1).float().mean().item(),
            "attention": lambda run: parameters_of(*attentions(run.model).values()),
        },
    )
