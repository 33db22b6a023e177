"""What the questions are about: a preset's sizes, the course's recipe, and a sheet."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from kotha.errors import UsageError
from kotha.inside.worksheet.sheet import Sheet
from kotha.inside.worksheet.workshop import sheet_by_hand
from kotha.model.config import GPTConfig
from kotha.model.presets import preset as config_of
from kotha.train.optimize.schedule import learning_rate_share
from kotha.train.recipes import recipe

# What training took where the workshop measured it.
_MEASURED_GIGABYTES = {"bangla-58m": 4.33}


@dataclass(frozen=True)
class Setting:
    """The sizes that the answers are computed for."""

    sheet: Sheet
    """Of questions 1 to 5."""
    config: GPTConfig
    batch_size: int
    learning_rate: float
    warmup_steps: int
    steps: int
    """max_iters, which the workshop does not say."""
    rate_at: Callable[[int], float]
    """The learning rate at an iteration."""
    training: tuple[int, int] = (7_270, 2_312_741)
    """Samples and tokens, as the workshop counts them."""
    validation: tuple[int, int] = (383, 122_216)
    iterations: int = 8_500
    """How far the workshop's model was trained."""
    losses: tuple[float, float] = (2.6058, 4.0778)
    new_tokens: int = 150
    """How many to write, in question 8."""
    measured_gigabytes: float | None = None
    """What training took on a GPU, where the workshop says it."""


def make_setting(
    preset: str = "bangla-58m", batch_size: int = 64, steps: int | None = None, size: str | None = None, seed: int = 0
) -> Setting:
    """The workshop's own, or other sizes: ``size`` and ``seed`` draw another sheet, as in ``sheet_by_hand``."""
    config = config_of(preset)
    if not isinstance(config, GPTConfig):
        raise UsageError(f"the questions are about a GPT, and {preset} is a {config.family}; try gpt2")
    if batch_size < 1:
        raise UsageError(f"batch_size={batch_size} is no batch; use 1 or more")
    changes: dict[str, Any] = {} if steps is None else {"steps": steps}
    course = recipe("course", **changes)
    return Setting(
        sheet=sheet_by_hand(size, seed),
        config=config,
        batch_size=batch_size,
        learning_rate=course.learning_rate,
        warmup_steps=course.warmup_steps,
        steps=course.steps,
        rate_at=lambda step: course.learning_rate * learning_rate_share(step, course),
        measured_gigabytes=_MEASURED_GIGABYTES.get(preset),
    )
