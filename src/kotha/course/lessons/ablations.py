"""Lessons that take one thing from a small GPT, or put it otherwise, and measure what it was good for.

Positions: attention is a weighted sum, and a sum does not know the order of what it adds. With one layer and no
positions, the guess is the same whatever order the past comes in. With two layers the causal mask lets some order
through: what a place saw depends on what stood before it (Haviv et al. 2022, https://arxiv.org/abs/2203.16634).

Joined: some numbers of a vector are the token's and the others the place's. They cannot disturb each other, and the
token has fewer. Added, both have the whole width, and the model must keep them apart by itself.

Mask: without it, the token that is to be guessed stands in plain sight, one place to the right. The loss falls to
almost nothing, on held-out text too, and the model has learned to copy its right neighbour: where there is none, as in
writing, it has nothing to say.

Residuals: without them each part replaces what came in instead of adding to it. What a token was must then survive
every softmax and every matrix on the way, and so must the gradient on its way back. Every softmax averages: without a
way around, all places come to look alike (Dong et al. 2021, https://arxiv.org/abs/2103.03404).

Encoder: the decoder sees the past and learns to guess what comes next at every place. The encoder sees both sides and
learns to fill holes; only there does it guess, so it reads more text for as many guesses. Each is measured at its own
trade and at the other's: a hole in the middle of a text, and writing on.

Dropout: with little text to learn from, so that learning by heart pays. Width: what the course's table calls
expressiveness.
"""

from functools import partial
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from kotha.course.lessons.learning import Assignment, Taught, next_tokens
from kotha.course.lessons.measures import (
    blind_loss,
    cuts,
    from_the_past,
    held_out_loss,
    loss_at,
    moved_by_shuffling,
    sighted_loss,
)
from kotha.course.lessons.runner import LessonPlan, MeasuredLesson
from kotha.course.lessons.variants import Filler, LooksAhead, with_joined_positions, without_residuals
from kotha.model.gpt import GPT
from kotha.model.loss import IGNORED, next_token_loss

_WINDOWS = 32
_HOLES = 0.25  # of the tokens, while the encoder learns


def positions(lesson: MeasuredLesson) -> LessonPlan:
    """The same model with positions and without, one layer deep and two; whether order matters to them."""
    tasks = {
        f"{depth}_{way}": lesson.on_text(GPT, n_layers=n_layers, positions=positions)
        for depth, n_layers in (("one", 1), ("two", 2))
        for way, positions in (("with", "learned"), ("without", "none"))
    }
    return LessonPlan(tasks, {"moved": lambda run: moved_by_shuffling(run.model, lesson.windows)})


def joined(lesson: MeasuredLesson) -> LessonPlan:
    """Positions added to the tokens' vectors, or joined to them; how many numbers a token then has."""
    quarter, half = (
        lesson.on_text(partial(with_joined_positions, width=lesson.sizes.d_model // part)) for part in (4, 2)
    )
    tasks = {"added": lesson.on_text(GPT), "quarter": quarter, "half": half}
    return LessonPlan(tasks, {"token_width": lambda run: float(run.model.tokens.embedding_dim)})


def mask(lesson: MeasuredLesson) -> LessonPlan:
    """The same model with and without the causal mask; the loss as in training and as in writing."""
    return LessonPlan(
        {"with": lesson.on_text(GPT), "without": lesson.on_text(LooksAhead)},
        {
            "held_out": lambda run: sighted_loss(run.model, lesson.windows),
            "blind": lambda run: blind_loss(run.model, lesson.windows),
        },
        writes=True,
    )


def residuals(lesson: MeasuredLesson) -> LessonPlan:
    """The same model with its residual connections and without, shallow and deep.

    Before anything is learned: the first block's gradient beside the last one's, and how alike places are.
    """

    @torch.no_grad()
    def alike(run: Taught) -> float:
        """The cosine of the vectors of different places, 1 for all the same."""
        torch.manual_seed(run.seed)
        model = run.task.make()
        rows = functional.normalize(model.hidden(lesson.windows[:_WINDOWS, :-1]), dim=-1)  # (N, T, C)
        cosines = rows @ rows.mT  # (N, T, T)
        apart = ~torch.eye(rows.shape[1], dtype=torch.bool)
        return float(cosines[:, apart].mean())

    tasks = {
        key: lesson.on_text(without_residuals if key.endswith("without") else GPT, n_layers=named["layers"])
        for key, named in lesson.named.items()
    }
    return LessonPlan(tasks, {"gradient": lambda run: run.first_gradients[0] / run.first_gradients[-1], "alike": alike})


def dropout(lesson: MeasuredLesson) -> LessonPlan:
    """Some rates of dropout, of what the parts add and of the attention weights.

    Measured are the loss on what was read, and how far that is from the loss on what was not.
    """
    read_before = lesson.room.windows(len(lesson.windows), learned=True)
    tasks = {
        key: lesson.on_text(GPT, dropout=named["rate"], attention_dropout=named["rate"])
        for key, named in lesson.named.items()
    }
    return LessonPlan(
        tasks,
        {
            "learned": lambda run: held_out_loss(run.model, read_before),
            "gap": lambda run: held_out_loss(run.model, lesson.windows) - held_out_loss(run.model, read_before),
        },
    )


def width(lesson: MeasuredLesson) -> LessonPlan:
    """The same model in four widths, each twice as wide as the one before; how many numbers the token table has."""
    tasks = {key: lesson.on_text(GPT, d_model=named["width"]) for key, named in lesson.named.items()}
    return LessonPlan(tasks, {"table": lambda run: float(run.model.tokens.weight.numel())})


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
    return loss_at(model, windows, cuts(windows.shape[1] - 1)[:-1])


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
