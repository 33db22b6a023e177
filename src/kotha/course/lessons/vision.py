"""Lesson: a ViT beside a convolutional network (CNN) of equal size, on made-up digits.

A convolution looks at neighbours and does the same everywhere: it is told beforehand that pictures are like that. A ViT
is told nothing and must learn it, so it wants more pictures, and digits in places where none ever stood are strange to
it.
"""

from collections.abc import Callable
from functools import partial

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from kotha.course.lessons.classroom import Sizes
from kotha.course.lessons.drawn_digits import N_DIGITS, SIDE, DrawnDigits, digits_of, images_of
from kotha.course.lessons.learning import Maker, Taught, curves, learn_all, parameters_of
from kotha.course.lessons.occasion import Occasion
from kotha.course.lessons.result import Condition, LessonResult, below
from kotha.course.lessons.wordbook import Wordbook
from kotha.i18n.message import Bilingual
from kotha.model.config import ViTConfig
from kotha.model.evaluating import evaluating
from kotha.model.vit import ViT

_WORDS = Wordbook("vision")
_PATCH = 4
_FEW, _MANY = 100, 2000
_MOST_CHANNELS = 256
# What it asks for unless somebody asks for something else.
SIZES = {"d_model": 32, "steps": 500}
_FIGURES = (
    _WORDS.figure("parameters", 0, None),
    _WORDS.figure("right", 0, "high", percent=True),
    _WORDS.figure("moved", 0, "high", percent=True),
)


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


def recognised(model: nn.Module, rows: Tensor, step: int = 0) -> Tensor:
    """The loss of a batch of digits."""
    return cross_entropy(model(images_of(rows)), digits_of(rows))


@torch.no_grad()
def share_right(model: nn.Module, rows: Tensor) -> float:
    """How many digits are recognised."""
    with evaluating(model):
        said: Tensor = model(images_of(rows)).argmax(dim=-1)
    return said.eq(digits_of(rows)).float().mean().item()


def _right(run: Taught, rows: Tensor) -> float:
    return share_right(run.model, rows)


def teach(occasion: Occasion) -> LessonResult:
    """Train both with few pictures and with many, and show them digits in the same places and elsewhere."""
    sizes, conditions, lines = occasion.sizes, [], []
    halves = {"few": _FEW, "many": _MANY}
    counter = occasion.counter(2 * len(halves) * len(occasion.seeds) * sizes.steps)
    for amount, count in halves.items():
        desk = DrawnDigits(count, sizes.batch_size)
        same, elsewhere = desk.windows(), desk.elsewhere()
        makers: dict[str, Maker] = {"vit": partial(vit, sizes), "cnn": partial(convolutions, sizes)}
        part = learn_all(
            Occasion(sizes, occasion.seeds, lambda done, total: counter()),
            makers,
            desk,
            objective=recognised,
            look=lambda model, rows=same: share_right(model, rows),
        )
        found = {f"{key}_{amount}": runs for key, runs in part.items()}
        measures: dict[str, Callable[[Taught], float]] = {
            "parameters": lambda run: parameters_of(run.model),
            "right": partial(_right, rows=same),
            "moved": partial(_right, rows=elsewhere),
        }
        titles = {f"{key}_{amount}": _WORDS.say(f"{key}_with", count=count) for key in part}
        rows = _WORDS.conditions(found, measures, titles)
        lines += curves(found, rows)
        conditions += rows
    axes = ("learning", "steps", "share")
    return _WORDS.result(_FIGURES, conditions, read(*conditions), lines, axes, from_zero=True)


def read(vit_few: Condition, cnn_few: Condition, vit_many: Condition, cnn_many: Condition) -> list[Bilingual]:
    """What the figures say, whatever they are."""
    few = {"vit": vit_few.mean("right"), "cnn": cnn_few.mean("right"), "count": _FEW}
    many = {"vit": vit_many.mean("right"), "cnn": cnn_many.mean("right"), "count": _MANY}
    moved = {"vit": vit_many.mean("moved"), "cnn": cnn_many.mean("moved")}
    nearer = many["cnn"] - many["vit"] < few["cnn"] - few["vit"]
    return [
        _WORDS.say("few_cnn" if below(vit_few, cnn_few, "right") else "few_open", **few),
        _WORDS.say("many_nearer" if nearer else "many_open", **many),
        _WORDS.say("moved_cnn" if below(vit_many, cnn_many, "moved") else "moved_open", **moved),
    ]
