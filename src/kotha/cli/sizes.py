"""Settings that are sizes of the model, among those that are settings of the training."""

from dataclasses import fields
from typing import Any

from kotha.model.config import ModelConfig
from kotha.train.config import TrainConfig


def take_sizes(model: ModelConfig, given: dict[str, Any]) -> tuple[ModelConfig, dict[str, Any]]:
    """A model with those settings that only a model has, such as n_layers, and the settings that are left."""
    of_training = {each.name for each in fields(TrainConfig)}
    sizes = {each.name for each in fields(model)} - of_training
    changes = {name: value for name, value in given.items() if name in sizes}
    rest = {name: value for name, value in given.items() if name not in sizes}
    return (model.replace(**changes) if changes else model), rest
