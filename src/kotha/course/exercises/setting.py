"""What the questions are about: a preset's sizes, the course's recipe, a sheet, and counts of a training.

The numbers are the workshop's, or drawn by a seed, so that no two students have the same.
"""

import math
import random
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from kotha.course.worksheet.operations import Array
from kotha.course.worksheet.sheet import Sheet
from kotha.course.worksheet.workshop import sheet_of_student
from kotha.errors import UsageError
from kotha.i18n.message import Option
from kotha.model.config import GPTConfig
from kotha.model.parameters import count_parameters
from kotha.model.presets import preset as config_of
from kotha.training.config import TrainConfig, recipe
from kotha.training.optim import learning_rate_share

# What training took where the workshop measured it.
_MEASURED_GIGABYTES = {"bangla-58m": 4.33}
_BATCH_SIZE = 64
_MOST_SEED = 2**32
_UINT16_VALUES = 2**16
_FLOAT32_BYTES = 4


@dataclass(frozen=True)
class Setting:
    """The sizes that the answers are computed for."""

    sheet: Sheet  # of questions 1 to 5
    config: GPTConfig
    batch_size: int
    course: TrainConfig  # its steps are max_iters, which the workshop does not say
    measured_gigabytes: float | None  # what training took on a GPU, where the workshop says it
    seed: int | None = None  # by which the numbers were drawn; None for the workshop's own
    training: tuple[int, int] = (7_270, 2_312_741)  # samples and tokens, as the workshop counts them
    validation: tuple[int, int] = (383, 122_216)
    iterations: int = 8_500  # how far the workshop's model was trained
    losses: tuple[float, float] = (2.6058, 4.0778)
    rate_steps: tuple[int, int] = (500, 10_000)  # at which the learning rate is asked for
    true_token: int = 5432  # the next one, in question 7
    new_tokens: int = 150  # how many to write, in question 8

    @cached_property
    def values(self) -> dict[str, Any]:
        """All that texts and formulas of the question file may name."""
        return {**self._of_model(), **self._of_sheet(), **self._of_training()}

    def _of_model(self) -> dict[str, Any]:
        config, count = self.config, count_parameters(self.config)
        matrices = 3 if config.activation == "swiglu" else 2
        bare = {"per_head": 4 * config.d_model * config.d_head, "mlp": matrices * config.d_model * config.d_ff}
        counted = {"per_head": count.attention_per_head, "mlp": count.feedforward_per_layer}
        parts = ("token_embedding", "positions", "attention", "feedforward", "norms", "head")
        n_bytes = count.total * _FLOAT32_BYTES
        return {
            "batch": self.batch_size,
            "length": config.context_length,
            "layers": config.n_layers,
            "other_layers": config.n_layers - 1,
            "heads": config.n_heads,
            "d_head": config.d_head,
            "joined": config.n_heads * config.d_head,
            "width": config.d_model,
            "inner": config.d_ff,
            "vocabulary": config.vocab_size,
            "positions_added": config.positions in ("learned", "sinusoidal"),
            "norm_first": config.norm_order == "pre",
            "embedding": count.token_embedding,
            "attention": count.attention_per_layer,
            "attention_bare": 4 * config.d_model * config.d_model,
            **counted,
            **{f"{name}_bare": n for name, n in bare.items()},
            **{f"{name}_biases": counted[name] - n for name, n in bare.items()},
            "mlp_matrices": matrices,
            "head_table": count.head,
            "tied": count.tied_head,
            "total": count.total,
            "parts": " + ".join(f"{name.replace('_', ' ')} {n:,}" for name in parts if (n := getattr(count, name))),
            "total_bytes": n_bytes,
            "gibibytes": n_bytes / 2**30,
            "gigabytes": n_bytes / 1e9,
            "two_copies": 2 * n_bytes / 1e9,
            "four_copies": 4 * n_bytes / 1e9,
            "measured": self.measured_gigabytes,
            "uint16": _UINT16_VALUES,
            "last_id": _UINT16_VALUES - 1,
        }

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

    def _of_training(self) -> dict[str, Any]:
        course, (train_loss, val_loss) = self.course, self.losses
        step_tokens, decay = self.batch_size * self.config.context_length, max(1, course.steps - course.warmup_steps)
        found = {
            "drawn": self.seed is not None,
            "train_samples": self.training[0],
            "train_tokens": self.training[1],
            "val_samples": self.validation[0],
            "val_tokens": self.validation[1],
            "iterations": self.iterations,
            "step_tokens": step_tokens,
            "seen_tokens": step_tokens * self.iterations,
            "train_loss": train_loss,
            "val_loss": val_loss,
            "train_choices": math.exp(train_loss),
            "val_choices": math.exp(val_loss),
            "gap": val_loss - train_loss,
            "rate": course.learning_rate,
            "warmup": course.warmup_steps,
            "steps": course.steps,
            "decay_steps": decay,
            "true": self.true_token,
            "new_tokens": self.new_tokens,
        }
        for name, step in zip(("early", "late"), self.rate_steps, strict=True):
            found |= {name: step, f"{name}_rate": course.learning_rate * learning_rate_share(step, course)}
            found[f"{name}_pct"] = min(1.0, (step - course.warmup_steps) / decay)
        return found


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
    course, sheet = recipe("course", **changes), sheet_of_student(size, seed)
    setting = Setting(sheet, config, batch_size or _BATCH_SIZE, course, _MEASURED_GIGABYTES.get(preset))
    return setting if seed is None else _drawn(setting, seed, batch_size)


def _drawn(setting: Setting, seed: int, batch_size: int | None) -> Setting:
    """Other counts of a training, of the workshop's kind."""
    draw = random.Random(seed)
    samples, held_out = draw.randint(3_000, 9_999), draw.randint(160, 520)
    each = draw.uniform(240, 400)
    loss = draw.uniform(2.2, 3.0)
    return replace(
        setting,
        seed=seed,
        batch_size=batch_size or draw.choice((16, 24, 32, 40, 48, 56, 72, 80, 96)),
        measured_gigabytes=None,
        training=(samples, round(samples * each)),
        validation=(held_out, round(held_out * (each + draw.uniform(-4, 4)))),
        iterations=draw.randrange(4_000, 12_001, 500),
        losses=(round(loss, 4), round(loss + draw.uniform(1.0, 1.8), 4)),
        rate_steps=(draw.randrange(150, 951, 50), draw.randrange(4_000, 16_001, 500)),
        true_token=draw.randint(100, setting.config.vocab_size - 1),
        new_tokens=draw.randrange(60, 241, 10),
    )
