"""Recipes: settings that go together, by name; each value can be overridden.

``course``   the workshop's, to the letter (question 7c: 3e-4, 1,000 steps of warm-up, cosine to a tenth; B 64)
``classic``  AdamW as most use it today
``modern``   for many epochs over little text: Muon, strong decay and dropout, a running average of the weights
"""

from typing import Any

from kotha.errors import ConfigError, nearest
from kotha.training.config import TrainConfig

RECIPES: dict[str, dict[str, Any]] = {
    "course": {
        "steps": 20_000,
        "batch_size": 64,
        "sampling": "offsets",
        "optimizer": "adamw",
        "learning_rate": 3e-4,
        "beta2": 0.999,
        "weight_decay": 0.01,
        "gradient_clip": None,
        "schedule": "cosine",
        "warmup_steps": 1000,
        "floor": 0.1,
        "evaluate_every": 500,
    },
    "classic": {"optimizer": "adamw", "learning_rate": 6e-4, "weight_decay": 0.1, "warmup_steps": 200},
    "modern": {
        "optimizer": "muon",
        "learning_rate": 1e-3,
        "muon_learning_rate": 3e-3,
        "weight_decay": 0.5,
        "schedule": "stable",
        "warmup_steps": 50,
        "floor": 0.02,
        "decay_steps": None,
        "ema_decay": 0.99,
        "ema_every": 4,
        "batch_size": 32,
    },
}


def recipe(name: str, **changes: Any) -> TrainConfig:
    """The settings of a recipe, with some changed.

    >>> recipe("course").warmup_steps
    1000
    """
    if name not in RECIPES:
        raise ConfigError("recipe {name!r} does not exist{nearest}", name=name, nearest=nearest(name, RECIPES))
    return TrainConfig().change(**{**RECIPES[name], **changes})
