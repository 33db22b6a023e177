"""The learning rate at each step, as a share of the largest: warm-up, then constant, cosine or WSD (stable, decay).

A step's share is a function of the step alone, so a resumed run goes on where it was.
"""

import math

from kotha.train.config import TrainConfig


def learning_rate_share(step: int, config: TrainConfig) -> float:
    """Share of the largest learning rate at a step, counted from 0.

    >>> course = TrainConfig(steps=20_000, warmup_steps=1000, schedule="cosine", floor=0.1)
    >>> 3e-4 * learning_rate_share(500, course)
    0.00015
    """
    if step < config.warmup_steps:
        return step / config.warmup_steps
    if config.schedule == "cosine":
        return _cosine(step, config)
    if config.schedule == "stable":
        return _stable(step, config)
    return 1.0


def _cosine(step: int, config: TrainConfig) -> float:
    """From 1 at the end of the warm-up to the floor at the last step, along half a cosine."""
    passed = (step - config.warmup_steps) / max(1, config.steps - config.warmup_steps)
    return config.floor + (1 - config.floor) * 0.5 * (1 + math.cos(math.pi * min(1.0, passed)))


def _stable(step: int, config: TrainConfig) -> float:
    """1 until the last steps, then straight down to the floor (warm-up, stable, decay)."""
    decay_steps = config.decay_steps or max(1, config.steps // 5)
    left = max(0, config.steps - step) / decay_steps
    return config.floor + (1 - config.floor) * min(1.0, left)
