"""Lesson: positions added to the tokens' vectors, or joined to them.

Joined, some numbers of a vector are the token's and the others the place's: they cannot disturb each other, and the
token has fewer. Added, both have the whole width, and the model must keep them apart by itself.
"""

from functools import partial

from kotha.course.lessons.learning import Maker, curves, held_out_loss, learn_all, parameters_of
from kotha.course.lessons.occasion import Occasion
from kotha.course.lessons.result import Condition, LessonResult, below
from kotha.course.lessons.variants import with_joined_positions
from kotha.course.lessons.wordbook import Wordbook
from kotha.i18n.message import Bilingual
from kotha.model.gpt import GPT

_WORDS = Wordbook("joined")
# What it asks for unless somebody asks for something else.
SIZES = {"steps": 300}
_FIGURES = (
    _WORDS.figure("held_out"),
    _WORDS.figure("token_width", 0, None),
    _WORDS.figure("parameters", 0, None),
)


def teach(occasion: Occasion) -> LessonResult:
    """Train one with added positions and two with joined ones, and measure their loss."""
    room, windows = occasion.room, occasion.room.windows()
    config = room.gpt()
    makers: dict[str, Maker] = {
        "added": lambda: GPT(config),
        "quarter": partial(with_joined_positions, config, config.d_model // 4),
        "half": partial(with_joined_positions, config, config.d_model // 2),
    }
    found = learn_all(occasion, makers)
    measures = {
        "held_out": lambda run: held_out_loss(run.model, windows),
        "token_width": lambda run: float(run.model.tokens.embedding_dim),
        "parameters": lambda run: parameters_of(run.model),
    }
    conditions = _WORDS.conditions(found, measures)
    return _WORDS.result(_FIGURES, conditions, read(*conditions), curves(found, conditions))


def read(added: Condition, *joined: Condition) -> list[Bilingual]:
    """What the figures say, whatever they are."""
    best = min(joined, key=lambda each: each.mean("held_out"))
    losses = {"added": added.mean("held_out"), "joined": best.mean("held_out")}
    verdict = "alike"
    if below(added, best, "held_out"):
        verdict = "added_wins"
    elif below(best, added, "held_out"):
        verdict = "joined_wins"
    return [
        _WORDS.say(verdict, **losses),
        _WORDS.say("room", whole=added.mean("token_width"), left=best.mean("token_width")),
    ]
