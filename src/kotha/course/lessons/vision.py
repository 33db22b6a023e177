"""Lesson: a ViT beside a convolutional network (CNN) of equal size, on made-up digits.

A convolution looks at neighbours and does the same everywhere: it is told beforehand that pictures are like that. A ViT
is told nothing and must learn it, so it wants more pictures, and digits in places where none ever stood are strange to
it.
"""

from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from kotha.course.lessons.classroom import Sizes
from kotha.course.lessons.drawn_digits import N_DIGITS, SIDE, digits
from kotha.course.lessons.learning import Assignment, parameters_of
from kotha.course.lessons.measured import Measure, MeasuredLesson
from kotha.i18n.message import Bilingual
from kotha.model.config import ViTConfig
from kotha.model.vit import ViT

_PATCH = 4
_COUNTS = {"few": 100, "many": 2000}
_MOST_CHANNELS = 256


class Convolutions(nn.Module):
    """Two convolutions, each followed by a smaller picture, the strongest answer of each kind, and a head."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.first = nn.Conv2d(1, channels, 3, padding=1)
        self.second = nn.Conv2d(channels, 2 * channels, 3, padding=1)
        self.head = nn.Linear(2 * channels, N_DIGITS)

    def forward(self, images: Tensor) -> Tensor:
        """Images in, scores for each digit out: (B, 1, side, side) -> (B, digits)."""
        x = nn.functional.max_pool2d(self.first(images).relu(), 2)  # (B, channels, side / 2, side / 2)
        x = self.second(x).relu().amax(dim=(-2, -1))  # (B, 2 channels)
        logits: Tensor = self.head(x)
        return logits


def vit(sizes: Sizes) -> ViT:
    """A ViT of such sizes."""
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


def convolutions(sizes: Sizes) -> Convolutions:
    """The CNN whose number of parameters comes nearest to the ViT's."""
    with torch.device("meta"):
        counts = {channels: parameters_of(Convolutions(channels)) for channels in range(1, _MOST_CHANNELS + 1)}
        wanted = parameters_of(vit(sizes))
    return Convolutions(min(counts, key=lambda channels: abs(counts[channels] - wanted)))


class VisionLesson(MeasuredLesson):
    """Both with few pictures and with many; digits in the same places, and elsewhere."""

    def tasks(self) -> dict[str, Assignment]:
        """``vit_few``, ``cnn_many`` and so on."""
        makers: dict[str, Any] = {"vit": partial(vit, self.sizes), "cnn": partial(convolutions, self.sizes)}
        return {
            f"{key}_{amount}": digits(count, self.sizes.batch_size).task(make)
            for amount, count in _COUNTS.items()
            for key, make in makers.items()
        }

    def title(self, key: str) -> Bilingual:
        """Which, with how many pictures."""
        who, _, amount = key.partition("_")
        return self.words[f"{who}_with"].fill(count=_COUNTS[amount])

    def measures(self) -> dict[str, Measure]:
        """Digits that are recognised where others stood, and where none did."""
        puzzle = digits(_COUNTS["many"], self.sizes.batch_size)
        elsewhere = puzzle.elsewhere()
        return {
            "right": lambda run: puzzle.share_right(run.model),
            "moved": lambda run: puzzle.share_right(run.model, elsewhere),
        }
