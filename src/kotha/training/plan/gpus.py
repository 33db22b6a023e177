"""GPUs by name: what their makers say of them, and how long a step would take there.

Speeds are the makers' for dense products with sums in float32, as training uses them: ``half`` in bfloat16 (float16
where there is no bfloat16), ``single`` in float32, by TF32 where the GPU has it. No training reaches them. What ours
reaches was measured on one H200 (benchmarks/results/train_speed.json), each step recorded as one CUDA graph:

- the course's model with AdamW, 1,077,680 tokens a second in batches of 64 x 128 and 1,401,625 in batches of 512 x 128,
  28 % and 36 % of the peak; ``gpt2`` in batches of 32 x 1,024, 496,085, 43 %. Two numbers come within 10 % of all:
  each token costs its operations at 41 % of the peak, and each micro-batch 0.2 ms a layer;
- ``bangla-modern`` with Muon, 1,141,885 in batches of 32 x 512: 4.3 ms a step more than those two numbers say, 0.08 ms
  for each matrix that Muon moves.

They are taken to hold for other GPUs and models, with the time to pass over the optimizer's memory added; another host
or a newer torch changes them. An estimate, good for choosing, not for promising.
"""

import json
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from kotha.errors import UsageError, nearest
from kotha.i18n.message import Message
from kotha.model.config import ModelConfig
from kotha.model.family import build
from kotha.training.config import TrainConfig
from kotha.training.optim import split_parameters
from kotha.training.plan.activations import positions
from kotha.training.plan.flops import count_work

SHARE_OF_PEAK = 0.41
SECONDS_PER_LAYER = 0.2e-3
SECONDS_PER_MUON_MATRIX = 0.08e-3
COMPILE_SECONDS = 70.0
SOURCE = Message("an estimate from what was measured on an H200, see benchmarks/results")
# A step of the optimizer reads weights, gradients and its two memories and writes all but the gradients.
_PASSES, _FLOAT32 = 7, 4


@dataclass(frozen=True)
class GPU:
    """What a maker says of a GPU."""

    title: str
    half: float  # operations a second in bfloat16 or float16
    single: float  # operations a second in float32 or TF32
    bandwidth: float  # bytes a second from and to its memory
    memory: int  # bytes that a program can have, nearly
    link: float  # bytes a second to another GPU of the same machine, each way: NVLink, else PCIe
    bfloat16: bool = True  # or float16, with scaled gradients

    @property
    def precision(self) -> str:
        """The type that a training takes there."""
        return "bfloat16" if self.bfloat16 else "float16"

    def peak(self, precision: str) -> float:
        """Operations a second at most."""
        return self.single if precision == "float32" else self.half


_TABLE = json.loads(Path(__file__).with_name("gpus.json").read_text(encoding="utf-8"))
GPUS = {name: GPU(**each) for name, each in _TABLE.items()}


def gpu_named(name: str) -> GPU:
    """The GPU of a name; an unknown one is refused with the nearest.

    >>> gpu_named("h200").precision
    'bfloat16'
    """
    plain = name.lower().replace(" ", "-").replace("_", "-")
    if plain not in GPUS:
        raise UsageError("gpu {name!r} is not in the table{nearest}", name=name, nearest=nearest(plain, GPUS))
    return GPUS[plain]


def estimate_seconds_per_step(
    gpu: GPU, model: ModelConfig, training: TrainConfig, micro_batch_size: int, context_length: int, precision: str
) -> float:
    """Seconds of one update on a GPU that need not be here."""
    work = count_work(model, context_length)
    layers = model.n_layers + getattr(model, "n_decoder_layers", 0)
    texts = 2 if layers > model.n_layers else 1
    tokens = training.batch_size * positions(model, context_length) * texts
    products = tokens * work.training_per_token / (SHARE_OF_PEAK * gpu.peak(precision))
    waiting = -(-training.batch_size // micro_batch_size) * layers * SECONDS_PER_LAYER
    optimizer = moving_seconds(gpu, work.parameters)
    muon = SECONDS_PER_MUON_MATRIX * _matrices(model) if training.optimizer == "muon" else 0.0
    return products + waiting + optimizer + muon


def moving_seconds(gpu: GPU, parameters: float) -> float:
    """Seconds in which the optimizer passes over its memory."""
    return _PASSES * _FLOAT32 * parameters / gpu.bandwidth


@lru_cache(maxsize=64)
def _matrices(model: ModelConfig) -> int:
    return len(split_parameters(build(model, "meta"), use_muon=True)[0])
