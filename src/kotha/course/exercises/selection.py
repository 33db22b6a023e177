"""The choice of questions, and of the numbers in them: preset sizes, training recipe, worksheet and counts.

The numbers are those used in the workshop, or are drawn from a seed so that no two students get the same ones. A
``QuestionChoice`` is small enough to be stored in an answer file. When a student resumes or a teacher grades the file,
the same questions with the same numbers are rebuilt from it.
"""

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import lru_cache
from typing import Any, get_args, get_type_hints

import numpy as np

from kotha.course.data import calculate, data_file
from kotha.course.exercises.number_comparison import FILE
from kotha.course.exercises.questions import Question, SetName, all_questions
from kotha.course.worksheet.builtin_sheets import student_sheet
from kotha.course.worksheet.sheet import Sheet
from kotha.errors import DataError, UsageError
from kotha.i18n.message import Option
from kotha.i18n.numbers import ascii_digits
from kotha.model.config import GPTConfig
from kotha.model.parameters import count_parameters
from kotha.model.presets import preset as config_of
from kotha.training.config import recipe
from kotha.training.optim import learning_rate_share

# GPU memory in training, as measured in the workshop.
_MEASURED_GIGABYTES = {"bangla-58m": 4.33}
_MOST_SEED = 2**32


@dataclass(frozen=True)
class QuestionChoice:
    """The chosen questions and their numbers."""

    set: SetName = "workshop"
    questions: str = "all"
    preset: str = "bangla-58m"
    size: str | None = None
    seed: int | None = None

    def prepare(self) -> list[Question]:
        """Build the chosen questions."""
        return choose(_prepared(replace(self, questions="all")), self.questions)

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> "QuestionChoice":
        """Build a choice from a file's data; raise ``DataError`` if it is invalid."""
        data = {"questions": data.get("wanted", "all"), **data}  # the former name
        known = {field.name: data.get(field.name, field.default) for field in fields(cls)}
        kinds = {**get_type_hints(cls), "set": str}
        if known["set"] not in get_args(SetName) or not all(isinstance(known[name], kinds[name]) for name in known):
            raise DataError("the file does not record which questions were asked")
        return cls(**known)

    @property
    def sheet(self) -> str:
        """A name that identifies the numbers."""
        drawn = "" if self.seed is None else f", seed {self.seed}"
        return f"{self.set}{'' if self.size is None else f', {self.size}'}{drawn}"


@lru_cache(maxsize=8)
def _prepared(choice: QuestionChoice) -> list[Question]:
    """Build all questions in a set; cached, because all files in a class often share one choice."""
    if choice.seed is not None and not 0 <= choice.seed < _MOST_SEED:
        seed = Option("seed", choice.seed)
        raise UsageError("{seed} is out of range; use 0 to {most}", seed=seed, most=_MOST_SEED - 1)
    sheet = student_sheet(choice.size, choice.seed)
    return all_questions(choice.set, sheet, values_of(choice, sheet))


def choose(questions: Sequence[Question], wanted: str) -> list[Question]:
    """Return the questions with a number (7) or a part (7c), in Latin or Bangla digits, or all questions."""
    wanted = ascii_digits(wanted).strip().lower()
    if wanted in ("all", "সব"):
        return list(questions)
    chosen = [
        each
        for each in questions
        if (wanted == str(each.number) if wanted.isdigit() else each.id.lower().startswith(wanted))
    ]
    if not chosen:
        last = max(each.number for each in questions)
        if last < 10:
            raise UsageError(
                "unknown question {wanted!r}; use all, or a number from 1 to {last}",
                wanted=wanted,
                last=last,
            )
        raise UsageError(
            "unknown question {wanted!r}; use all, 1 to {last}, or a part such as 7c or 10a",
            wanted=wanted,
            last=last,
        )
    return chosen


def values_of(choice: QuestionChoice, sheet: Sheet) -> dict[str, Any]:
    """Return all values that texts and formulas in the question file can use, including those that the file defines."""
    # The training recipe in the questions; its number of steps is max_iters, which the workshop does not mention.
    config, course, content = config_of(choice.preset), recipe("course"), data_file(FILE)
    if not isinstance(config, GPTConfig):
        names = {"preset": choice.preset, "family": config.family}
        raise UsageError("the questions are about a GPT, but {preset} is a {family}; try gpt2", **names)
    count = count_parameters(config)
    parts = ("token_embedding", "positions", "attention", "feedforward", "norms", "head")
    values = {
        **content["counts"],
        "measured": _MEASURED_GIGABYTES.get(choice.preset),
        **({} if choice.seed is None else _drawn(choice.seed, config.vocab_size)),
        **vars(config),
        **vars(count),
        **_of_sheet(sheet),
        "config": config,
        "count": count,
        "course": course,
        "positions_added": config.positions in ("learned", "sinusoidal"),
        "norm_first": config.norm_order == "pre",
        "mlp_matrices": 3 if config.activation == "swiglu" else 2,
        "parts": " + ".join(f"{name.replace('_', ' ')} {n:,}" for name in parts if (n := getattr(count, name))),
        "seed": choice.seed,
        "drawn": choice.seed is not None,
        "decay_steps": max(1, course.steps - course.warmup_steps),
    }
    for name in ("early", "late"):
        values[f"{name}_rate"] = course.learning_rate * learning_rate_share(values[name], course)
        values[f"{name}_pct"] = min(1.0, (values[name] - course.warmup_steps) / values["decay_steps"])
    for name, formula in content["values"].items():
        values[name] = calculate(formula, values)
    return values


def _of_sheet(sheet: Sheet) -> dict[str, Any]:
    mask = sheet.matrices["mask"]
    n_tokens, d_head = sheet.matrices["K"].shape
    masks = {
        "mask": mask,
        "mask_turned": mask.T,
        "mask_open": np.ones_like(mask),
        "mask_strict": np.tril(mask, -1),
        "mask_exchanged": 1 - mask,
    }
    return {
        "rows": n_tokens,
        "columns": d_head,
        **{name: tuple(each.ravel().tolist()) for name, each in masks.items()},
        "mask_rows": "; ".join(" ".join(f"{value:g}" for value in row) for row in mask),
    }


def _drawn(seed: int, vocab_size: int) -> dict[str, Any]:
    """Draw different training figures from the same range as the workshop's."""
    draw = random.Random(seed)
    samples, held_out = draw.randint(3_000, 9_999), draw.randint(160, 520)
    each = draw.uniform(240, 400)
    loss = draw.uniform(2.2, 3.0)
    return {
        "batch": draw.choice((16, 24, 32, 40, 48, 56, 72, 80, 96)),
        "measured": None,
        "train_samples": samples,
        "train_tokens": round(samples * each),
        "val_samples": held_out,
        "val_tokens": round(held_out * (each + draw.uniform(-4, 4))),
        "iterations": draw.randrange(4_000, 12_001, 500),
        "train_loss": round(loss, 4),
        "val_loss": round(loss + draw.uniform(1.0, 1.8), 4),
        "early": draw.randrange(150, 951, 50),
        "late": draw.randrange(4_000, 16_001, 500),
        "true": draw.randint(100, vocab_size - 1),
        "new_tokens": draw.randrange(60, 241, 10),
    }
