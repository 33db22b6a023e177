"""Lesson: the same model with positions and without, one layer deep and two.

Attention is a weighted sum, and a sum does not know the order of what it adds. With one layer and no positions, the
guess is the same whatever order the past comes in. With two layers the causal mask lets some order through: what a
place saw depends on what stood before it (Haviv et al. 2022, https://arxiv.org/abs/2203.16634).
"""

from functools import partial

from torch import nn

from kotha.course.lessons.classroom import Classroom
from kotha.course.lessons.learning import curves, held_out_loss, learn_all
from kotha.course.lessons.measuring import moved_by_shuffling
from kotha.course.lessons.occasion import Occasion
from kotha.course.lessons.result import Condition, LessonResult, below
from kotha.course.lessons.wordbook import Wordbook
from kotha.i18n.message import Bilingual
from kotha.model.gpt import GPT

_WORDS = Wordbook("positions")
_CONDITIONS = {
    "one_with": (1, "learned"),
    "one_without": (1, "none"),
    "two_with": (2, "learned"),
    "two_without": (2, "none"),
}
_FIGURES = (_WORDS.figure("held_out"), _WORDS.figure("moved", better=None))


def teach(occasion: Occasion) -> LessonResult:
    """Train all four, measure their loss and whether order matters to them."""
    room, windows = occasion.room, occasion.room.windows()
    found = learn_all(occasion, {key: partial(make, room, *how) for key, how in _CONDITIONS.items()})
    measures = {
        "held_out": lambda run: held_out_loss(run.model, windows),
        "moved": lambda run: moved_by_shuffling(run.model, windows),
    }
    conditions = _WORDS.conditions(found, measures)
    return _WORDS.result(_FIGURES, conditions, read(*conditions), curves(found, conditions))


def make(room: Classroom, n_layers: int, positions: str) -> nn.Module:
    """A GPT so deep, with positions of a kind."""
    return GPT(room.gpt(n_layers=n_layers, positions=positions))


def read(one: Condition, one_without: Condition, two: Condition, two_without: Condition) -> list[Bilingual]:
    """What the figures say, whatever they are."""
    losses = {"one": one, "one_without": one_without, "two": two, "two_without": two_without}
    clear = below(one, one_without, "held_out") and below(two, two_without, "held_out")
    said = [
        _WORDS.say("bag", moved=one_without.mean("moved"), told=one.mean("moved")),
        _WORDS.say("worth" if clear else "unclear", **{name: each.mean("held_out") for name, each in losses.items()}),
    ]
    if below(one_without, two_without, "moved"):
        said.append(_WORDS.say("leak", moved=two_without.mean("moved")))
    return said
