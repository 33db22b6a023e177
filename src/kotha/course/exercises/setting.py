"""What the questions are about: a preset's sizes, the course's recipe, a sheet, and counts of a training.

The numbers are the workshop's, or drawn by a seed, so that no two students have the same.
"""

import math
import random
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from kotha.course.worksheet.operations import Array
from kotha.course.worksheet.papers import student_sheet
from kotha.course.worksheet.sheet import Sheet
from kotha.errors import UsageError
from kotha.i18n.message import Option
from kotha.model.config import GPTConfig
from kotha.model.parameters import count_parameters
from kotha.model.presets import preset as config_of
from kotha.training.config import TrainConfig
from kotha.training.optim.schedule import learning_rate_share
from kotha.training.recipes import recipe

# What the workshop counts and measures: samples and tokens, how far its model was trained, the steps at which the
# learning rate is asked for, the next token of question 7, how many to write in question 8.
_COUNTS = {
    "batch": 64,
    "train_samples": 7_270,
    "train_tokens": 2_312_741,
    "val_samples": 383,
    "val_tokens": 122_216,
    "iterations": 8_500,
    "train_loss": 2.6058,
    "val_loss": 4.0778,
    "early": 500,
    "late": 10_000,
    "true": 5432,
    "new_tokens": 150,
}
# What training took where the workshop measured it.
_MEASURED_GIGABYTES = {"bangla-58m": 4.33}
_MOST_SEED = 2**32
_UINT16_VALUES = 2**16
_FLOAT32_BYTES = 4


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
        """All that texts and formulas of the question file may name."""
        return {**self.counts, **self._of_model(), **self._of_sheet(), **self._of_training()}

    def _of_model(self) -> dict[str, Any]:
        config, count = self.config, count_parameters(self.config)
        matrices = 3 if config.activation == "swiglu" else 2
        bare = {"per_head": 4 * config.d_model * config.d_head, "mlp": matrices * config.d_model * config.d_ff}
        counted = {"per_head": count.attention_per_head, "mlp": count.feedforward_per_layer}
        parts = ("token_embedding", "positions", "attention", "feedforward", "norms", "head")
        n_bytes = count.total * _FLOAT32_BYTES
        return {
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
        course, counts = self.course, self.counts
        step_tokens, decay = counts["batch"] * self.config.context_length, max(1, course.steps - course.warmup_steps)
        found = {
            "drawn": self.seed is not None,
            "step_tokens": step_tokens,
            "seen_tokens": step_tokens * counts["iterations"],
            "train_choices": math.exp(counts["train_loss"]),
            "val_choices": math.exp(counts["val_loss"]),
            "gap": counts["val_loss"] - counts["train_loss"],
            "rate": course.learning_rate,
            "warmup": course.warmup_steps,
            "steps": course.steps,
            "decay_steps": decay,
        }
        for name in ("early", "late"):
            found[f"{name}_rate"] = course.learning_rate * learning_rate_share(counts[name], course)
            found[f"{name}_pct"] = min(1.0, (counts[name] - course.warmup_steps) / decay)
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
    counts: dict[str, Any] = {**_COUNTS, "measured": _MEASURED_GIGABYTES.get(preset)}
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
