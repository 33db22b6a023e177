"""A training seen from before: what it will need of this machine or of a named GPU, and for how long."""

from dataclasses import asdict, dataclass
from typing import Any

import torch

from kotha.errors import UsageError
from kotha.i18n.message import Message
from kotha.model.config import ModelConfig, Seq2SeqConfig
from kotha.training.config import TrainConfig
from kotha.training.device import Arithmetic, available_memory, choose_arithmetic, peak_flops_per_second, share_of_peak
from kotha.training.plan.activations import positions
from kotha.training.plan.flops import Work, count_work
from kotha.training.plan.gpus import GPU, SOURCE, estimate_seconds_per_step
from kotha.training.plan.memory import MemoryPlan, how_planned, largest_micro_batch, plan_memory
from kotha.training.plan.step_time import predict_seconds_per_step


@dataclass(frozen=True)
class TrainingPlan:
    """What a training needs."""

    precision: str
    device: str
    compiled: bool
    context_length: int
    micro_batch_size: int
    gpu: str | None  # A GPU that was named
    memory: MemoryPlan
    memory_available_bytes: int | None  # of a GPU that was named
    work: Work
    tokens_per_step: int
    steps: int
    train_tokens: int | None  # of the text, where it is known
    seconds_per_step: float | None
    time_source: Message | None  # where the seconds come from
    peak_flops_per_second: float | None

    @property
    def tokens(self) -> int:
        """Tokens that all steps read."""
        return self.tokens_per_step * self.steps

    @property
    def epochs(self) -> float | None:
        """Passes over the text."""
        return self.tokens / self.train_tokens if self.train_tokens else None

    @property
    def seconds(self) -> float | None:
        """All steps."""
        return None if self.seconds_per_step is None else self.seconds_per_step * self.steps

    @property
    def peak_share(self) -> float | None:
        """The share of the machine's fastest products (MFU); None where they were timed while it was busy."""
        if not self.seconds_per_step or not self.peak_flops_per_second:
            return None
        per_second = self.work.training_per_token * self.tokens_per_step / self.seconds_per_step
        return share_of_peak(per_second, self.peak_flops_per_second)

    def to_dict(self) -> dict[str, Any]:
        """Ready for JSON."""
        derived = ("tokens", "epochs", "seconds", "peak_share")
        plain = {name: value for name, value in vars(self).items() if name not in ("memory", "work", "train_tokens")}
        return {
            **plain,
            "memory_bytes": asdict(self.memory),
            "flops_per_token": self.work.training_per_token,
            "flops": self.work.to_dict(self.tokens_per_step),
            **{name: getattr(self, name) for name in derived},
        }


def plan_training(
    model: ModelConfig,
    training: TrainConfig,
    device: str | None = None,
    *,
    timed: bool = True,
    seconds_per_step: float | None = None,
    gpu: GPU | None = None,
    train_tokens: int | None = None,
) -> TrainingPlan:
    """Memory by part, work by part and time of a training.

    On this machine the time is measured on a few small steps, unless ``seconds_per_step`` tells it; for a named ``gpu``
    it is estimated; on a GPU that is not here and has no name there is none. ``train_tokens`` tells how many epochs
    the steps are.
    """
    if training.dropout is not None:
        model = model.replace(dropout=training.dropout)
    if gpu is not None and device == "cpu":
        raise UsageError(
            "gpu {gpu} and device cpu: the one says a GPU, the other the processor; leave one out", gpu=gpu.title
        )
    here = gpu is None and (device != "cuda" or torch.cuda.is_available())
    arithmetic = choose_arithmetic(training.precision, device) if here else _elsewhere(training, gpu)
    how = how_planned(model, training, arithmetic)
    available = available_memory(arithmetic.device) if here else None if gpu is None else gpu.memory
    size = training.micro_batch_size or training.batch_size
    if available is not None:
        size = largest_micro_batch(model, training, available_bytes=available, **how)
    context_length = how["context_length"]
    peak = source = None
    if gpu is not None:
        seconds_per_step = estimate_seconds_per_step(gpu, model, training, size, context_length, arithmetic.precision)
        peak, source = gpu.peak(arithmetic.precision), SOURCE
    elif here and timed:
        seconds_per_step = seconds_per_step or predict_seconds_per_step(
            model, training, size, context_length, arithmetic
        )
        peak, source = (
            peak_flops_per_second(arithmetic.device, arithmetic.dtype),
            Message("a few small steps on this machine"),
        )
    texts = 2 if isinstance(model, Seq2SeqConfig) else 1
    return TrainingPlan(
        precision=arithmetic.precision,
        device=how["device"],
        compiled=how["compiled"],
        context_length=context_length,
        micro_batch_size=size,
        gpu=None if gpu is None else gpu.title,
        memory=plan_memory(model, training, micro_batch_size=size, **how),
        memory_available_bytes=None if gpu is None else gpu.memory,
        work=count_work(model, context_length),
        tokens_per_step=training.batch_size * positions(model, context_length) * texts,
        steps=training.steps,
        train_tokens=train_tokens,
        seconds_per_step=seconds_per_step,
        time_source=source,
        peak_flops_per_second=peak,
    )


def _elsewhere(training: TrainConfig, gpu: GPU | None) -> Arithmetic:
    best = "bfloat16" if gpu is None else gpu.precision
    precision = best if training.precision == "auto" else training.precision
    reason = Message("as most GPUs have it") if gpu is None else Message("as {gpu} has", gpu=gpu.title)
    return Arithmetic(torch.device("cuda"), precision, reason)
