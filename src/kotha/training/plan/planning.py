"""A training seen from before: what it will need of this machine or of a named GPU, and for how long.

Backwards, a ``Budget`` of memory and minutes there, and the size of the text to learn from. A data folder knows its
tokens; a corpus is read once, and how many tokens it would be is an estimate from the news set.
"""

import math
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, cast

import torch

from kotha.errors import DataError, UsageError
from kotha.i18n.message import Message
from kotha.model.config import ModelConfig, Seq2SeqConfig
from kotha.storage.status import is_file
from kotha.text.corpus.documents import read_documents
from kotha.text.shards import DATASET_FILE, Dataset
from kotha.training.config import Precision, TrainConfig
from kotha.training.device import Arithmetic, available_memory, choose_arithmetic, peak_flops_per_second, share_of_peak
from kotha.training.plan.activations import positions
from kotha.training.plan.flops import Work, count_work
from kotha.training.plan.gpus import COMPILE_SECONDS, GPU, SHARE_OF_PEAK, SOURCE, estimate_seconds_per_step
from kotha.training.plan.memory import (
    Conditions,
    Device,
    MemoryPlan,
    Number,
    how_planned,
    largest_micro_batch,
    plan_memory,
)
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
    arithmetic = choose_arithmetic(training.precision, device) if here else _elsewhere(training.precision, gpu)
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


def _elsewhere(precision: Precision, gpu: GPU | None) -> Arithmetic:
    best = "bfloat16" if gpu is None else gpu.precision
    chosen = best if precision == "auto" else precision
    return Arithmetic(torch.device("cuda"), chosen, Message("as the GPU has it"))


# -- a budget, and the text ------------------------------------------------------------------------------------------

Pace = Callable[[ModelConfig, TrainConfig, int, int], float]  # seconds of a step: model, settings, micro-batch, context

# Of the time, what goes into evaluations, samples and saving.
ASIDE = 0.1
# What small models reach of a processor's large products, and how long a run takes to start there.
_USUAL_SHARE, _START_SECONDS = 0.3, 10.0


@dataclass(frozen=True)
class Budget:
    """A machine, and what may be used of it."""

    device: Device
    precision: Number
    memory_bytes: int
    minutes: float
    start_seconds: float  # before the first step: imports, a short timing, compiling
    reachable: float  # operations a second that no training there exceeds
    usual: float  # operations a second that one may expect, to choose sizes before anything is timed
    pace: Pace

    @property
    def compiled(self) -> bool:
        """Will the model be compiled there?"""
        return self.device == "cuda"

    def how(self, context_length: int) -> Conditions:
        """How a training runs there."""
        return Conditions(
            context_length=context_length, precision=self.precision, device=self.device, compiled=self.compiled
        )

    def micro_batch(self, model: ModelConfig, settings: TrainConfig, context_length: int) -> int:
        """Sequences at once that the memory holds."""
        return largest_micro_batch(model, settings, available_bytes=self.memory_bytes, **self.how(context_length))

    @property
    def seconds(self) -> float:
        """What is left for the steps."""
        return max(0.0, 60 * self.minutes * (1 - ASIDE) - self.start_seconds)


def budget_for(
    minutes: float,
    memory_bytes: int | None = None,
    device: str | None = None,
    precision: Precision = "auto",
    gpu: GPU | None = None,
) -> Budget:
    """This machine, or a GPU by name; without a budget of memory, what is free there."""
    if gpu is None:
        arithmetic = choose_arithmetic(precision, device)
        memory, share = available_memory(arithmetic.device), _USUAL_SHARE
        peak = peak_flops_per_second(arithmetic.device, arithmetic.dtype)
    else:
        arithmetic, memory, share = _elsewhere(precision, gpu), gpu.memory, SHARE_OF_PEAK
        peak = gpu.peak(arithmetic.precision)
        if memory_bytes is not None and memory_bytes > memory:
            raise UsageError(
                "{given:g} GB are more than {gpu} has ({there:g}); give less or none",
                given=memory_bytes / 1e9,
                gpu=gpu.title,
                there=memory / 1e9,
            )

    def pace(model: ModelConfig, settings: TrainConfig, size: int, context: int) -> float:
        if gpu is None:
            return predict_seconds_per_step(model, settings, size, context, arithmetic)
        return estimate_seconds_per_step(gpu, model, settings, size, context, arithmetic.precision)

    kind = cast("Device", arithmetic.device.type)
    start = COMPILE_SECONDS if kind == "cuda" else _START_SECONDS
    number = cast("Number", arithmetic.precision)
    return Budget(kind, number, memory_bytes or memory, minutes, start, peak, share * peak, pace)


# -- the text --------------------------------------------------------------------------------------------------------

# Of a corpus, what `kotha prepare` leaves for training.
_TRAIN_SHARE = 0.95
# Characters of a token with so many pieces, and how many more with each doubling (docs/experiments.md).
_CHARACTERS_PER_TOKEN, _PER_DOUBLING, _AT = 4.29, 0.476, 8192


@dataclass(frozen=True)
class TextSize:
    """A text to learn from."""

    path: str
    bytes: int  # of the training part
    characters: int
    documents: int
    tokens: int | None  # of the training part, where it is already cut into tokens
    vocab_size: int | None  # of its tokenizer, where it has one
    validation_tokens: int | None = None

    @property
    def prepared(self) -> bool:
        """Is it a data folder?"""
        return self.tokens is not None

    def tokens_with(self, vocab_size: int) -> int:
        """Tokens of the training part: counted, or estimated for a vocabulary."""
        if self.tokens is not None:
            return self.tokens
        per_token = _CHARACTERS_PER_TOKEN + _PER_DOUBLING * math.log2(vocab_size / _AT)
        return int(self.characters / max(1.0, per_token))


def measure_text(path: str) -> TextSize:
    """Measure a data folder or any corpus that can be read."""
    if is_file(Path(path) / DATASET_FILE):
        data = Dataset(path, verify=False)
        train, held_out = data["train"].info, data.splits.get("validation")
        validation = None if held_out is None else held_out.info.tokens
        size = data.tokenizer.vocab_size
        return TextSize(path, train.bytes, train.characters, train.documents, train.tokens, size, validation)
    n_bytes = n_characters = n_documents = 0
    for document in read_documents([path]):
        n_bytes += len(document.text.encode())
        n_characters += len(document.text)
        n_documents += 1
    if not n_documents:
        raise DataError("{path} has no text in it; name a data folder, a file or a folder of texts", path=path)
    kept = [int(_TRAIN_SHARE * each) for each in (n_bytes, n_characters, n_documents)]
    return TextSize(path, kept[0], kept[1], kept[2], tokens=None, vocab_size=None)
