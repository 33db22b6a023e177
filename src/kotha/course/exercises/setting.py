"""What the questions are about: a preset's sizes, the course's recipe, a sheet, and counts of a training.

The numbers are the workshop's, or drawn by a seed, so that no two students have the same.
"""

import random
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from kotha.course.exercises.formula import calculate, question_file
from kotha.course.worksheet.operations import Array
from kotha.course.worksheet.papers import student_sheet
from kotha.course.worksheet.sheet import Sheet
from kotha.errors import UsageError
from kotha.i18n.message import Option
from kotha.model.config import GPTConfig
from kotha.model.parameters import count_parameters
from kotha.model.presets import preset as config_of
from kotha.training.config import TrainConfig, recipe
from kotha.training.optim import learning_rate_share

# What training took where the workshop measured it.
_MEASURED_GIGABYTES = {"bangla-58m": 4.33}
_MOST_SEED = 2**32


@dataclass(frozen=True)
class Setting:
    """The sizes that the answers are computed for."""

    sheet: Sheet  # of questions 1 to 5
    config: GPTConfig
    course: TrainConfig  # its steps are max_iters, which the workshop does not say
    counts: Mapping[str, Any]
    seed: int | None = None  # by which the numbers were drawn; None for the workshop's own

    @cached_property
    def values(self) -> dict[str, Any]:
        """All that texts and formulas of the question file may name; it works some out itself."""
        config, count, course = self.config, count_parameters(self.config), self.course
        parts = ("token_embedding", "positions", "attention", "feedforward", "norms", "head")
        values = {
            **self.counts,
            **vars(config),
            **vars(count),
            **self._of_sheet(),
            "d_head": config.d_head,
            "positions_added": config.positions in ("learned", "sinusoidal"),
            "norm_first": config.norm_order == "pre",
            "mlp_matrices": 3 if config.activation == "swiglu" else 2,
            "attention": count.attention_per_layer,
            "per_head": count.attention_per_head,
            "mlp": count.feedforward_per_layer,
            "total": count.total,
            "parts": " + ".join(f"{name.replace('_', ' ')} {n:,}" for name in parts if (n := getattr(count, name))),
            "drawn": self.seed is not None,
            "rate": course.learning_rate,
            "warmup": course.warmup_steps,
            "steps": course.steps,
        }
        values["decay_steps"] = max(1, course.steps - course.warmup_steps)
        for name in ("early", "late"):
            values[f"{name}_rate"] = course.learning_rate * learning_rate_share(values[name], course)
            values[f"{name}_pct"] = min(1.0, (values[name] - course.warmup_steps) / values["decay_steps"])
        for name, formula in question_file()["values"].items():
            values[name] = calculate(formula, values)
        return values

    def _of_sheet(self) -> dict[str, Any]:
        mask = self.sheet.matrices["mask"]
        n_tokens, d_head = self.sheet.steps["K"].values.shape
        return {
            "rows": n_tokens,
            "columns": d_head,
            "mask": _flat(mask),
            "mask_turned": _flat(mask.T),
            "mask_open": _flat(np.ones_like(mask)),
            "mask_strict": _flat(np.tril(mask, -1)),
            "mask_exchanged": _flat(1 - mask),
            "mask_rows": "; ".join(" ".join(f"{value:g}" for value in row) for row in mask),
        }


def _flat(matrix: Array) -> tuple[float, ...]:
    return tuple(matrix.ravel().tolist())


def make_setting(
    preset: str = "bangla-58m",
    batch_size: int | None = None,
    steps: int | None = None,
    size: str | None = None,
    seed: int | None = None,
) -> Setting:
    """The workshop's own numbers, or other ones: ``size`` of the sheet, and a ``seed`` that draws them all."""
    config = config_of(preset)
    if not isinstance(config, GPTConfig):
        raise UsageError(
            "the questions are about a GPT, and {preset} is a {family}; try gpt2", preset=preset, family=config.family
        )
    if batch_size is not None and batch_size < 1:
        raise UsageError("{batch_size} is no batch; use 1 or more", batch_size=Option("batch_size", batch_size))
    if seed is not None and not 0 <= seed < _MOST_SEED:
        raise UsageError("{seed} is no seed; use 0 to {most}", seed=Option("seed", seed), most=_MOST_SEED - 1)
    changes: dict[str, Any] = {} if steps is None else {"steps": steps}
    counts: dict[str, Any] = {**question_file()["counts"], "measured": _MEASURED_GIGABYTES.get(preset)}
    if seed is not None:
        counts |= _drawn(seed, config.vocab_size, batch_size)
    elif batch_size is not None:
        counts["batch"] = batch_size
    return Setting(student_sheet(size, seed), config, recipe("course", **changes), counts, seed)


def _drawn(seed: int, vocab_size: int, batch_size: int | None) -> dict[str, Any]:
    """Other counts of a training, of the workshop's kind."""
    draw = random.Random(seed)
    samples, held_out = draw.randint(3_000, 9_999), draw.randint(160, 520)
    each = draw.uniform(240, 400)
    loss = draw.uniform(2.2, 3.0)
    return {
        "batch": batch_size or draw.choice((16, 24, 32, 40, 48, 56, 72, 80, 96)),
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
