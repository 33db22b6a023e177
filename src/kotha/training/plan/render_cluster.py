"""A plan for many GPUs as it is told: what they give, what they need, and everything that was assumed."""

from collections.abc import Sequence
from typing import Any

from kotha.errors import UsageError
from kotha.i18n.wording import count, counted, duration, size
from kotha.model.config import GPTConfig
from kotha.training.config import TrainConfig
from kotha.training.plan.cluster import (
    FAILURES,
    LADDER,
    LINK_SHARE,
    NOTICED_SECONDS,
    TOKENS,
    Cluster,
    ClusterPlan,
    ladder_model,
    plan_cluster,
)
from kotha.training.plan.gpus import COMPILE_SECONDS, SECONDS_PER_LAYER, SHARE_OF_PEAK
from kotha.training.plan.render import Table

_UNITS = {"K": 1e3, "M": 1e6, "B": 1e9, "T": 1e12}
_MOST_TOKENS = 1e18
_LLAMA = "Llama 3 (arXiv 2407.21783)"


def read_tokens(words: Sequence[str]) -> tuple[float, ...]:
    """Numbers of tokens, as people write them; none for the three that are usual.

    >>> read_tokens(["10B", "1.5T", "250_000_000"])
    (10000000000.0, 1500000000000.0, 250000000.0)
    """
    found = []
    for word in words:
        unit = _UNITS.get(word[-1:].upper())
        try:
            value = float(word[:-1] if unit else word) * (unit or 1.0)
        except ValueError as error:
            raise UsageError(f"tokens={word!r} is no number of tokens; write 10B, 1.5T or 250000000") from error
        if not 1 <= value <= _MOST_TOKENS:
            raise UsageError(f"tokens={word!r} must be from 1 to a million trillion")
        found.append(value)
    return tuple(found) or TOKENS


def tell_cluster(
    model: GPTConfig | None,
    training: TrainConfig,
    cluster: Cluster,
    tokens: tuple[float, ...],
    batch_size: int | None = None,
    context_length: int | None = None,
) -> tuple[dict[str, Any], list[Table]]:
    """Plan a model, or without one a ladder of them: ready for JSON, and the tables that tell it."""
    models = [model] if model is not None else [ladder_model(*sizes) for sizes in LADDER]
    if model is None and context_length is not None:
        models = [each.replace(context_length=context_length) for each in models]
    plans = [plan_cluster(each, training, cluster, batch_size) for each in models]
    names = [f"{each.n_layers} x {each.d_model}" for each in models]
    assumed = assumptions(cluster, models[0], training)
    found = {
        "gpu": cluster.gpu.title,
        "gpus": cluster.gpus,
        "nodes": cluster.nodes,
        "models": [
            {"config": each.to_dict(), **plan.to_dict(tokens, cluster.gpus)}
            for each, plan in zip(models, plans, strict=True)
        ],
        "assumed": [{"what": what, "value": value, "why": why} for what, value, why in assumed],
    }
    where = f"{cluster.gpus} x {cluster.gpu.title} in {counted(cluster.nodes, 'machine')}"
    given = ["layers x width", "parameters", "how", "tokens a step", "tokens a second", "of the peak"]
    needed = ["layers x width", "memory a GPU", "network a GPU", "a checkpoint", "written in", "every", "lost"]
    return found, [
        (
            f"{where}: what they give",
            [*given, *(f"for {_many(each)} tokens" for each in tokens)],
            [_given(name, plan, tokens) for name, plan in zip(names, plans, strict=True)],
        ),
        (f"{where}: what they need", needed, [_needed(name, plan) for name, plan in zip(names, plans, strict=True)]),
        (
            "on the disk: tokens, and three checkpoints",
            ["layers x width", *(f"for {_many(each)} tokens" for each in tokens)],
            [
                [name, *(size(plan.disk_bytes(each)) for each in tokens)]
                for name, plan in zip(names, plans, strict=True)
            ],
        ),
        ("assumed", ["", "value", "why"], [list(each) for each in assumed]),
    ]


def _many(tokens: float) -> str:
    """A number of tokens, in billions where it has them: of a trillion people write 1000 billion too."""
    return f"{tokens / 1e9:g} billion" if tokens >= 1e9 else count(tokens)


def in_days(days: float) -> str:
    """Days, as short as they can be said.

    >>> in_days(0.0351), in_days(15.78), in_days(157.8)
    ('0.035', '16', '158')
    """
    return f"{days:.2g}" if days < 99.5 else f"{days:,.0f}"


def _given(name: str, plan: ClusterPlan, tokens: tuple[float, ...]) -> list[str]:
    how = "FSDP" if plan.sharded else "DDP"
    speed = [f"{plan.tokens_per_step:,}", f"{plan.tokens_per_second:,.0f}", f"{plan.peak_share:.0%}"]
    return [name, count(plan.parameters), how, *speed, *(duration(86_400 * plan.days(each)) for each in tokens)]


def _needed(name: str, plan: ClusterPlan) -> list[str]:
    network = f"{plan.network_needed / 1e9:,.0f} Gb/s" if plan.network_needed else "none"
    saving = [size(plan.checkpoint_bytes), duration(plan.checkpoint_seconds), duration(plan.checkpoint_every_seconds)]
    return [name, size(plan.memory_bytes), network, *saving, f"{plan.lost_share:.2%}"]


def assumptions(cluster: Cluster, model: GPTConfig, training: TrainConfig) -> list[tuple[str, str, str]]:
    """Everything that the figures stand on: what, its value, and where it comes from."""
    context = training.context_length or model.context_length
    per_day = FAILURES * cluster.gpus
    return [
        (
            "speed of a GPU",
            f"{SHARE_OF_PEAK:.0%} of {cluster.gpu.half / 1e12:,.0f} TFLOP/s",
            f"measured on one H200 with up to 124 million parameters, and {1e3 * SECONDS_PER_LAYER:g} ms a layer; "
            "larger models are taken to reach the same",
        ),
        (
            "within a machine",
            f"{cluster.link / 1e9:,.0f} GB/s each way",
            "as the maker rates NVLink, or PCIe without it",
        ),
        ("between machines", f"{8 * cluster.network / 1e9:,.0f} Gb/s a GPU", "each GPU has a network card of its own"),
        ("messages", f"{LINK_SHARE:.0%} of these", "in float32, hidden behind the computing but for one layer's"),
        ("context", f"{context:,} tokens", "longer ones cost more in attention"),
        ("optimizer", training.optimizer, "two numbers remembered for each weight, in float32"),
        ("storage", f"{cluster.storage / 1e9:,g} GB/s a machine", "training waits while a checkpoint is written"),
        (
            "failures",
            f"{per_day:.3g} a day",
            f"419 in 54 days on 16,384 GPUs, the count of {_LLAMA}; others may have other luck",
        ),
        (
            "after a failure",
            f"{duration(NOTICED_SECONDS + COMPILE_SECONDS)}, and reading",
            "until it is noticed and compiled again; the time between two checkpoints is Young's, the square root of "
            "twice the writing times the time between failures",
        ),
        (
            "left out",
            "stragglers, tensor and pipeline parallelism, float8",
            "beside published runs the speeds are 21 % too low to 9 % too high on H100s, 26 % too low on A100s "
            "(docs/scaling.md)",
        ),
    ]
