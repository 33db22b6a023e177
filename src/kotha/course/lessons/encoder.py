"""Lesson: an encoder against a decoder alone, of the same size, after the same number of guesses.

The decoder sees the past and learns to guess what comes next at every place. The encoder sees both sides and learns to
fill holes; only there does it guess, so it reads more text for as many guesses. Each is measured at its own trade and
at the other's: a hole in the middle of a text, and writing on.
"""

from collections.abc import Mapping
from functools import partial
from typing import Any

import torch
from torch import Tensor

from kotha.course.lessons.learning import Assignment, Taught, next_tokens
from kotha.course.lessons.measured import Measure, MeasuredLesson
from kotha.course.lessons.measuring import cuts, loss_at
from kotha.course.lessons.result import Sample
from kotha.course.lessons.variants import Filler
from kotha.model.gpt import GPT
from kotha.model.loss import IGNORED, next_token_loss

_HOLES = 0.25  # of the tokens, while the encoder learns


def filled_holes(model: Filler, sequences: Tensor, step: int = 0) -> Tensor:
    """Guess some tokens from all that stands around them: (B, T + 1) -> ()."""
    tokens = sequences[:, 1:]
    holes = torch.rand(tokens.shape) < _HOLES
    holes[:, 0] |= ~holes.any(dim=1)  # each row has one
    hidden = model.hidden(tokens.masked_fill(holes, model.hole))
    return next_token_loss(hidden, model.head.weight, tokens.masked_fill(~holes, IGNORED))


def loss_at_holes(model: GPT, windows: Tensor) -> float:
    """Nats of tokens inside a text: the encoder sees all but the token, the decoder what stands before it."""

    def guess(some: Tensor, place: int) -> Any:
        if not isinstance(model, Filler):
            return model.head(model.hidden(some[:, :place])[:, -1])
        tokens = some.clone()
        tokens[:, place] = model.hole
        return model.head(model.hidden(tokens[:, 1:])[:, place - 1])

    return loss_at(model, windows, guess, cuts(windows.shape[1] - 1)[:-1])


def loss_behind(model: GPT, windows: Tensor) -> float:
    """Nats of a next token where there is nothing but the past, as when a model writes."""
    places = cuts(windows.shape[1] - 1)[:-1]
    return loss_at(model, windows, lambda some, place: model(some[:, :place])[:, -1], places)


class EncoderLesson(MeasuredLesson):
    """Both, each measured at both trades."""

    def tasks(self) -> dict[str, Assignment]:
        """As many guesses for each."""
        config = self.room.gpt(positions="rotary")  # a neighbour is one thing wherever it stands: learned sooner
        look, steps = partial(loss_at_holes, windows=self.windows), self.sizes.steps
        return {
            "decoder": Assignment(partial(GPT, config), self.room, next_tokens, look, steps),
            "encoder": Assignment(partial(Filler, config), self.room, filled_holes, look, round(steps / _HOLES)),
        }

    def measures(self) -> dict[str, Measure]:
        """The two trades."""
        return {
            "steps": lambda run: float(run.task.steps),
            "hole": lambda run: loss_at_holes(run.model, self.windows),
            "next": lambda run: loss_behind(run.model, self.windows),
        }

    def samples(self, found: Mapping[str, list[Taught]]) -> list[Sample]:
        """What both write."""
        return self.first_texts(found)
