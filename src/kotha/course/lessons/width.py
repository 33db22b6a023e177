"""Lesson: the same model in four widths. What the course's table calls expressiveness, measured."""

import itertools
from functools import partial

from kotha.course.lessons.classroom import Classroom
from kotha.course.lessons.learning import curves, held_out_loss, learn_all, parameters_of
from kotha.course.lessons.occasion import Occasion
from kotha.course.lessons.result import Condition, LessonResult, below
from kotha.course.lessons.wordbook import Wordbook
from kotha.i18n.message import Bilingual
from kotha.model.gpt import GPT

_WORDS = Wordbook("width")
_PARTS = {"eighth": 8, "quarter": 4, "half": 2, "whole": 1}
# What it asks for unless somebody asks for something else.
SIZES = {"n_heads": 2, "steps": 300}
_FIGURES = (
    _WORDS.figure("table", 0, None),
    _WORDS.figure("parameters", 0, None),
    _WORDS.figure("held_out"),
)


def teach(occasion: Occasion) -> LessonResult:
    """Train one of each width, each twice as wide as the one before, and measure its loss."""
    room, windows, widest = occasion.room, occasion.room.windows(), occasion.sizes.d_model
    widths = {key: widest // part for key, part in _PARTS.items()}
    found = learn_all(occasion, {key: partial(make, room, width) for key, width in widths.items()})
    measures = {
        "table": lambda run: float(run.model.tokens.weight.numel()),
        "parameters": lambda run: parameters_of(run.model),
        "held_out": lambda run: held_out_loss(run.model, windows),
    }
    titles = {key: _WORDS.say("title", width=width) for key, width in widths.items()}
    conditions = _WORDS.conditions(found, measures, titles)
    return _WORDS.result(_FIGURES, conditions, read(conditions), curves(found, conditions))


def make(room: Classroom, width: int) -> GPT:
    """A GPT of a width."""
    return GPT(room.gpt(d_model=width))


def read(conditions: list[Condition]) -> list[Bilingual]:
    """What the figures say, whatever they are."""
    losses = [each.mean("held_out") for each in conditions]
    clear = all(below(b, a, "held_out") for a, b in itertools.pairwise(conditions))
    gains = [a - b for a, b in itertools.pairwise(losses)]
    said = [_WORDS.say("worth" if clear else "unclear", narrow=losses[0], wide=losses[-1])]
    said.append(_WORDS.say("less" if gains[-1] < gains[0] else "more", first=gains[0], last=gains[-1]))
    growth = conditions[-1].mean("parameters") / conditions[0].mean("parameters")
    return [*said, _WORDS.say("cost", growth=growth)]
