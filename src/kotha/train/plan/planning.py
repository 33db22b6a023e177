"""A training seen from before: what it will need of this machine or of a named GPU, and for how long."""

from typing import Any, cast

import torch

from kotha.errors import UsageError
from kotha.model.config import ModelConfig, Seq2SeqConfig
from kotha.train.config import TrainConfig
from kotha.train.device.hardware import peak_flops_per_second
from kotha.train.device.precision import Arithmetic, choose_arithmetic
from kotha.train.plan.activations import positions
from kotha.train.plan.flops import count_work
from kotha.train.plan.gpus import GPU, SOURCE, estimate_seconds_per_step
from kotha.train.plan.memory import (
    Device,
    largest_micro_batch,
    plan_memory,
    planned_compile,
    planned_context,
    planned_micro_batch,
)
from kotha.train.plan.step_time import predict_seconds_per_step


def plan_training(
    model: ModelConfig,
    training: TrainConfig,
    device: str | None = None,
    *,
    timed: bool = True,
    gpu: GPU | None = None,
    train_tokens: int | None = None,
) -> dict[str, Any]:
    """Memory by part, work by part and time of a training.

    On this machine the time is measured on a few small steps; for a named ``gpu`` it is estimated; on a GPU that is not
    here and has no name there is none. ``train_tokens`` tells how many epochs the steps are.
    """
    if training.dropout is not None:
        model = model.replace(dropout=training.dropout)
    if gpu is not None and device == "cpu":
        raise UsageError("--gpu and --device cpu: the one says a GPU, the other the processor; leave one out")
    context_length = planned_context(model, training)
    here = gpu is None and (device != "cuda" or torch.cuda.is_available())
    arithmetic = choose_arithmetic(training.precision, device) if here else _elsewhere(training, gpu)
    place = cast("Device", arithmetic.device.type)
    how: dict[str, Any] = {
        "precision": arithmetic.precision,
        "device": place,
        "compiled": planned_compile(training, place),
        "context_length": context_length,
    }
    size = _micro_batch(model, training, how, arithmetic if here else None, gpu)
    how["micro_batch_size"] = size
    work = count_work(model, context_length)
    tokens_per_step = training.batch_size * positions(model, context_length) * _texts(model)
    seconds = peak = source = None
    if gpu is not None:
        seconds = estimate_seconds_per_step(gpu, model, training, size, context_length, arithmetic.precision)
        peak, source = gpu.peak(arithmetic.precision), SOURCE
    elif here and timed:
        seconds = predict_seconds_per_step(model, training, size, context_length, arithmetic)
        peak, source = peak_flops_per_second(arithmetic.device, arithmetic.dtype), "a few small steps on this machine"
    return {
        **how,
        "gpu": None if gpu is None else gpu.title,
        "memory_bytes": plan_memory(model, training, **how).to_dict(),
        "memory_available_bytes": None if gpu is None else gpu.memory,
        "flops_per_token": work.training_per_token,
        "flops": work.to_dict(tokens_per_step),
        "tokens_per_step": tokens_per_step,
        "steps": training.steps,
        "tokens": tokens_per_step * training.steps,
        "epochs": None if not train_tokens else tokens_per_step * training.steps / train_tokens,
        "seconds_per_step": seconds,
        "seconds": None if seconds is None else seconds * training.steps,
        "time_source": source,
        "peak_flops_per_second": peak,
        "peak_share": None if not seconds or not peak else work.training_per_token * tokens_per_step / seconds / peak,
    }


def _elsewhere(training: TrainConfig, gpu: GPU | None) -> Arithmetic:
    best = "bfloat16" if gpu is None else gpu.precision
    precision = best if training.precision == "auto" else training.precision
    return Arithmetic(torch.device("cuda"), precision, "as most GPUs have it" if gpu is None else f"as {gpu.title} has")


def _micro_batch(
    model: ModelConfig, training: TrainConfig, how: dict[str, Any], here: Arithmetic | None, gpu: GPU | None
) -> int:
    """Sequences at once: as asked for, as this machine will choose, or as a named GPU holds."""
    if here is not None:
        return planned_micro_batch(model, training, here)[0]
    if training.micro_batch_size is not None or gpu is None:
        return training.micro_batch_size or training.batch_size
    return largest_micro_batch(model, training, available_bytes=gpu.memory, **how)


def _texts(model: ModelConfig) -> int:
    return 2 if isinstance(model, Seq2SeqConfig) else 1
