"""Lesson: one wide head against several narrow ones, with the same number of weights.

The task is made for the question: symbols in a row, and at the end the model is to say those of four places. A head has
one softmax, so one mixture for each place that asks; from a mixture of four symbols the order in which they stood is
hard to tell. Several heads bring several mixtures.
"""

from dataclasses import dataclass
from functools import partial

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from kotha.course.lessons.classroom import Sizes
from kotha.course.lessons.learning import curves, learn_all
from kotha.course.lessons.occasion import Occasion
from kotha.course.lessons.result import Condition, LessonResult, below
from kotha.course.lessons.wordbook import Wordbook
from kotha.i18n.message import Bilingual
from kotha.inside.hook_points import attentions
from kotha.model.config import GPTConfig
from kotha.model.evaluating import evaluating
from kotha.model.gpt import GPT
from kotha.model.initialization import initialize

_WORDS = Wordbook("heads")
_SYMBOLS, _LENGTH, _PLACES = 16, 12, (1, 4, 7, 10)
_WINDOWS = 512
_HEADS = {"one": 1, "two": 2, "four": 4}
# What it asks for unless somebody asks for something else.
SIZES = {"d_model": 32, "n_layers": 1, "steps": 400}
_FIGURES = (
    _WORDS.figure("right", 0, "high", percent=True),
    _WORDS.figure("whole", 0, "high", percent=True),
    _WORDS.figure("attention", 0, None),
)


@dataclass(frozen=True)
class FourPlaces:
    """Rows of random symbols, each with the mark of the question behind it: (B, T + 1)."""

    rows: int

    def batch(self, seed: int, step: int) -> Tensor:
        """The rows of a step."""
        return _draw([seed, step], self.rows)

    def windows(self, most: int | None = None) -> Tensor:
        """Rows that no step reads."""
        return _draw([2**31], _WINDOWS if most is None else min(most, _WINDOWS))


def _draw(seed: list[int], rows: int) -> Tensor:
    symbols = np.random.default_rng(seed).integers(0, _SYMBOLS, (rows, _LENGTH))
    return torch.from_numpy(np.concatenate((symbols, np.full((rows, 1), _SYMBOLS)), axis=1))


class Recaller(GPT):
    """One layer, whose head says four symbols at once where the question stands."""

    def __init__(self, config: GPTConfig) -> None:
        super().__init__(config)
        self.head = nn.Linear(config.d_model, len(_PLACES) * _SYMBOLS)
        initialize(self, config)

    def recall(self, rows: Tensor) -> Tensor:
        """Scores for each place's symbol: (B, T + 1) -> (B, 4, symbols)."""
        said: Tensor = self.head(self.hidden(rows)[:, -1])
        return said.view(-1, len(_PLACES), _SYMBOLS)


def recalled(model: Recaller, rows: Tensor, step: int = 0) -> Tensor:
    """The loss of the four answers."""
    return cross_entropy(model.recall(rows).flatten(0, 1), rows[:, _PLACES].flatten())


@torch.no_grad()
def right(model: Recaller, rows: Tensor) -> Tensor:
    """Which answers are right: (B, 4)."""
    with evaluating(model):
        return model.recall(rows).argmax(dim=-1) == rows[:, _PLACES]


def teach(occasion: Occasion) -> LessonResult:
    """Train one with each number of heads, and count what each recalls."""
    desk = FourPlaces(occasion.sizes.batch_size)
    rows = desk.windows()
    makers = {key: partial(make, occasion.sizes, n_heads) for key, n_heads in _HEADS.items()}
    found = learn_all(occasion, makers, desk, objective=recalled, look=lambda model: _share(right(model, rows)))
    measures = {
        "right": lambda run: _share(right(run.model, rows)),
        "whole": lambda run: _share(right(run.model, rows).all(dim=1)),
        "attention": lambda run: _weights(run.model),
    }
    conditions, axes = _WORDS.conditions(found, measures), ("learning", "steps", "share")
    return _WORDS.result(_FIGURES, conditions, read(*conditions), curves(found, conditions), axes, from_zero=True)


def make(sizes: Sizes, n_heads: int) -> Recaller:
    """A model of one layer with so many heads; all of them together are as wide as ever."""
    return Recaller(
        GPTConfig(
            vocab_size=_SYMBOLS + 1,
            context_length=_LENGTH + 1,
            d_model=sizes.d_model,
            n_layers=1,
            n_heads=n_heads,
            attention_bias=False,
            tied_head=False,
        )
    )


def _share(found: Tensor) -> float:
    return found.float().mean().item()


def _weights(model: GPT) -> float:
    (attention,) = attentions(model).values()
    return float(sum(each.numel() for each in attention.parameters()))


def read(one: Condition, two: Condition, four: Condition) -> list[Bilingual]:
    """What the figures say, whatever they are."""
    shares = {"one": one.mean("right"), "two": two.mean("right"), "four": four.mean("right"), "guess": 1 / _SYMBOLS}
    clear = below(one, two, "right") and below(one, four, "right")
    return [
        _WORDS.say("more" if clear else "unclear", **shares),
        _WORDS.say("same_cost", weights=one.mean("attention")),
    ]
