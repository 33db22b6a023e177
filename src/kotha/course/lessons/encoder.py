"""Lesson: an encoder against a decoder alone, of the same size, after the same number of guesses.

The decoder sees the past and learns to guess what comes next at every place. The encoder sees both sides and learns to
fill holes; only there does it guess, so it reads more text for as many guesses. Each is measured at its own trade and
at the other's: a hole in the middle of a text, and writing on.
"""

from functools import partial
from typing import Any

import torch
from torch import Tensor

from kotha.course.lessons.learning import Assignment, next_tokens
from kotha.course.lessons.measures import cuts, from_the_past, loss_at
from kotha.course.lessons.runner import LessonPlan, MeasuredLesson
from kotha.course.lessons.variants import Filler
from kotha.model.gpt import GPT
from kotha.model.loss import IGNORED, next_token_loss

_HOLES = 0.25  # of the tokens, while the encoder learns


def filled_holes(model: Filler, sequences: Tensor) -> Tensor:
    """Guess some tokens from all that stands around them: (B, T + 1) -> ()."""
    tokens = sequences[:, 1:]
    holes = torch.rand(tokens.shape) < _HOLES
    holes[:, 0] |= ~holes.any(dim=1)  # each row has one
    hidden = model.hidden(tokens.masked_fill(holes, model.hole))
    return next_token_loss(hidden, model.head.weight, tokens.masked_fill(~holes, IGNORED))


def _at_hole(model: Any, some: Tensor, place: int) -> Tensor:
    if not isinstance(model, Filler):
        return from_the_past(model, some, place)
    tokens = some.clone()
    tokens[:, place] = model.hole
    scores: Tensor = model.head(model.hidden(tokens[:, 1:])[:, place - 1])
    return scores


def loss_at_holes(model: GPT, windows: Tensor) -> float:
    """Nats of tokens inside a text: the encoder sees all but the token, the decoder what stands before it."""
    return loss_at(model, windows, cuts(windows.shape[1] - 1)[:-1], _at_hole)


def loss_behind(model: GPT, windows: Tensor) -> float:
    """Nats of a next token where there is nothing but the past, as when a model writes."""
    places = cuts(windows.shape[1] - 1)[:-1]
    return loss_at(model, windows, places, lambda model, some, place: model(some[:, :place])[:, -1])


def encoder(lesson: MeasuredLesson) -> LessonPlan:
    """Both, after as many guesses, each measured at both trades."""
    config = lesson.room.gpt(positions="rotary")  # a neighbour is one thing wherever it stands: learned sooner
    look, steps = partial(loss_at_holes, windows=lesson.windows), lesson.sizes.steps
    return LessonPlan(
        {
            "decoder": Assignment(partial(GPT, config), lesson.room, next_tokens, look, steps),
            "encoder": Assignment(partial(Filler, config), lesson.room, filled_holes, look, round(steps / _HOLES)),
        },
        {
            "steps": lambda run: float(run.task.steps or steps),
            "hole": lambda run: look(run.model),
            "next": lambda run: loss_behind(run.model, lesson.windows),
        },
        writes=True,
    )
