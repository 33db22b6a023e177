"""Lesson: a ViT compared with a convolutional network (CNN) of equal size, on synthetic digits.

A convolution combines neighbouring pixels in the same way at every position, so a CNN recognizes a digit at any
position. A ViT has to learn this from data. A ViT therefore needs more images, and fails on digits at positions where
none occurred in training.
"""

import json
from collections.abc import Callable
from functools import lru_cache, partial
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from kotha.course.lessons.learning import HELD_OUT, Puzzle
from kotha.course.lessons.measures import as_large_as
from kotha.course.lessons.runner import LessonPlan, MeasuredLesson
from kotha.course.lessons.training_data import Sizes
from kotha.model.config import ViTConfig
from kotha.model.vit import ViT

# Synthetic digits: ten bitmaps of seven rows by five columns, placed on a square image with noise.
SIDE, _PATCH = 16, 4
_BITMAPS: list[list[str]] = json.loads(Path(__file__).with_name("digits.json").read_text(encoding="utf-8"))
N_DIGITS = len(_BITMAPS)
_HEIGHT, _WIDTH = 7, 5
# Positions of the upper left corner: in training, and outside the training range.
_HOME, ELSEWHERE = range(3), range(6, SIDE - _HEIGHT + 1)
_SPECKS = 0.15  # standard deviation of the noise; ink is 0.6 to 1
_NEW_DIGITS = 500
_MOST_CHANNELS = 256


def bitmap(digit: int) -> NDArray[np.float32]:
    """Return the bitmap of a digit: (7, 5).

    >>> "".join("#" if ink else "." for ink in bitmap(7)[0])
    '#####'
    """
    return np.array([[ink == "#" for ink in row] for row in _BITMAPS[digit]], dtype=np.float32)


@lru_cache(maxsize=8)
def draw(seed: tuple[int, ...], count: int, corners: range = _HOME) -> Tensor:
    """Draw digits at random positions; each row holds the digit and then its pixels: (count, 1 + pixels)."""
    random = np.random.default_rng(seed)
    digits = random.integers(0, N_DIGITS, count)
    down, across = (random.choice(corners, count) for _ in range(2))
    images = random.normal(0, _SPECKS, (count, SIDE, SIDE)).astype(np.float32)
    ink = random.uniform(0.6, 1.0, count)
    for number, digit in enumerate(digits):
        top, left = down[number], across[number]
        images[number, top : top + _HEIGHT, left : left + _WIDTH] += ink[number] * bitmap(digit)
    return torch.from_numpy(np.concatenate((digits[:, None].astype(np.float32), images.reshape(count, -1)), axis=1))


def images_of(rows: Tensor) -> Tensor:
    """Return the images in examples: (B, 1 + pixels) -> (B, 1, side, side)."""
    return rows[:, 1:].view(-1, 1, SIDE, SIDE)


def digits_of(rows: Tensor) -> Tensor:
    """Return the digits in examples: (B, 1 + pixels) -> (B,)."""
    return rows[:, 0].long()


def digits(count: int, batch_size: int) -> Puzzle:
    """Return the task of recognizing digits, with ``count`` training images."""
    answer = lambda model, rows: (model(images_of(rows)), digits_of(rows))
    return Puzzle(draw, answer, batch_size, _NEW_DIGITS, known=count)


class Convolutions(nn.Module):
    """A CNN: two convolutions, each with pooling, and a linear head."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.first = nn.Conv2d(1, channels, 3, padding=1)
        self.second = nn.Conv2d(channels, 2 * channels, 3, padding=1)
        self.head = nn.Linear(2 * channels, N_DIGITS)

    def forward(self, images: Tensor) -> Tensor:
        """Return the logits for images: (B, 1, side, side) -> (B, digits)."""
        x = nn.functional.max_pool2d(self.first(images).relu(), 2)  # (B, channels, side / 2, side / 2)
        x = self.second(x).relu().amax(dim=(-2, -1))  # (B, 2 channels)
        logits: Tensor = self.head(x)
        return logits


def vit(sizes: Sizes) -> ViT:
    """Build a ViT of these sizes."""
    return ViT(
        ViTConfig(
            image_size=SIDE,
            patch_size=_PATCH,
            n_channels=1,
            n_classes=N_DIGITS,
            d_model=sizes.d_model,
            n_layers=sizes.n_layers,
            n_heads=sizes.n_heads,
        )
    )


def convolutions(sizes: Sizes) -> nn.Module:
    """Build the CNN whose number of parameters is closest to the ViT's."""
    return as_large_as(partial(vit, sizes), Convolutions, range(1, _MOST_CHANNELS + 1))


def vision(lesson: MeasuredLesson) -> LessonPlan:
    """Compare both models with few and many images, also on digits at positions that do not occur in training."""
    makers: dict[str, Callable[[Sizes], nn.Module]] = {"vit": vit, "cnn": convolutions}
    puzzles = {key: digits(named["count"], lesson.sizes.batch_size) for key, named in lesson.named.items()}
    puzzle, elsewhere = puzzles["vit_many"], draw((HELD_OUT,), _NEW_DIGITS, ELSEWHERE)
    return LessonPlan(
        {key: puzzle.task(partial(makers[key.partition("_")[0]], lesson.sizes)) for key, puzzle in puzzles.items()},
        {
            "right": lambda run: puzzle.share_right(run.model),
            "moved": lambda run: puzzle.share_right(run.model, elsewhere),
        },
    )
