"""The learning rate at each step, as a share of the largest: warm-up, then constant, cosine or WSD (stable, decay).

``inverse-sqrt`` is the schedule of the first transformer (https://arxiv.org/abs/1706.03762, section 5.3): after the
warm-up the rate falls with the square root of the steps, whatever their number, and has no floor.
A step's share is a function of the step alone, so a resumed run goes on where it was.
"""

import math

from kotha.training.config import TrainConfig


def learning_rate_share(step: int, config: TrainConfig) -> float:
    """Share of the largest learning rate at a step, counted from 0.

    >>> course = TrainConfig(steps=20_000, warmup_steps=1000, schedule="cosine", floor=0.1)
    >>> 3e-4 * learning_rate_share(500, course)
    0.00015
    """
    if step < config.warmup_steps:
        return step / config.warmup_steps
    if config.schedule == "inverse-sqrt":
        return math.sqrt(max(1, config.warmup_steps) / max(1, step))
    height = 1.0  # above the floor
    if config.schedule == "cosine":  # from the end of the warm-up to the last step, along half a cosine
        passed = (step - config.warmup_steps) / max(1, config.steps - config.warmup_steps)
        height = 0.5 * (1 + math.cos(math.pi * min(1.0, passed)))
    elif config.schedule == "stable":  # 1 until the last steps, then straight down
        height = min(1.0, max(0, config.steps - step) / (config.decay_steps or max(1, config.steps // 5)))
    return config.floor + (1 - config.floor) * height


def schedule_steps(config: TrainConfig, count: int) -> list[int]:
    """So many steps, or all if there are fewer, evenly over a run, the first and the last among them."""
    last = config.steps - 1
    return sorted({round(place * last / max(1, count - 1)) for place in range(count)})
