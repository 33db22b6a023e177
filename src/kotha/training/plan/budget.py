"""Where a training may run and for how long: this machine or a GPU by name, with a budget of memory and minutes."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import cast

from kotha.errors import UsageError
from kotha.model.config import ModelConfig
from kotha.training.config import Precision, TrainConfig
from kotha.training.device import available_memory, choose_arithmetic, peak_flops_per_second
from kotha.training.plan.gpus import COMPILE_SECONDS, GPU, SHARE_OF_PEAK, estimate_seconds_per_step
from kotha.training.plan.memory import Conditions, Device, Number, largest_micro_batch
from kotha.training.plan.step_time import predict_seconds_per_step

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


def budget_here(
    minutes: float, memory_bytes: int | None = None, device: str | None = None, precision: Precision = "auto"
) -> Budget:
    """This machine; without a budget of memory, what is free."""
    arithmetic = choose_arithmetic(precision, device)
    peak = peak_flops_per_second(arithmetic.device, arithmetic.dtype)
    kind = cast("Device", arithmetic.device.type)
    return Budget(
        device=kind,
        precision=cast("Number", arithmetic.precision),
        memory_bytes=memory_bytes or available_memory(arithmetic.device),
        minutes=minutes,
        start_seconds=COMPILE_SECONDS if kind == "cuda" else _START_SECONDS,
        reachable=peak,
        usual=_USUAL_SHARE * peak,
        pace=lambda model, settings, size, context: predict_seconds_per_step(
            model, settings, size, context, arithmetic
        ),
    )


def budget_on(gpu: GPU, minutes: float, memory_bytes: int | None = None, precision: Precision = "auto") -> Budget:
    """A GPU by name; without a budget of memory, all of its own."""
    if memory_bytes is not None and memory_bytes > gpu.memory:
        raise UsageError(
            "{given:g} GB are more than {gpu} has ({there:g}); give less or none",
            given=memory_bytes / 1e9,
            gpu=gpu.title,
            there=gpu.memory / 1e9,
        )
    chosen = cast("Number", gpu.precision if precision == "auto" else precision)
    return Budget(
        device="cuda",
        precision=chosen,
        memory_bytes=memory_bytes or gpu.memory,
        minutes=minutes,
        start_seconds=COMPILE_SECONDS,
        reachable=gpu.peak(chosen),
        usual=SHARE_OF_PEAK * gpu.peak(chosen),
        pace=lambda model, settings, size, context: estimate_seconds_per_step(
            gpu, model, settings, size, context, chosen
        ),
    )
