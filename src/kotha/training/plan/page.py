"""A plan as one offline page, drawn as the studio's design room draws it, with the learning rate of every step."""

from typing import Any

from kotha.report.single_file import training_page
from kotha.training.config import TrainConfig
from kotha.training.optim import learning_rate_share, schedule_steps

_POINTS = 400
_SHOWN = (
    *("preset", "config", "parameters", "precision", "device", "context_length", "micro_batch_size", "gpu"),
    *("memory_available_bytes", "memory_bytes", "flops", "tokens_per_step", "steps", "tokens", "epochs"),
    *("seconds_per_step", "seconds", "time_source", "peak_flops_per_second", "peak_share", "doors"),
)


def plan_page(found: dict[str, Any], settings: TrainConfig) -> str:
    """The whole page as HTML, of what ``tell_plan`` found."""
    data = {name: found[name] for name in _SHOWN}
    data |= {"design": found.get("design"), "schedule": drawn_schedule(settings)}
    return training_page("plan", "What a training needs, before it starts", data, made_by="kotha plan")


def drawn_schedule(settings: TrainConfig) -> dict[str, Any]:
    """The learning rate over a run that is still to come: the schedule's name, its corners, and points to draw."""
    places = schedule_steps(settings, _POINTS)
    return {
        "name": settings.schedule,
        "steps": settings.steps,
        "warmup": settings.warmup_steps,
        "rate": settings.learning_rate,
        "muon_rate": settings.muon_learning_rate if settings.optimizer == "muon" else None,
        "last_share": learning_rate_share(settings.steps, settings),
        "points": [[step, learning_rate_share(step, settings)] for step in places],
    }
