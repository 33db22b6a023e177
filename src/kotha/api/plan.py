"""Estimates for training runs and clusters, and model designs for a budget."""

from collections.abc import Callable
from typing import Any

from kotha.api.options import ClusterOptions, PlanOptions
from kotha.errors import UsageError
from kotha.export.targets import supported_targets
from kotha.i18n.message import Option
from kotha.model.config import GPTConfig
from kotha.report.table import Table
from kotha.storage.atomic import write_page as write_page
from kotha.training.plan.cluster import NETWORK, PER_NODE, STORAGE, Cluster, describe_cluster, read_tokens
from kotha.training.plan.render import TrainingPlan, describe_plan
from kotha.training.plan.step_time import gpu_named, use_fastest_threads
from kotha.training.plan.text_size import TextSize
from kotha.training.request import TrainRequest, choose_settings

_GPU, _MOST_GB = "h200", 1_000_000


def plan(
    options: PlanOptions,
    settings: dict[str, Any],
    *,
    text: TextSize | None = None,
    before_timing: Callable[[], Any] = use_fastest_threads,
) -> TrainingPlan:
    """Estimate a preset's parameters, compute, memory and time, or design a model for a memory or time budget and data.

    The result contains ``found`` (for JSON), tables, sentences and a page. ``settings`` are training settings and model
    sizes. ``text`` is the size of a text that does not exist yet, to use instead of ``data``. ``before_timing``, which
    sets the number of threads, is called before a few small steps are timed.
    """
    preset, minutes, memory_gb, name = options.preset, options.minutes, options.memory_gb, Option("preset", "NAME")
    if preset is None and memory_gb is None and minutes is None:
        needed = [Option(each) for each in ("memory_gb", "minutes", "data")]
        raise UsageError("specify what to plan: {preset}, or for a design {needed}", preset=name, needed=needed)
    data = options.data if text is None else text
    for each, value in (("minutes", minutes), ("data", data)):
        if value is None and (memory_gb is not None or minutes is not None):
            message = "{needed} is missing: a design depends on the text and the time; {preset} alone needs neither"
            raise UsageError(message, needed=Option(each), preset=name)
    if memory_gb is not None and not 0 < memory_gb <= _MOST_GB:
        message = "{memory_gb} must be above 0 and at most {most_gb:,}"
        raise UsageError(message, memory_gb=Option("memory_gb"), most_gb=_MOST_GB)
    gpu = None if options.gpu is None else gpu_named(options.gpu)
    memory = None if memory_gb is None else int(memory_gb * 1e9)
    request = TrainRequest(preset, options.recipe, minutes, memory, options.device, gpu, settings, quality="best")
    return describe_plan(request, data, supported_targets, timed=not options.no_time, before_timing=before_timing)


def plan_cluster(
    cluster: ClusterOptions, options: PlanOptions, settings: dict[str, Any]
) -> tuple[dict[str, Any], list[Table]]:
    """Estimate memory and time on a cluster, for a preset or for several sizes."""
    if cluster.gpus is None:
        message = "{these} apply only to a cluster; set the number of GPUs with {gpus}"
        these = [Option(name) for name in ("nodes", "tokens", "network", "storage")]
        raise UsageError(message, these=these, gpus=Option("gpus"))
    for name in ("memory_gb", "minutes", "data"):
        if getattr(options, name) is not None:
            message = "{misplaced} does not apply to a cluster plan; omit it"
            raise UsageError(message, misplaced=Option(name))
    machines = Cluster(
        gpu_named(options.gpu or _GPU),
        cluster.gpus,
        cluster.nodes if cluster.nodes is not None else -(-cluster.gpus // PER_NODE),
        NETWORK if cluster.network is None else cluster.network * 1e9 / 8,
        STORAGE if cluster.storage is None else cluster.storage * 1e9,
    )
    # The estimate does not cover Muon, so the modern recipe is replaced by classic (AdamW).
    recipe = "classic" if options.recipe == "modern" else options.recipe
    changes = {name: value for name, value in settings.items() if name not in ("batch_size", "micro_batch_size")}
    choice = choose_settings(TrainRequest(options.preset, recipe, changes={**changes, "steps": 1}))
    if not isinstance(choice.model, GPTConfig):
        message = "a cluster plan needs a gpt preset; {preset} is a {family}"
        raise UsageError(message, preset=options.preset, family=choice.model.family)
    model = None if options.preset is None else choice.model
    sizes = settings.get("batch_size"), settings.get("context_length")
    return describe_cluster(model, choice.settings, machines, read_tokens(cluster.tokens), *sizes)
