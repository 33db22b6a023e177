"""A training seen from before: what it will need of this machine, and for how long."""

from typing import Any, cast

import torch

from kotha.model.config import ModelConfig, Seq2SeqConfig
from kotha.train.config import TrainConfig
from kotha.train.machine.activations import positions
from kotha.train.machine.hardware import flops_per_token
from kotha.train.machine.memory import Device, plan_memory, planned_compile, planned_context, planned_micro_batch
from kotha.train.machine.precision import Arithmetic, choose_arithmetic
from kotha.train.machine.speed import predict_seconds_per_step


def plan_training(
    model: ModelConfig, training: TrainConfig, device: str | None = None, *, timed: bool = True
) -> dict[str, Any]:
    """Memory by part, work and time of a training on this machine, or on a GPU that is not here (then without time)."""
    if training.dropout is not None:
        model = model.replace(dropout=training.dropout)
    here = device != "cuda" or torch.cuda.is_available()
    context_length = planned_context(model, training)
    if here:
        arithmetic = choose_arithmetic(training.precision, device)
        size = planned_micro_batch(model, training, arithmetic)[0]
    else:
        precision = "bfloat16" if training.precision == "auto" else training.precision
        arithmetic = Arithmetic(torch.device("cuda"), precision, "as most GPUs have it")
        size = training.micro_batch_size or training.batch_size
    place = cast("Device", arithmetic.device.type)
    how: dict[str, Any] = {
        "precision": arithmetic.precision,
        "device": place,
        "compiled": planned_compile(training, place),
        "context_length": context_length,
        "micro_batch_size": size,
    }
    seconds = predict_seconds_per_step(model, training, size, context_length, arithmetic) if timed and here else None
    texts = 2 if isinstance(model, Seq2SeqConfig) else 1
    return {
        **how,
        "memory_bytes": plan_memory(model, training, **how).to_dict(),
        "flops_per_token": flops_per_token(model, context_length),
        "tokens_per_step": training.batch_size * positions(model, context_length) * texts,
        "seconds_per_step": seconds,
        "seconds": None if seconds is None else seconds * training.steps,
    }
