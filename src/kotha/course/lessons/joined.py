"""Lesson: positions added to the tokens' vectors, or joined to them.

Joined, some numbers of a vector are the token's and the others the place's: they cannot disturb each other, and the
token has fewer. Added, both have the whole width, and the model must keep them apart by itself.
"""

from functools import partial

from kotha.course.lessons.learning import Maker, curves, held_out_loss, learn_all
from kotha.course.lessons.occasion import Occasion
from kotha.course.lessons.result import Condition, Drawing, Figure, LessonResult, below
from kotha.course.lessons.variants import with_joined_positions
from kotha.course.lessons.wordbook import Wordbook
from kotha.i18n.message import Bilingual
from kotha.model.gpt import GPT

_WORDS = Wordbook("joined")
# What it asks for unless somebody asks for something else.
SIZES = {"steps": 300}
_FIGURES = (
    Figure("held_out", _WORDS["held_out"]),
    Figure("token_width", _WORDS["token_width"], 0, None),
    Figure("parameters", _WORDS["parameters"], 0, None),
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
    conditions = [
        Condition(
            key,
            _WORDS[key],
            {
                "held_out": [held_out_loss(run.model, windows) for run in runs],
                "token_width": [float(run.model.tokens.embedding_dim) for run in runs],
                "parameters": [float(sum(each.numel() for each in run.model.parameters())) for run in runs],
            },
        )
        for key, runs in found.items()
    ]
    drawing = Drawing(_WORDS["on_the_way"], _WORDS["steps"], _WORDS["nats"], curves(found, conditions))
    return LessonResult("joined", _FIGURES, conditions, read(*conditions), drawing)


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
