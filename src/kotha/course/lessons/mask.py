"""Lesson: the same model with and without the causal mask.

Without it, the token that is to be guessed stands in plain sight, one place to the right. The loss falls to almost
nothing, on held-out text too, and the model has learned to copy its right neighbour: where there is none, as in
writing, it has nothing to say.
"""

from kotha.course.lessons.learning import curves, learn_all
from kotha.course.lessons.measuring import blind_loss, let_write, sighted_loss
from kotha.course.lessons.occasion import Occasion
from kotha.course.lessons.result import Condition, LessonResult, Sample
from kotha.course.lessons.variants import LooksAhead
from kotha.course.lessons.wordbook import Wordbook
from kotha.i18n.message import Bilingual
from kotha.model.gpt import GPT

_WORDS = Wordbook("mask")
_FIGURES = (
    _WORDS.figure("training"),
    _WORDS.figure("held_out"),
    _WORDS.figure("blind"),
    _WORDS.figure("words", 0, "high", percent=True),
)


def teach(occasion: Occasion) -> LessonResult:
    """Train both, measure them as training does and as writing does, and let both write."""
    room, windows = occasion.room, occasion.room.windows()
    found = learn_all(occasion, {"with": lambda: GPT(room.gpt()), "without": lambda: LooksAhead(room.gpt())})
    conditions, samples = [], []
    for key, runs in found.items():
        written = [let_write(run.model, room, seed) for run, seed in zip(runs, occasion.seeds, strict=True)]
        figures = {
            "training": [run.training_loss for run in runs],
            "held_out": [sighted_loss(run.model, windows) for run in runs],
            "blind": [blind_loss(run.model, windows) for run in runs],
            "words": [each.share for each in written],
        }
        conditions.append(Condition(key, _WORDS[key], figures))
        samples.append(Sample(_WORDS[key], written[0].texts[0]))
    lines = curves(found, conditions)
    return _WORDS.result(_FIGURES, conditions, read(*conditions), lines, from_zero=True, samples=samples)


def read(masked: Condition, unmasked: Condition) -> list[Bilingual]:
    """What the figures say, whatever they are."""
    cheats = max(unmasked.figures["held_out"]) < min(masked.figures["held_out"]) / 2
    breaks = min(unmasked.figures["blind"]) > max(masked.figures["blind"])
    seen = {"low": unmasked.mean("held_out"), "high": masked.mean("held_out")}
    hidden = {"blind": unmasked.mean("blind"), "honest": masked.mean("blind")}
    written = {"share": unmasked.mean("words"), "known": masked.mean("words")}
    return [
        _WORDS.say("cheats" if cheats else "no_cheating", **seen),
        _WORDS.say("breaks", **hidden, **written) if breaks else _WORDS.say("writes", **hidden),
    ]
