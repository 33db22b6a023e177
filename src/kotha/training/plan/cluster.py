"""Predict the requirements and the duration of training on many GPUs. The predictions have not been tested.

The time of a step is the larger of its computation time and its communication time, plus the communication time of one
layer, which cannot overlap with computation. The computation time is that of one GPU for its share of the batch, at the
share of peak speed measured on one GPU (``step_time.py``). If the model fits on a GPU, its gradients are summed (DDP,
ring all-reduce: each byte is sent twice); otherwise each GPU keeps a part (FSDP: weights are gathered for the forward
and the backward pass of each micro-batch, gradients reduce-scattered once). Within a node GPUs communicate by NVLink;
between nodes each GPU has its own network card.

The failure rate is the only one published at this scale: 419 unexpected interruptions in 54 days on 16,384 H100s (The
Llama 3 Herd of Models, 2024, section 3.3.4, https://arxiv.org/abs/2407.21783). The best checkpoint interval follows
from Young's formula (1974): sqrt(2 C M), where a checkpoint takes C seconds and failures are M seconds apart on
average.

The assumptions (``cluster.json``) are listed with the results. Stragglers, slow data storage, tensor and pipeline
parallelism, float8 and activation recomputation are not modelled.
"""

import json
import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, NamedTuple

from kotha.errors import ConfigError, UsageError
from kotha.i18n.message import Message, Option, Plural, Text
from kotha.i18n.numbers import Count, Duration, Size
from kotha.model.config import GPTConfig
from kotha.report.table import Table
from kotha.training.config import TrainConfig
from kotha.training.plan.design import shape
from kotha.training.plan.memory import MemoryConditions, largest_micro_batch, plan_memory
from kotha.training.plan.render import Reason, amount
from kotha.training.plan.step_time import (
    COMPILE_SECONDS,
    GPU,
    SECONDS_PER_LAYER,
    SHARE_OF_PEAK,
    count_work,
    moving_seconds,
)

PER_NODE = 8
NETWORK = 400e9 / 8  # bytes per second of one GPU's network card, each way
STORAGE = 2e9  # bytes per second that one node writes
# The share of a link's rated speed reached in practice.
LINK_SHARE = 0.8
# Unexpected interruptions per GPU and day.
FAILURES = 419 / (54 * 16_384)
# Time until a lost process is detected (the timeout in distributed.py).
NOTICED_SECONDS = 600.0
# Tokens per step by number of parameters, as in published runs: nanochat 0.5 million, OLMo 2 7B 4 million.
_BATCHES = ((0.0, 1 << 19), (1e9, 1 << 20), (3e9, 1 << 22))
# Layers and width of models with 124 million to 7 billion parameters, and their vocabulary and context.
LADDER = ((12, 768), (24, 1024), (24, 2048), (32, 2560), (32, 4096))
VOCABULARY, CONTEXT = 49_152, 2048
TOKENS = (10e9, 100e9, 1e12)
_UNITS = {"K": 1e3, "M": 1e6, "B": 1e9, "T": 1e12}
_MOST_GPUS, _MOST_TOKENS = 1 << 17, 1e18
_FLOAT32, _LARGEST_SHORT_ID, _DAY = 4, 65_536, 86_400
_KEPT = 3  # maximum number of checkpoints on disk: two and the one being written


@dataclass(frozen=True)
class Cluster:
    """Machines and the network between them."""

    gpu: GPU
    gpus: int
    nodes: int
    network: float = NETWORK  # bytes per second of one GPU's network card
    storage: float = STORAGE  # bytes per second that one node writes

    def __post_init__(self) -> None:
        if not 1 <= self.gpus <= _MOST_GPUS:
            raise UsageError("{gpus} must be from 1 to {most:,}", gpus=Option("gpus", self.gpus), most=_MOST_GPUS)
        if not 1 <= self.nodes <= self.gpus or self.gpus % self.nodes:
            raise UsageError(
                "{gpus} GPUs cannot be divided evenly with {nodes}; use a divisor of {gpus}",
                gpus=self.gpus,
                nodes=Option("nodes", self.nodes),
            )
        for name in ("network", "storage"):
            if not 0 < getattr(self, name) < math.inf:
                raise UsageError("{name} must be above 0", name=Option(name))

    def seconds(self, n_bytes: float) -> float:
        """Return the seconds needed to gather ``n_bytes``, sharded over all GPUs, on every GPU (all-gather)."""
        within = n_bytes * (self.gpus - 1) / self.gpus / self.gpu.link
        between = n_bytes * (self.nodes - 1) / self.nodes / (self.network * self.gpus / self.nodes)
        return max(within, between) / LINK_SHARE

    def how(self, context: int, sharded: bool) -> MemoryConditions:
        """Return the conditions of a training run on each GPU."""
        return MemoryConditions(context, "bfloat16", "cuda", compiled=True, ranks=self.gpus, sharded=sharded)


@dataclass(frozen=True)
class ClusterPlan:
    """The plan of a training run on a cluster."""

    parameters: int
    flops_per_token: float
    sharded: bool
    tokens_per_step: int
    micro_batch_size: int
    memory_bytes: int  # per GPU
    compute_seconds: float  # per step and GPU
    message_seconds: float  # communication per step, overlapped or not
    seconds_per_step: float
    tokens_per_second: float
    peak_share: float
    network_needed: float  # bits per second per card at which no GPU waits for communication
    checkpoint_bytes: int
    checkpoint_seconds: float
    failures_per_day: float
    checkpoint_every_seconds: float  # Young's interval
    lost_share: float  # share of the time spent writing checkpoints, repeating steps and restarting
    token_bytes: int  # bytes per token on disk

    def days(self, tokens: float) -> float:
        """Return the days needed for a number of tokens, including lost time."""
        return tokens / self.tokens_per_second / (1 - self.lost_share) / _DAY

    def run(self, tokens: float, gpus: int) -> dict[str, float]:
        """Return the resources for a number of tokens as JSON types; disk space is for tokens and checkpoints."""
        days = self.days(tokens)
        return {
            "tokens": tokens,
            "days": days,
            "gpu_hours": days * 24 * gpus,
            "disk_bytes": tokens * self.token_bytes + _KEPT * self.checkpoint_bytes,
            "failures": days * self.failures_per_day,
            "flops": tokens * self.flops_per_token,
        }


def ladder_model(layers: int, width: int) -> GPTConfig:
    """Return a model from the table: the modern layout with a larger vocabulary and context."""
    return shape(layers, width, VOCABULARY).replace(context_length=CONTEXT)


def plan_cluster(
    model: GPTConfig, training: TrainConfig, cluster: Cluster, batch_size: int | None = None
) -> ClusterPlan:
    """Plan a model on a cluster, sharded if necessary; ``batch_size`` is in sequences (default: from the table)."""
    context, gpus = training.context_length or model.context_length, cluster.gpus
    work = count_work(model, context)
    usual = max(tokens for least, tokens in _BATCHES if work.parameters >= least)
    sequences = batch_size or max(usual // context, gpus)
    if sequences < gpus or sequences % gpus:
        raise ConfigError(
            "a batch of {sequences} sequences cannot be divided evenly among {gpus} GPUs; use a multiple of {gpus}",
            sequences=sequences,
            gpus=gpus,
        )
    training = training.change(batch_size=sequences)
    sharded, micro, memory = _fit(model, training, cluster, context)
    step = predict_step(model, context, cluster, sequences // gpus, micro, sharded)
    tokens = sequences * context
    kept = plan_memory(model, training, 1, MemoryConditions(context, "bfloat16", "cuda", compiled=True))
    saved = kept.weights + kept.optimizer + kept.average
    per_card = 8 * step.sent * (cluster.nodes - 1) / cluster.nodes / (gpus / cluster.nodes)
    failure_interval, writing = _DAY / (FAILURES * gpus), saved / (cluster.storage * cluster.nodes)
    every = math.sqrt(2 * writing * failure_interval)
    repeated = every / 2 + NOTICED_SECONDS + COMPILE_SECONDS + writing  # repeated steps and restart per failure
    return ClusterPlan(
        parameters=work.parameters,
        flops_per_token=work.training_per_token,
        sharded=sharded,
        tokens_per_step=tokens,
        micro_batch_size=micro,
        memory_bytes=memory,
        compute_seconds=step.compute,
        message_seconds=step.messages,
        seconds_per_step=step.seconds,
        tokens_per_second=tokens / step.seconds,
        peak_share=tokens * work.training_per_token / step.seconds / (gpus * cluster.gpu.half),
        network_needed=per_card / LINK_SHARE / step.compute,
        checkpoint_bytes=saved,
        checkpoint_seconds=writing,
        failures_per_day=FAILURES * gpus,
        checkpoint_every_seconds=every,
        lost_share=min(0.99, writing / every + repeated / failure_interval),
        token_bytes=2 if model.vocab_size <= _LARGEST_SHORT_ID else 4,
    )


class ClusterStep(NamedTuple):
    """The times of one step in seconds."""

    compute: float  # per GPU
    messages: float  # communication of all GPUs, overlapped or not
    seconds: float
    sent: float  # bytes that every GPU receives in total


def predict_step(
    model: GPTConfig, context: int, cluster: Cluster, sequences: int, micro_batch_size: int, sharded: bool
) -> ClusterStep:
    """Predict a step in which each GPU processes ``sequences`` sequences, one micro-batch at a time."""
    work = count_work(model, context)
    passes = -(-sequences // micro_batch_size)
    compute = sequences * context * work.training_per_token / (SHARE_OF_PEAK * cluster.gpu.half)
    compute += passes * model.n_layers * SECONDS_PER_LAYER
    sent = _FLOAT32 * work.parameters * (2 * passes + 1 if sharded else 2)
    messages = cluster.seconds(sent) if cluster.gpus > 1 else 0.0
    moving = moving_seconds(cluster.gpu, work.parameters) / (cluster.gpus if sharded else 1)
    return ClusterStep(compute, messages, max(compute, messages) + messages / model.n_layers + moving, sent)


def _fit(model: GPTConfig, training: TrainConfig, cluster: Cluster, context: int) -> tuple[bool, int, int]:
    """Return whether the model must be sharded, the largest micro-batch that fits, and the memory per GPU."""
    room = cluster.gpu.memory
    for sharded in (False, True) if cluster.gpus > 1 else (False,):
        how = cluster.how(context, sharded)
        size = largest_micro_batch(model, training, room, how)
        memory = plan_memory(model, training, size, how).total
        if memory <= room:
            return sharded, size, memory
    raise ConfigError(
        "{gpus} x {gpu} do not have enough memory for {n_layers} layers of width {d_model}: one sequence of "
        "{context} tokens needs {needed:.0f} GB per GPU; use more GPUs or a shorter context",
        **{**vars(model), "gpus": cluster.gpus, "gpu": cluster.gpu.title, "context": context, "needed": memory / 1e9},
    )


# -- tables ------------------------------------------------------------------------------------------------------------


def read_tokens(words: Sequence[str]) -> tuple[float, ...]:
    """Parse token counts; if there are none, return three default counts.

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
                "{word} is not a number of tokens; write 10B, 1.5T or 250000000", word=Option("tokens", word)
            ) from error
        if not 1 <= value <= _MOST_TOKENS:
            raise UsageError("{word} must be from 1 to 1e18", word=Option("tokens", word))
        found.append(value)
    return tuple(found) or TOKENS


def describe_cluster(
    model: GPTConfig | None,
    training: TrainConfig,
    cluster: Cluster,
    tokens: tuple[float, ...],
    batch_size: int | None = None,
    context_length: int | None = None,
) -> tuple[dict[str, Any], list[Table]]:
    """Plan a model, or several sizes if none is given; return the plans as JSON types, and the tables."""
    models = [model] if model is not None else [ladder_model(*sizes) for sizes in LADDER]
    if model is None and context_length is not None:
        models = [each.replace(context_length=context_length) for each in models]
    plans = [plan_cluster(each, training, cluster, batch_size) for each in models]
    assumed = assumptions(cluster, models[0], training)
    found = {
        "gpu": cluster.gpu.title,
        "gpus": cluster.gpus,
        "nodes": cluster.nodes,
        "models": [
            {"config": each.to_dict(), **asdict(plan), "runs": [plan.run(n, cluster.gpus) for n in tokens]}
            for each, plan in zip(models, plans, strict=True)
        ],
        "assumed": [dict(zip(("what", "value", "why"), each, strict=True)) for each in assumed],
    }
    where: dict[str, Any] = {"n": cluster.gpus, "gpu": cluster.gpu.title}
    where["machines"] = Plural("{n} machine", "{n:,} machines", n=cluster.nodes)
    many: list[Text] = [Message("for {n} tokens", n=Count(each)) for each in tokens]
    tables: list[Table] = []
    for title, header, cells in (
        ("{n} x {gpu} in {machines}: performance", [*_GIVEN, *many], _given_cells),
        ("{n} x {gpu} in {machines}: requirements", _NEEDED, _needed_cells),
        ("disk space: tokens and three checkpoints", many, _disk_cells),
    ):
        rows = [
            [f"{each.n_layers} x {each.d_model}", *cells(plan, tokens)]
            for each, plan in zip(models, plans, strict=True)
        ]
        tables.append(Table(Message(title, **where), [Message("layers x width"), *header], rows))
    return found, [*tables, Table(Message("assumptions"), ["", Message("value"), Message("why")], assumed)]


_GIVEN: list[Text] = list(
    map(Message, ("parameters", "how", "tokens per step", "tokens per second", "share of the peak"))
)
_NEEDED: list[Text] = list(
    map(
        Message,
        ("memory per GPU", "network per GPU", "checkpoint size", "write time", "checkpoint interval", "lost time"),
    )
)


def _given_cells(plan: ClusterPlan, tokens: tuple[float, ...]) -> list[Text]:
    speed = [f"{plan.tokens_per_step:,}", f"{plan.tokens_per_second:,.0f}", f"{plan.peak_share:.0%}"]
    days = [amount(Duration(_DAY * plan.days(each))) for each in tokens]
    return [amount(Count(plan.parameters)), "FSDP" if plan.sharded else "DDP", *speed, *days]


def _needed_cells(plan: ClusterPlan, _: tuple[float, ...]) -> list[Text]:
    network = f"{plan.network_needed / 1e9:,.0f} Gb/s" if plan.network_needed else Message("not needed")
    memory, saved = (amount(Size(each)) for each in (plan.memory_bytes, plan.checkpoint_bytes))
    times = [amount(Duration(each)) for each in (plan.checkpoint_seconds, plan.checkpoint_every_seconds)]
    return [memory, network, saved, *times, f"{plan.lost_share:.2%}"]


def _disk_cells(plan: ClusterPlan, tokens: tuple[float, ...]) -> list[Text]:
    return [amount(Size(plan.run(each, 1)["disk_bytes"])) for each in tokens]


def assumptions(cluster: Cluster, model: GPTConfig, training: TrainConfig) -> list[Reason]:
    """Return the assumptions behind the results: name, value and source."""
    values: dict[str, Any] = {
        "share": SHARE_OF_PEAK,
        "peak": cluster.gpu.half / 1e12,
        "layer": 1e3 * SECONDS_PER_LAYER,
        "link": cluster.gpu.link / 1e9,
        "network": 8 * cluster.network / 1e9,
        "reached": LINK_SHARE,
        "context": training.context_length or model.context_length,
        "optimizer": training.optimizer,
        "storage": cluster.storage / 1e9,
        "failures": FAILURES * cluster.gpus,
        "time": Duration(NOTICED_SECONDS + COMPILE_SECONDS),
    }
    table = json.loads(Path(__file__).with_name("cluster.json").read_text(encoding="utf-8"))
    return [(Message(what), Message(value, **values), Message(why, **values)) for what, value, why in table]
