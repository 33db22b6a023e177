"""Augmentation: an image a little turned, shifted and scaled each time that it is read, as a help on few images.

What an image becomes is drawn from its turn alone, so that a run that goes on sees what it would have seen.
"""

import math
from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import affine_grid, grid_sample

# At most: degrees, shares of the image's side, and of its size.
_TURN, _SHIFT, _SCALE = 12.0, 0.1, 0.12


def augmented(images: Tensor, chances: Sequence[np.random.Generator], flip: bool = False) -> Tensor:
    """Images (N, n_channels, height, width), each moved by its own chance; with ``flip`` half of them mirrored."""
    moves = torch.tensor(np.stack([_move(chance, flip) for chance in chances]), dtype=images.dtype)  # (N, 2, 3)
    grid = affine_grid(moves, list(images.shape), align_corners=False)
    return grid_sample(images, grid, padding_mode="border", align_corners=False)


def _move(chance: np.random.Generator, flip: bool) -> np.ndarray[tuple[int, int], np.dtype[np.float64]]:
    """Where the pixels of a moved image come from: a turn, a scale and a shift as one matrix (2, 3)."""
    turn, scale, across, down, mirrored = chance.uniform(-1, 1, 5)
    angle, size = math.radians(_TURN * turn), 1 + _SCALE * scale
    side = -1.0 if flip and mirrored < 0 else 1.0
    cosine, sine = size * math.cos(angle), size * math.sin(angle)
    return np.array([[side * cosine, -sine, 2 * _SHIFT * across], [side * sine, cosine, 2 * _SHIFT * down]])
