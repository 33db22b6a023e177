"""A plan for many GPUs as it is told: what they give, what they need, and everything that was assumed."""

from collections.abc import Sequence
from typing import Any

from kotha.errors import UsageError
from kotha.i18n.message import Message, Plural, Text
from kotha.i18n.numbers import Count, Duration, Size
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
from kotha.training.plan.render import Reason, Table, amount

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
            raise UsageError(
                "tokens={word!r} is no number of tokens; write 10B, 1.5T or 250000000", word=word
            ) from error
        if not 1 <= value <= _MOST_TOKENS:
            raise UsageError("tokens={word!r} must be from 1 to a million trillion", word=word)
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
    return found, _tables(cluster, list(zip(names, plans, strict=True)), tokens, assumed)


def _tables(
    cluster: Cluster, plans: list[tuple[str, ClusterPlan]], tokens: tuple[float, ...], assumed: list[Reason]
) -> list[Table]:
    machines = Plural("{n} machine", "{n:,} machines", n=cluster.nodes)
    where: dict[str, Any] = {"n": cluster.gpus, "gpu": cluster.gpu.title, "machines": machines}
    sizes, many = Message("layers x width"), [Message("for {n} tokens", n=Count(each)) for each in tokens]
    given = [sizes, Message("parameters"), Message("how"), Message("tokens a step"), Message("tokens a second")]
    needed = [sizes, Message("memory a GPU"), Message("network a GPU"), Message("a checkpoint")]
    return [
        (
            Message("{n} x {gpu} in {machines}: what they give", **where),
            [*given, Message("of the peak"), *many],
            [_given(name, plan, tokens) for name, plan in plans],
        ),
        (
            Message("{n} x {gpu} in {machines}: what they need", **where),
            [*needed, Message("written in"), Message("every"), Message("lost")],
            [_needed(name, plan) for name, plan in plans],
        ),
        (
            Message("on the disk: tokens, and three checkpoints"),
            [sizes, *many],
            [[name, *(amount(Size(plan.disk_bytes(each))) for each in tokens)] for name, plan in plans],
        ),
        (Message("assumed"), ["", Message("value"), Message("why")], [list(each) for each in assumed]),
    ]


def in_days(days: float) -> str:
    """Days, as short as they can be said.

    >>> in_days(0.0351), in_days(15.78), in_days(157.8)
    ('0.035', '16', '158')
    """
    return f"{days:.2g}" if days < 99.5 else f"{days:,.0f}"


def _given(name: str, plan: ClusterPlan, tokens: tuple[float, ...]) -> list[Text]:
    how = "FSDP" if plan.sharded else "DDP"
    speed = [f"{plan.tokens_per_step:,}", f"{plan.tokens_per_second:,.0f}", f"{plan.peak_share:.0%}"]
    days = [amount(Duration(86_400 * plan.days(each))) for each in tokens]
    return [name, amount(Count(plan.parameters)), how, *speed, *days]


def _needed(name: str, plan: ClusterPlan) -> list[Text]:
    network = f"{plan.network_needed / 1e9:,.0f} Gb/s" if plan.network_needed else Message("not needed")
    times = [amount(Duration(each)) for each in (plan.checkpoint_seconds, plan.checkpoint_every_seconds)]
    sizes = [amount(Size(each)) for each in (plan.memory_bytes, plan.checkpoint_bytes)]
    return [name, sizes[0], network, sizes[1], *times, f"{plan.lost_share:.2%}"]


def assumptions(cluster: Cluster, model: GPTConfig, training: TrainConfig) -> list[Reason]:
    """Everything that the figures stand on: what, its value, and where it comes from."""
    context = training.context_length or model.context_length
    return [
        (
            Message("speed of a GPU"),
            Message("{share:.0%} of {peak:,.0f} TFLOP/s", share=SHARE_OF_PEAK, peak=cluster.gpu.half / 1e12),
            Message(
                "measured on one H200 with up to 124 million parameters, and {n:g} ms a layer; larger models are taken "
                "to reach the same",
                n=1e3 * SECONDS_PER_LAYER,
            ),
        ),
        (
            Message("within a machine"),
            Message("{n:,.0f} GB/s each way", n=cluster.gpu.link / 1e9),
            Message("as the maker rates NVLink, or PCIe without it"),
        ),
        (
            Message("between machines"),
            Message("{n:,.0f} Gb/s a GPU", n=8 * cluster.network / 1e9),
            Message("each GPU has a network card of its own"),
        ),
        (
            Message("messages"),
            Message("{n:.0%} of these", n=LINK_SHARE),
            Message("in float32, hidden behind the computing but for one layer's"),
        ),
        (Message("context"), Message("{n:,} tokens", n=context), Message("longer ones cost more in attention")),
        (
            Message("optimizer"),
            training.optimizer,
            Message("two numbers remembered for each weight, in float32"),
        ),
        (
            Message("storage"),
            Message("{n:,g} GB/s a machine", n=cluster.storage / 1e9),
            Message("training waits while a checkpoint is written"),
        ),
        (
            Message("failures"),
            Message("{n:.3g} a day", n=FAILURES * cluster.gpus),
            Message("419 in 54 days on 16,384 GPUs, the count of {paper}; others may have other luck", paper=_LLAMA),
        ),
        (
            Message("after a failure"),
            Message("{time}, and reading", time=Duration(NOTICED_SECONDS + COMPILE_SECONDS)),
            Message(
                "until it is noticed and compiled again; the time between two checkpoints is Young's, the square root "
                "of twice the writing times the time between failures"
            ),
        ),
        (
            Message("left out"),
            Message("stragglers, tensor and pipeline parallelism, float8"),
            Message(
                "beside published runs the speeds are {low} % too low to {high} % too high on H100s, {old} % too low "
                "on A100s ({document})",
                low=21,
                high=9,
                old=26,
                document="docs/scaling.md",
            ),
        ),
    ]
