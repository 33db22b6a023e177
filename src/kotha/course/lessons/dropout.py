"""Lesson: dropout of 0, 0.1, 0.2 and 0.5, with little text to learn from, so that learning by heart pays."""

from functools import partial

from kotha.course.lessons.classroom import Classroom
from kotha.course.lessons.learning import curves, held_out_loss, learn_all
from kotha.course.lessons.occasion import Occasion
from kotha.course.lessons.result import Condition, LessonResult
from kotha.course.lessons.wordbook import Wordbook
from kotha.i18n.message import Bilingual
from kotha.model.gpt import GPT

_WORDS = Wordbook("dropout")
_RATES = {"none": 0.0, "tenth": 0.1, "fifth": 0.2, "half": 0.5}
# What it asks for unless somebody asks for something else.
SIZES = {"most_tokens": 6000, "batch_size": 16, "steps": 400}
_FIGURES = (
    _WORDS.figure("learned", better=None),
    _WORDS.figure("held_out"),
    _WORDS.figure("gap"),
)


def teach(occasion: Occasion) -> LessonResult:
    """Train one with each rate, and measure it without dropout on what it has read and on what it has not."""
    room, windows = occasion.room, occasion.room.windows()
    read_before = room.windows_read(len(windows))
    found = learn_all(occasion, {key: partial(make, room, rate) for key, rate in _RATES.items()})
    measures = {
        "learned": lambda run: held_out_loss(run.model, read_before),
        "held_out": lambda run: held_out_loss(run.model, windows),
        "gap": lambda run: held_out_loss(run.model, windows) - held_out_loss(run.model, read_before),
    }
    titles = {key: _WORDS.say("rate", rate=rate) for key, rate in _RATES.items()}
    conditions = _WORDS.conditions(found, measures, titles)
    return _WORDS.result(_FIGURES, conditions, read(conditions), curves(found, conditions))


def make(room: Classroom, rate: float) -> GPT:
    """A GPT that drops so much, of what its parts add and of its attention weights."""
    return GPT(room.gpt(dropout=rate, attention_dropout=rate))


def read(conditions: list[Condition]) -> list[Bilingual]:
    """What the figures say, whatever they are."""
    without, *others = conditions
    best = min(others, key=lambda each: each.mean("held_out"))
    helps = max(best.figures["held_out"]) < min(without.figures["held_out"])
    rate = _RATES[best.key]
    said = [_WORDS.say("by_heart", learned=without.mean("learned"), held_out=without.mean("held_out"))]
    said.append(_WORDS.say("helps" if helps else "idle", rate=rate, held_out=best.mean("held_out")))
    most = others[-1]
    if most.mean("learned") > without.mean("learned"):
        said.append(_WORDS.say("slows", rate=_RATES[most.key], learned=most.mean("learned"), gap=most.mean("gap")))
    return said
