"""Stages of a training run: several models, if there is more time than one model can use.

A model of the usual size for a small text stops improving after about twenty passes over it. With more time, a wider
model is better if it has more dropout and weight decay and half of its sequences are reversed. With still more time,
several models are trained as teachers, and one student is distilled from all of them. The student outperforms each of
its teachers (knowledge distillation, https://arxiv.org/abs/1503.02531). The table below gives the time from which each
plan is best, as the number of passes over the text that a single-stage model could make in that time. It was measured
on 32 MB of Bangla news and one H200 (benchmarks/results/stages_h200.json, minutes_h200.json).
"""

from dataclasses import dataclass, field
from typing import Any, Literal

from kotha.artifacts.run_folder import TEACHERS
from kotha.model.config import GPTConfig
from kotha.training.config import TrainConfig
from kotha.training.plan.design import RUNGS, Budget, Design, shape
from kotha.training.plan.rules import EVALUATIONS, pace_of, rates_for
from kotha.training.plan.text_size import TextSize

Quality = Literal["quick", "standard", "best"]

# Startup time of each further stage in seconds; on a GPU, mostly compilation.
_START_SECONDS = {"cpu": 1.0, "cuda": 15.0}
# The share of the time for training; the rest is for evaluations and saving.
_USED = 0.96
# A forward pass takes a third of the time of a training step.
_FORWARD = 1 / 3
# The share of a stage's steps in which the learning rate falls.
_DECAY = 5 / 6
# Muon's peak learning rate at width 512 for many passes; inversely proportional to the square root of the width.
_MUON_AT_512 = 6e-3
_TEACHER_EVALUATIONS = 3
# Number of sizes between the ordinary and the wide model; each size costs about twice as much as the one before.
_WIDER = 2


@dataclass(frozen=True)
class Role:
    """The role of a stage: its size, its settings, and the largest useful number of passes over the text."""

    passes: float
    wide: bool = False
    settings: dict[str, Any] = field(default_factory=dict)


_BACKWARDS = {"backwards": 0.5}
_WIDE = {**_BACKWARDS, "dropout": 0.35, "weight_decay": 0.8}
_TEXT = {"dropout": 0.3, "weight_decay": 0.5}
_WIDE_TEACHER = Role(25, True, _WIDE)
_BACKWARDS_TEACHER = Role(30, False, {**_TEXT, **_BACKWARDS})
_PLAIN_TEACHER = Role(15, False, _TEXT)
_DISTILLED = {"dropout": 0.2, "weight_decay": 0.5}

# The number of passes from which each plan is used, and its stages; below all of these, one ordinary stage is used.
_PLANS: tuple[tuple[float, Quality, tuple[Role, ...]], ...] = (
    (
        450,
        "best",
        (_WIDE_TEACHER, _WIDE_TEACHER, _BACKWARDS_TEACHER, _PLAIN_TEACHER, Role(62, True, _DISTILLED)),
    ),
    (170, "best", (_WIDE_TEACHER, _BACKWARDS_TEACHER, _PLAIN_TEACHER, Role(35, True, _DISTILLED))),
    (90, "best", (_WIDE_TEACHER, _BACKWARDS_TEACHER, Role(35, True, _DISTILLED))),
    (40, "standard", (Role(30, True, _WIDE),)),
    (24, "standard", (Role(33, False, {**_TEXT, **_BACKWARDS}),)),
)


@dataclass(frozen=True)
class Stage:
    """One model of a run, with its settings and its share of the time."""

    model: GPTConfig
    settings: TrainConfig
    most_steps: int  # number of steps after which more passes do not help
    seconds_per_step: float
    seconds: float  # for training

    def to_dict(self) -> dict[str, Any]:
        """Return the stage, ready for JSON."""
        return {
            "model": self.model.to_dict(),
            "training": self.settings.to_dict(),
            "most_steps": self.most_steps,
            "seconds": self.seconds,
        }


def plan_stages(
    text: TextSize, budget: Budget, design: Design, fixed: dict[str, Any], quality: Quality
) -> tuple[Stage, ...]:
    """Return the best stages for the time; none if a single ordinary stage, ``design``, is best."""
    if quality == "quick" or budget.seconds <= 0:
        return ()
    tokens = text.tokens_with(design.model.vocab_size)
    used = _USED * 60 * budget.minutes - budget.start_seconds
    passes = used * design.tokens_per_step / (tokens * design.seconds_per_step)
    for least, kind, roles in _PLANS:
        if passes >= least and (quality == "best" or kind == "standard"):
            return _fitted(text, budget, design, fixed, roles, used)
    return ()


def _fitted(
    text: TextSize, budget: Budget, design: Design, fixed: dict[str, Any], roles: tuple[Role, ...], seconds: float
) -> tuple[Stage, ...]:
    """Return the stages of a plan, each with as many steps as fit in the time."""
    wide = _wide(text, budget, design, fixed) if any(role.wide for role in roles) else design
    sized = [wide if role.wide else design for role in roles]
    paces = [each.seconds_per_step for each in sized]
    paces[-1] += _FORWARD * sum(paces[:-1])  # the student's steps include the teachers' predictions
    one_pass = text.tokens_with(design.model.vocab_size) / design.tokens_per_step  # in steps
    most = [max(1, round(role.passes * one_pass)) for role in roles]
    seconds -= _START_SECONDS[budget.device] * (len(roles) - 1)
    share = min(1.0, seconds / sum(n * pace for n, pace in zip(most, paces, strict=True)))
    base = design.settings
    shared: dict[str, Any] = {"context_length": design.context_length, "batch_size": base.batch_size}
    shared["evaluate_tokens"] = base.evaluate_tokens
    stages, folders = list[Stage](), list[str]()
    for role, each, n, pace in zip(roles, sized, most, paces, strict=True):
        steps, is_last = max(1, int(share * n)), len(folders) == len(roles) - 1
        own = {"teachers": tuple(folders)} if is_last else {"seed": design.settings.seed + 1 + len(folders)}
        evaluations = EVALUATIONS if is_last else _TEACHER_EVALUATIONS
        changes = {**shared, **_pace(steps, each.model.d_model, evaluations), **role.settings, **fixed, **own}
        stage = Design(text, budget, each.model, changes)
        stages.append(Stage(stage.model, stage.settings.change(**changes), n, pace, steps * pace))
        folders.append(f"{TEACHERS}/{len(stages)}")
    return tuple(stages)


def _pace(steps: int, width: int, evaluations: int) -> dict[str, Any]:
    """Return the settings that depend on the number of steps, including Muon's learning rate for many passes."""
    rate = max(rates_for(width)["muon_learning_rate"], _MUON_AT_512 * (512 / width) ** 0.5)
    return {
        **pace_of(steps, evaluations=evaluations),
        "decay_steps": max(1, int(_DECAY * steps)),
        "muon_learning_rate": round(rate, 5),
    }


def _wide(text: TextSize, budget: Budget, design: Design, fixed: dict[str, Any]) -> Design:
    """Return a design that is two sizes larger, or less if memory is insufficient."""
    shared = {"context_length": design.context_length, "batch_size": design.settings.batch_size}
    index = RUNGS.index((design.model.n_layers, design.model.d_model))
    for rung in range(min(index + _WIDER, len(RUNGS) - 1), index, -1):
        candidate = Design(text, budget, shape(*RUNGS[rung], design.model.vocab_size), {**shared, **fixed})
        if candidate.fits_memory:
            return candidate
    return design
