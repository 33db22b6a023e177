"""Many GPUs on paper: what a cluster would need for a training, and how long it would take. None was tried here.

A step is what one GPU computes for its share of the batch, by the share of the peak that was measured here on one GPU
(``gpus.py``), or what its messages take, whichever is longer, and a layer's messages that nothing hides. While the
model fits on a GPU its gradients are summed (DDP, ring all-reduce: each byte travels twice); where it does not, every
GPU keeps a part (FSDP: weights are gathered for the forward and again for the backward pass of each micro-batch,
gradients reduce-scattered once). Within a node messages go by NVLink; between nodes each GPU has its own network card.

Failures come at the rate of the one published count of that size: 419 unexpected interruptions in 54 days on 16,384
H100s (The Llama 3 Herd of Models, 2024, section 3.3.4, https://arxiv.org/abs/2407.21783). The best time between two
checkpoints is Young's (1974), sqrt(2 C M) for a checkpoint of C seconds and M seconds between failures.

What it leaves out: stragglers, slow disks for data, tensor and pipeline parallelism, float8, recomputed activations.
"""

import math
from dataclasses import asdict, dataclass
from typing import Any

from kotha.errors import ConfigError, UsageError
from kotha.model.config import GPTConfig
from kotha.training.config import TrainConfig
from kotha.training.plan.design import shape
from kotha.training.plan.flops import count_work
from kotha.training.plan.gpus import COMPILE_SECONDS, GPU, SECONDS_PER_LAYER, SHARE_OF_PEAK, moving_seconds
from kotha.training.plan.memory import Conditions, plan_memory

PER_NODE = 8
NETWORK = 400e9 / 8  # bytes a second of one GPU's card, each way
STORAGE = 2e9  # bytes a second that one node writes
# What messages reach of what a link is rated for.
LINK_SHARE = 0.8
# Unexpected interruptions for each GPU and day.
FAILURES = 419 / (54 * 16_384)
# Until a lost process is noticed (distributed.py waits so long), before it starts again, compiles and reads.
NOTICED_SECONDS = 600.0
# Tokens of a step by parameters, as published runs have them: nanochat 0.5 million, OLMo 2 7B 4 million.
_BATCHES = ((0.0, 1 << 19), (1e9, 1 << 20), (3e9, 1 << 22))
# Layers and width from 124 million to 7 billion parameters, with a vocabulary and a context for them.
LADDER = ((12, 768), (24, 1024), (24, 2048), (32, 2560), (32, 4096))
VOCABULARY, CONTEXT = 49_152, 2048
TOKENS = (10e9, 100e9, 1e12)
_MOST_GPUS = 1 << 17
_FLOAT32 = 4
_LARGEST_SHORT_ID = 65_536
# Bytes a second of NVLink, each way; a GPU without it has PCIe.
_NVLINK = {"NVIDIA B200": 900e9, "NVIDIA H200": 450e9, "NVIDIA H100 SXM": 450e9, "NVIDIA V100 16 GB": 150e9}
_NVLINK |= {"NVIDIA A100 80 GB": 300e9, "NVIDIA A100 40 GB": 300e9}
_PCIE = 25e9
_KEPT = 3  # checkpoints on the disk at once: two, and the one that is written


@dataclass(frozen=True)
class Cluster:
    """Machines, and what lies between them."""

    gpu: GPU
    gpus: int
    nodes: int
    network: float = NETWORK  # bytes a second of one GPU's card
    storage: float = STORAGE  # bytes a second that one node writes

    def __post_init__(self) -> None:
        if not 1 <= self.gpus <= _MOST_GPUS:
            raise UsageError("gpus={gpus} must be from 1 to {most:,}", gpus=self.gpus, most=_MOST_GPUS)
        if not 1 <= self.nodes <= self.gpus or self.gpus % self.nodes:
            raise UsageError(
                "nodes={nodes} cannot share {gpus} GPUs evenly; give a divisor of {gpus}",
                nodes=self.nodes,
                gpus=self.gpus,
            )
        for name in ("network", "storage"):
            if not 0 < getattr(self, name) < math.inf:
                raise UsageError("{name} must be above 0", name=name)

    @property
    def link(self) -> float:
        """Bytes a second between two GPUs of a node, each way."""
        return _NVLINK.get(self.gpu.title, _PCIE)

    def seconds(self, n_bytes: float) -> float:
        """How long it takes until every GPU has so many bytes that all of them hold parts of (all-gather)."""
        within = n_bytes * (self.gpus - 1) / self.gpus / self.link
        between = n_bytes * (self.nodes - 1) / self.nodes / (self.network * self.gpus / self.nodes)
        return max(within, between) / LINK_SHARE


@dataclass(frozen=True)
class ClusterPlan:
    """A training on a cluster, seen from before."""

    parameters: int
    flops_per_token: float
    sharded: bool
    tokens_per_step: int
    micro_batch_size: int
    memory_bytes: int  # of one GPU
    compute_seconds: float  # of a step, of one GPU
    message_seconds: float  # of a step, hidden or not
    seconds_per_step: float
    tokens_per_second: float
    peak_share: float
    network_needed: float  # bits a second of each card, so that nothing waits for it
    checkpoint_bytes: int
    checkpoint_seconds: float
    failures_per_day: float
    checkpoint_every_seconds: float  # Young's
    lost_share: float  # of the time: writing, doing again, starting again
    token_bytes: int  # of one token on the disk

    def days(self, tokens: float) -> float:
        """How long so many tokens take, with what is lost."""
        return tokens / self.tokens_per_second / (1 - self.lost_share) / 86_400

    def disk_bytes(self, tokens: float) -> float:
        """Tokens and checkpoints on the disk."""
        return tokens * self.token_bytes + _KEPT * self.checkpoint_bytes

    def to_dict(self, tokens: tuple[float, ...], gpus: int) -> dict[str, Any]:
        """Ready for JSON."""
        runs = [
            {
                "tokens": each,
                "days": self.days(each),
                "gpu_hours": self.days(each) * 24 * gpus,
                "disk_bytes": self.disk_bytes(each),
                "failures": self.days(each) * self.failures_per_day,
                "flops": each * self.flops_per_token,
            }
            for each in tokens
        ]
        return {**asdict(self), "runs": runs}


def ladder_model(layers: int, width: int) -> GPTConfig:
    """A rung of the table: the modern layout with a larger vocabulary and context."""
    return shape(layers, width, VOCABULARY).replace(context_length=CONTEXT)


def plan_cluster(
    model: GPTConfig, training: TrainConfig, cluster: Cluster, batch_size: int | None = None, shard: bool | None = None
) -> ClusterPlan:
    """What a cluster makes of a model; ``batch_size`` in sequences, by the table above where it is left out.

    It is sharded where it must be, unless ``shard`` says so or not.
    """
    context = training.context_length or model.context_length
    work = count_work(model, context)
    sequences = batch_size or max(usual_batch(work.parameters) // context, cluster.gpus)
    if sequences < cluster.gpus or sequences % cluster.gpus:
        raise ConfigError(
            "a batch of {sequences} sequences cannot be shared by {gpus} GPUs; give a multiple of {gpus}",
            sequences=sequences,
            gpus=cluster.gpus,
        )
    training = training.change(batch_size=sequences)
    sharded, micro, memory = _fit(model, training, cluster, context, shard)
    step = predict_step(model, context, cluster, sequences // cluster.gpus, micro, sharded)
    tokens = sequences * context
    kept = plan_memory(model, training, micro_batch_size=1, **_how(context, 1, False))
    saved = kept.weights + kept.optimizer + kept.average
    per_card = 8 * step.sent * (cluster.nodes - 1) / cluster.nodes / (cluster.gpus / cluster.nodes)
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
        peak_share=tokens * work.training_per_token / step.seconds / (cluster.gpus * cluster.gpu.half),
        network_needed=per_card / LINK_SHARE / step.compute,
        token_bytes=2 if model.vocab_size <= _LARGEST_SHORT_ID else 4,
        **_failing(cluster, saved),
    )


@dataclass(frozen=True)
class ClusterStep:
    """One update, in seconds."""

    compute: float  # of one GPU
    messages: float  # of all of them, hidden behind the computing or not
    seconds: float
    sent: float  # bytes that every GPU is to have, all messages together


def predict_step(
    model: GPTConfig, context: int, cluster: Cluster, sequences: int, micro_batch_size: int, sharded: bool
) -> ClusterStep:
    """One update in which each GPU reads so many sequences, a micro-batch at a time."""
    work = count_work(model, context)
    passes = -(-sequences // micro_batch_size)
    compute = sequences * context * work.training_per_token / (SHARE_OF_PEAK * cluster.gpu.half)
    compute += passes * model.n_layers * SECONDS_PER_LAYER
    weights = _FLOAT32 * work.parameters
    sent = (2 * passes + 1) * weights if sharded else 2 * weights
    messages = cluster.seconds(sent) if cluster.gpus > 1 else 0.0
    moving = moving_seconds(cluster.gpu, work.parameters) / (cluster.gpus if sharded else 1)
    return ClusterStep(compute, messages, max(compute, messages) + messages / model.n_layers + moving, sent)


def usual_batch(parameters: float) -> int:
    """Tokens of a step.

    >>> usual_batch(124e6), usual_batch(7e9)
    (524288, 4194304)
    """
    return max(tokens for least, tokens in _BATCHES if parameters >= least)


def _failing(cluster: Cluster, saved: int) -> dict[str, Any]:
    """How often something fails, how often to save, and what both cost."""
    per_day = FAILURES * cluster.gpus
    apart = 86_400 / per_day
    writing = saved / (cluster.storage * cluster.nodes)
    every = math.sqrt(2 * writing * apart)
    starting = NOTICED_SECONDS + COMPILE_SECONDS + writing
    return {
        "checkpoint_bytes": saved,
        "checkpoint_seconds": writing,
        "failures_per_day": per_day,
        "checkpoint_every_seconds": every,
        "lost_share": min(0.99, writing / every + (every / 2 + starting) / apart),
    }


def _fit(
    model: GPTConfig, training: TrainConfig, cluster: Cluster, context: int, shard: bool | None
) -> tuple[bool, int, int]:
    """Whether it is sharded, the largest micro-batch that fits, and the memory that it takes on one GPU."""
    each = training.batch_size // cluster.gpus
    for sharded in (False, True) if shard is None else (shard,):
        how = _how(context, cluster.gpus, sharded)
        if sharded and cluster.gpus == 1:
            break
        micro = each
        while micro > 1 and plan_memory(model, training, micro_batch_size=micro, **how).total > cluster.gpu.memory:
            micro = -(-micro // 2)
        memory = plan_memory(model, training, micro_batch_size=micro, **how).total
        if memory <= cluster.gpu.memory:
            return sharded, micro, memory
    raise ConfigError(
        "{gpus} x {gpu} are too small for {n_layers} layers of {d_model}: one sequence of {context} "
        "tokens needs {needed:.0f} GB on each; take more GPUs or a shorter context",
        gpus=cluster.gpus,
        gpu=cluster.gpu.title,
        n_layers=model.n_layers,
        d_model=model.d_model,
        context=context,
        needed=memory / 1e9,
    )


def _how(context: int, ranks: int, sharded: bool) -> Conditions:
    return Conditions(
        context_length=context, precision="bfloat16", device="cuda", compiled=True, ranks=ranks, sharded=sharded
    )
