"""Lessons that remove or change one part of a small GPT and measure the effect.

Positions: attention is a weighted sum, which does not depend on the order of its terms. With one layer and no
positions, the prediction is the same for any order of the earlier tokens. With two layers the model can infer some of
the order, because under the causal mask each position attends to a different set of tokens (Haviv et al. 2022,
https://arxiv.org/abs/2203.16634).

Joined: token and position are concatenated, so each uses its own part of the vector. The two parts cannot interfere,
but fewer dimensions are left for the token. When positions are added, token and position share the full width, and the
model has to separate them.

Mask: without it, the token to predict is visible one position to the right. The loss falls to almost zero, on held-out
text too, because the model copies that token. In generation the token does not exist yet, and the model fails.

Residuals: without residual connections, each part replaces its input instead of adding to it. Token information and
gradients must then pass through every softmax and every matrix. Because each softmax averages, the vectors at all
positions become similar (Dong et al. 2021, https://arxiv.org/abs/2103.03404).

Encoder: unlike an encoder, a decoder attends only to earlier tokens, and predicts the next token at every position. An
encoder attends to both sides and predicts only masked tokens, so it needs more text for the same number of predictions.
Encoder and decoder are measured on both tasks: predicting a masked token inside a text, and predicting the next token.

Dropout: the training data is so small that the model memorizes it. Width: wider vectors can represent
more, which the course's table calls expressiveness.
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
    """Compare models with one and two layers, with and without positions; measure whether token order affects them."""
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

    At initialization, the lesson measures the first block's gradient relative to the last block's, and how similar the
    vectors at different positions are.
    """

    @torch.no_grad()
    def alike(run: Taught) -> float:
        """Return the mean cosine between the vectors at different positions; 1 if all are the same."""
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

    The lesson measures the loss on the training data, and how much higher the loss on held-out text is.
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
    """Compare the same model at four widths, each twice the previous one."""
    tasks = {key: lesson.on_text(GPT, d_model=named["width"]) for key, named in lesson.named.items()}
    return LessonPlan(tasks, {"table": lambda run: float(run.model.tokens.weight.numel())})


def filled_holes(model: Filler, sequences: Tensor) -> Tensor:
    """Return the loss for predicting masked tokens from both sides: (B, T + 1) -> ()."""
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
    """Return the loss for tokens inside a text.

    An encoder reads all other tokens, and a decoder only the earlier ones.
    """
    return loss_at(model, windows, cuts(windows.shape[1] - 1)[:-1], _at_hole)


def loss_behind(model: GPT, windows: Tensor) -> float:
    """Return the next-token loss given only the earlier tokens, as in generation."""
    return loss_at(model, windows, cuts(windows.shape[1] - 1)[:-1])


def encoder(lesson: MeasuredLesson) -> LessonPlan:
    """Compare an encoder and a decoder on both tasks after the same number of predictions."""
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
