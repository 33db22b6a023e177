"""What a training takes before it starts, a design for a budget, and many GPUs on paper."""

from collections.abc import Callable, Sequence
from typing import Any

from kotha.arguments import checked
from kotha.errors import UsageError
from kotha.export.targets import supported_targets
from kotha.i18n.message import Option
from kotha.model.config import GPTConfig
from kotha.report.table import Table
from kotha.storage.atomic import write_page as write_page
from kotha.training.plan.cluster import NETWORK, PER_NODE, STORAGE, Cluster, read_tokens, tell_cluster
from kotha.training.plan.design import TextSize
from kotha.training.plan.render import TrainingPlan, tell_plan
from kotha.training.plan.step_time import gpu_named, use_fastest_threads
from kotha.training.start import TrainRequest, choose_settings

_GPU, _MOST_GB = "h200", 1_000_000


@checked()
def plan(
    preset: str | None = None,
    *,
    recipe: str = "modern",
    minutes: float | None = None,
    memory_gb: float | None = None,
    data: str | TextSize | None = None,
    device: str | None = None,
    gpu: str | None = None,
    timed: bool = True,
    settings: dict[str, Any] | None = None,
    before_timing: Callable[[], Any] = use_fastest_threads,
) -> TrainingPlan:
    """Count a preset's parameters, work, memory and time; or design a model for memory, minutes and data.

    What comes back has all that was ``found``, ready for JSON, and tells it in tables, in sentences and on a page.
    ``gpu`` estimates for one by its name; without it this machine is asked, and where ``timed`` a few small steps are
    measured on it, once ``before_timing`` has settled how it computes. ``settings`` are those of a training, and sizes
    of the model; ``data`` may also be the size of a text that is not there yet.
    """
    name = Option("preset", "NAME")
    if preset is None and memory_gb is None and minutes is None:
        needed = [Option(each) for each in ("memory_gb", "minutes", "data")]
        raise UsageError("say what to plan: {preset}, or for a design {needed}", preset=name, needed=needed)
    for each, value in (("minutes", minutes), ("data", data)):
        if value is None and (memory_gb is not None or minutes is not None):
            told = "{needed} is missing: what fits depends on text and time; {preset} alone needs neither"
            raise UsageError(told, needed=Option(each), preset=name)
    if memory_gb is not None and not 0 < memory_gb <= _MOST_GB:
        told = "{memory_gb} takes a number above 0, up to {most_gb:,}"
        raise UsageError(told, memory_gb=Option("memory_gb"), most_gb=_MOST_GB)
    named = None if gpu is None else gpu_named(gpu)
    memory = None if memory_gb is None else int(memory_gb * 1e9)
    request = TrainRequest(preset, recipe, minutes, memory, device, named, settings or {})
    return tell_plan(request, data, supported_targets, timed=timed, before_timing=before_timing)


@checked()
def plan_cluster(
    gpus: int,
    *,
    preset: str | None = None,
    recipe: str = "modern",
    gpu: str | None = None,
    nodes: int | None = None,
    tokens: Sequence[str] = (),
    network: float | None = None,
    storage: float | None = None,
    settings: dict[str, Any] | None = None,
) -> tuple[dict[str, Any], list[Table]]:
    """Plan on paper, for a preset or for several sizes, what so many GPUs would need and give.

    They share ``nodes`` machines (left out: one for each 8), have ``network`` Gb/s each and write ``storage`` GB/s a
    machine; ``tokens`` to train on are written as 10B or 1T.
    """
    machines = Cluster(
        gpu_named(gpu or _GPU),
        gpus,
        nodes if nodes is not None else -(-gpus // PER_NODE),
        NETWORK if network is None else network * 1e9 / 8,
        STORAGE if storage is None else storage * 1e9,
    )
    given = settings or {}
    # Muon's products are not counted here, so the modern recipe gives way to AdamW's.
    plain = "classic" if recipe == "modern" else recipe
    changes = {name: value for name, value in given.items() if name not in ("batch_size", "micro_batch_size")}
    choice = choose_settings(TrainRequest(preset, plain, changes={**changes, "steps": 1}))
    if not isinstance(choice.model, GPTConfig):
        raise UsageError(
            "many GPUs are planned for a gpt, and {preset} is a {family}", preset=preset, family=choice.model.family
        )
    model = None if preset is None else choice.model
    sizes = given.get("batch_size"), given.get("context_length")
    return tell_cluster(model, choice.settings, machines, read_tokens(tokens), *sizes)
