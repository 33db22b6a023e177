"""Lesson: one wide head against several narrow ones, with the same number of weights.

The task is made for the question: symbols in a row, and at the end the model is to say those of four places. A head has
one softmax, so one mixture for each place that asks; from a mixture of four symbols the order in which they stood is
hard to tell. Several heads bring several mixtures.
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
    """Rows of random symbols, each with the mark of the question behind it: (rows, T + 1)."""
    symbols = np.random.default_rng(seed).integers(0, _SYMBOLS, (rows, _LENGTH))
    return torch.from_numpy(np.concatenate((symbols, np.full((rows, 1), _SYMBOLS)), axis=1))


class Recaller(GPT):
    """One layer, whose head says four symbols at once where the question stands."""

    def __init__(self, config: GPTConfig) -> None:
        super().__init__(config)
        self.head = nn.Linear(config.d_model, len(_PLACES) * _SYMBOLS)
        initialize(self, config)

    def recall(self, rows: Tensor) -> tuple[Tensor, Tensor]:
        """Scores for each place's symbol, and the symbols: (B, T + 1) -> (B, 4, symbols), (B, 4)."""
        said: Tensor = self.head(self.hidden(rows)[:, -1])
        return said.view(-1, len(_PLACES), _SYMBOLS), rows[:, _PLACES]


def four_places(batch_size: int) -> Puzzle:
    """Say the symbols of four places."""
    return Puzzle(draw, Recaller.recall, batch_size, held_out=512)


def make(sizes: Sizes, n_heads: int) -> Recaller:
    """A model of one layer with so many heads; all of them together are as wide as ever."""
    config = sizes.gpt(vocab_size=_SYMBOLS + 1, context_length=_LENGTH + 1, n_layers=1, n_heads=n_heads)
    return Recaller(config)


def heads(lesson: MeasuredLesson) -> LessonPlan:
    """One with each number of heads; symbols that are right, rows that are, and the attention's weights."""
    puzzle = four_places(lesson.sizes.batch_size)
    return LessonPlan(
        {key: puzzle.task(partial(make, lesson.sizes, n)) for key, n in {"one": 1, "two": 2, "four": 4}.items()},
        {
            "right": lambda run: puzzle.share_right(run.model),
            "whole": lambda run: puzzle.right(run.model).all(dim=1).float().mean().item(),
            "attention": lambda run: parameters_of(*attentions(run.model).values()),
        },
    )
