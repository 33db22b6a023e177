"""A run that ends in time: as many steps as this machine is expected to do, and a schedule that fits them."""

from collections.abc import Collection

import torch

from kotha.model.config import ModelConfig
from kotha.train.config import TrainConfig
from kotha.train.device.precision import choose_arithmetic
from kotha.train.plan.memory import planned_micro_batch
from kotha.train.plan.step_time import predict_seconds_per_step

_EVALUATIONS = 8
# Of the time, what goes into evaluations, samples and saving.
_ASIDE = 0.1


def use_fastest_threads(model: ModelConfig, settings: TrainConfig) -> int:
    """Compute with all cores, or with one where that is faster: on a busy machine many short waits add up.

    Sums may round differently with another number of threads, so a run that is to be repeated bit for bit should not
    depend on this.
    """
    arithmetic, all_of_them = choose_arithmetic(settings.precision), torch.get_num_threads()
    if arithmetic.device.type == "cpu" and all_of_them > 1:
        seconds: dict[int, float] = {}
        for count in (all_of_them, 1):
            torch.set_num_threads(count)
            seconds[count] = predict_seconds_per_step(
                model, settings, *planned_micro_batch(model, settings, arithmetic), arithmetic
            )
        torch.set_num_threads(min(seconds, key=lambda count: seconds[count]))
    return torch.get_num_threads()


def settings_for_minutes(
    model: ModelConfig, settings: TrainConfig, minutes: float, fixed: Collection[str] = ()
) -> TrainConfig:
    """The settings with ``steps`` for about so many minutes; what is not ``fixed`` by the user follows from them."""
    arithmetic = choose_arithmetic(settings.precision)
    micro_batch_size, context_length = planned_micro_batch(model, settings, arithmetic)
    seconds = predict_seconds_per_step(model, settings, micro_batch_size, context_length, arithmetic)
    steps = max(_EVALUATIONS, int(60 * minutes * (1 - _ASIDE) / seconds))
    following = {
        "evaluate_every": max(1, -(-steps // _EVALUATIONS)),
        "warmup_steps": min(settings.warmup_steps, steps // 10),
    }
    return settings.change(steps=steps, **{name: value for name, value in following.items() if name not in fixed})
