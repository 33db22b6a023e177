"""Lesson: the same model with its residual connections and without, shallow and deep.

Without them each part replaces what came in instead of adding to it. What a token was must then survive every softmax
and every matrix on the way, and so must the gradient on its way back.
Every softmax averages: without a way around, all places come to look alike (Dong et al. 2021,
https://arxiv.org/abs/2103.03404).
"""

from collections.abc import Sequence
from functools import partial
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from kotha.course.lessons.learning import Maker, Taught, curves, held_out_loss, learn_all
from kotha.course.lessons.occasion import Occasion
from kotha.course.lessons.result import Condition, LessonResult, below
from kotha.course.lessons.variants import without_residuals
from kotha.course.lessons.wordbook import Wordbook
from kotha.i18n.message import Bilingual
from kotha.model.gpt import GPT

_WORDS = Wordbook("residuals")
_SHALLOW, _WINDOWS = 2, 32
# What it asks for unless somebody asks for something else.
SIZES = {"n_layers": 6, "d_model": 32, "steps": 250}
_FIGURES = (
    _WORDS.figure("training"),
    _WORDS.figure("held_out"),
    _WORDS.figure("gradient", 2, None),
    _WORDS.figure("alike", 2, None),
)


def teach(occasion: Occasion) -> LessonResult:
    """Train all four, and look at the first gradients, before anything was learned."""
    room, windows, deep = occasion.room, occasion.room.windows(), occasion.sizes.n_layers
    makers: dict[str, Maker] = {
        f"{depth}_{way}": partial(make, room.gpt(n_layers=layers))
        for depth, layers in (("shallow", _SHALLOW), ("deep", deep))
        for way, make in (("with", GPT), ("without", without_residuals))
    }
    found = learn_all(occasion, makers)
    conditions = [
        Condition(
            key,
            _WORDS.say(key, shallow=_SHALLOW, deep=deep),
            {
                "training": [run.training_loss for run in runs],
                "held_out": [held_out_loss(run.model, windows) for run in runs],
                "gradient": first_to_last(runs),
                "alike": [alike(makers[key], windows, seed) for seed in occasion.seeds],
            },
        )
        for key, runs in found.items()
    ]
    return _WORDS.result(_FIGURES, conditions, read(*conditions), curves(found, conditions))


def first_to_last(runs: Sequence[Taught]) -> list[float]:
    """How large the first block's gradient is beside the last one's, before the first step."""
    return [run.first_gradients[0] / run.first_gradients[-1] for run in runs]


@torch.no_grad()
def alike(make: Maker, windows: Tensor, seed: int) -> float:
    """How alike the vectors of different places are before anything was learned: their cosine, 1 for all the same."""
    torch.manual_seed(seed)
    model: Any = make()
    rows = functional.normalize(model.hidden(windows[:_WINDOWS, :-1]), dim=-1)  # (N, T, C)
    cosines = rows @ rows.mT  # (N, T, T)
    apart = ~torch.eye(rows.shape[1], dtype=torch.bool)
    return cosines[:, apart].mean().item()


def read(shallow: Condition, shallow_without: Condition, deep: Condition, deep_without: Condition) -> list[Bilingual]:
    """What the figures say, whatever they are."""
    losses = {
        "shallow": shallow.mean("held_out"),
        "shallow_without": shallow_without.mean("held_out"),
        "deep": deep.mean("held_out"),
        "deep_without": deep_without.mean("held_out"),
    }
    clear = below(shallow, shallow_without, "held_out") and below(deep, deep_without, "held_out")
    fades = below(deep_without, deep, "gradient")
    seen = {"kept": deep.mean("gradient"), "left": deep_without.mean("gradient")}
    said = [_WORDS.say("worth" if clear else "unclear", **losses), _WORDS.say("fades" if fades else "reaches", **seen)]
    if below(deep, deep_without, "alike"):
        said.append(_WORDS.say("blurred", kept=deep.mean("alike"), lost=deep_without.mean("alike")))
    return said
