"""Made-up digits: ten small bitmaps, drawn somewhere on a square, larger or smaller, with specks.

An example is one row: which digit it is, then its pixels.
"""

import json
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from kotha.course.lessons.learning import Puzzle

SIDE = 16
# Ten pictures of seven rows by five columns.
_BITMAPS: list[list[str]] = json.loads(Path(__file__).with_name("digits.json").read_text(encoding="utf-8"))
N_DIGITS = len(_BITMAPS)
_HEIGHT, _WIDTH = 7, 5
# Places of the left upper corner: where digits stand that are learned from, and where they never stood.
_HOME, _ELSEWHERE = range(3), range(6, SIDE - _HEIGHT + 1)
_SPECKS = 0.15  # how strong the noise is beside the ink


def bitmap(digit: int) -> NDArray[np.float32]:
    """A digit in ink: (7, 5).

    >>> "".join("#" if ink else "." for ink in bitmap(7)[0])
    '#####'
    """
    return np.array([[ink == "#" for ink in row] for row in _BITMAPS[digit]], dtype=np.float32)


@dataclass(frozen=True)
class DrawnDigits(Puzzle):
    """So many digits to learn from, and others that stand where those do, or elsewhere."""

    count: int

    def batch(self, seed: int, step: int) -> Tensor:
        """The examples of a step, out of the few that there are: (B, 1 + pixels)."""
        chosen = np.random.default_rng([seed, step]).integers(0, self.count, self.rows)
        return _learned(seed, self.count)[torch.from_numpy(chosen)]

    def elsewhere(self) -> Tensor:
        """Digits in places where none stood before."""
        return draw([2**31], self.held_out, _ELSEWHERE)


def digits(count: int, batch_size: int) -> DrawnDigits:
    """Say which digit it is, from so many pictures."""
    return DrawnDigits(draw, lambda model, rows: (model(images_of(rows)), digits_of(rows)), batch_size, 500, count)


def draw(seed: list[int], count: int, corners: range = _HOME) -> Tensor:
    """Digits, each in a place of its own: (count, 1 + pixels)."""
    random = np.random.default_rng(seed)
    digits = random.integers(0, N_DIGITS, count)
    down, across = (random.choice(corners, count) for _ in range(2))
    images = random.normal(0, _SPECKS, (count, SIDE, SIDE)).astype(np.float32)
    ink = random.uniform(0.6, 1.0, count)
    for number, digit in enumerate(digits):
        top, left = down[number], across[number]
        images[number, top : top + _HEIGHT, left : left + _WIDTH] += ink[number] * bitmap(digit)
    return torch.from_numpy(np.concatenate((digits[:, None].astype(np.float32), images.reshape(count, -1)), axis=1))


@lru_cache(maxsize=4)
def _learned(seed: int, count: int) -> Tensor:
    return draw([seed, 2**30], count)


def images_of(rows: Tensor) -> Tensor:
    """The pixels of examples: (B, 1 + pixels) -> (B, 1, side, side)."""
    return rows[:, 1:].view(-1, 1, SIDE, SIDE)


def digits_of(rows: Tensor) -> Tensor:
    """Which digits they are: (B, 1 + pixels) -> (B,)."""
    return rows[:, 0].long()
