"""Lessons that remove or change one part of a small GPT and measure the effect.

Positions: attention is a weighted sum, which does not depend on the order of its terms. With one layer and no
positions, the prediction is the same for any order of the past. With two layers the causal mask reveals some order:
each position has seen a different past (Haviv et al. 2022, https://arxiv.org/abs/2203.16634).

Joined: position and token have separate numbers in each vector. They cannot interfere, but the token has fewer numbers.
When positions are added, both use the full width, and the model has to separate them.

Mask: without it, the token to predict is visible one position to the right. The loss falls to almost nothing, on
held-out text too, since the model copies its right neighbour. In generation there is none, and the model fails.

Residuals: without them each part replaces its input instead of adding to it. Token information and gradients must then
pass through every softmax and every matrix. Each softmax averages, so without residual connections the vectors of all
positions become similar (Dong et al. 2021, https://arxiv.org/abs/2103.03404).

Encoder: the decoder sees the past and predicts the next token at every position. The encoder sees both sides and
predicts masked tokens only, so it reads more text for the same number of predictions. Both are measured on both tasks:
a masked token inside a text, and the next token.

Dropout: the training data is so small that the model memorizes it. Width: wider vectors can represent more, which the
course's table calls expressiveness.
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
_HOLES = 0.25  # share of tokens masked while the encoder is trained


def positions(lesson: MeasuredLesson) -> LessonPlan:
    """Compare models of one and two layers with and without positions; measure whether order matters to them."""
    tasks = {
        f"{depth}_{way}": lesson.on_text(GPT, n_layers=n_layers, positions=positions)
        for depth, n_layers in (("one", 1), ("two", 2))
        for way, positions in (("with", "learned"), ("without", "none"))
    }
    return LessonPlan(tasks, {"moved": lambda run: moved_by_shuffling(run.model, lesson.windows)})


def joined(lesson: MeasuredLesson) -> LessonPlan:
    """Compare positions added to the token vectors with positions concatenated to them."""
    quarter, half = (
        lesson.on_text(partial(with_joined_positions, width=lesson.sizes.d_model // part)) for part in (4, 2)
    )
    tasks = {"added": lesson.on_text(GPT), "quarter": quarter, "half": half}
    return LessonPlan(tasks, {"token_width": lambda run: float(run.model.tokens.embedding_dim)})


def mask(lesson: MeasuredLesson) -> LessonPlan:
    """Compare the same model with and without the causal mask; measure the loss as in training and as in generation."""
    return LessonPlan(
        {"with": lesson.on_text(GPT), "without": lesson.on_text(LooksAhead)},
        {
            "held_out": lambda run: sighted_loss(run.model, lesson.windows),
            "blind": lambda run: blind_loss(run.model, lesson.windows),
        },
        writes=True,
    )


def residuals(lesson: MeasuredLesson) -> LessonPlan:
    """Compare a shallow and a deep model with and without residual connections.

    Measures at initialization the gradient of the first block relative to the last, and the similarity of positions.
    """

    @torch.no_grad()
    def alike(run: Taught) -> float:
        """Return the mean cosine between the vectors of different positions; 1 if all are the same."""
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
    """Compare dropout rates, applied to the outputs of the parts and to the attention weights.

    Measures the loss on the training data, and the gap to the loss on held-out text.
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
    """Compare the same model in four widths, each twice the previous one."""
    tasks = {key: lesson.on_text(GPT, d_model=named["width"]) for key, named in lesson.named.items()}
    return LessonPlan(tasks, {"table": lambda run: float(run.model.tokens.weight.numel())})


def filled_holes(model: Filler, sequences: Tensor) -> Tensor:
    """Return the loss of predicting masked tokens from both sides: (B, T + 1) -> ()."""
    tokens = sequences[:, 1:]
    holes = torch.rand(tokens.shape) < _HOLES
    holes[:, 0] |= ~holes.any(dim=1)  # at least one per row
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
    """Return the loss of tokens inside a text: the encoder sees everything but the token, the decoder only the past."""
    return loss_at(model, windows, cuts(windows.shape[1] - 1)[:-1], _at_hole)


def loss_behind(model: GPT, windows: Tensor) -> float:
    """Return the loss of the next token given only the past, as in generation."""
    return loss_at(model, windows, cuts(windows.shape[1] - 1)[:-1])


def encoder(lesson: MeasuredLesson) -> LessonPlan:
    """Compare encoder and decoder on both tasks after the same number of predictions."""
    config = lesson.room.gpt(positions="rotary")  # relative positions are learned faster
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
