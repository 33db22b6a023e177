"""How much memory a training needs, part by part, before it starts.

The parts are not all there at once, so the total is the fullest of five moments: the end of the forward pass with the
loss's chunk of logits, the start of the backward pass, its end, the optimizer's step, and a look at the validation set.
Weights and what the optimizer remembers are there in all of them.

On a CPU the total is what the process has resident at most (``ru_maxrss``), on a GPU what torch has allocated at most
(``max_memory_allocated``). benchmarks/memory_plan.py compares with real steps.
"""

from dataclasses import dataclass
from functools import lru_cache
from typing import Literal, NamedTuple, cast

from torch import nn

from kotha.errors import ConfigError
from kotha.i18n.numbers import Size
from kotha.model.config import BERTConfig, ClassifierConfig, ModelConfig, TextConfig, ViTConfig
from kotha.model.family import build
from kotha.model.lora import LowRankLinear, add_low_rank, learned_whole
from kotha.model.loss import CHUNK_LOGITS, GPU_CHUNK_LOGITS
from kotha.training.config import Optimizer, TrainConfig
from kotha.training.device import DTYPES, Arithmetic
from kotha.training.optim import split_parameters
from kotha.training.plan.activations import body_memory, positions
from kotha.training.tasks.masked_words import CHOSEN
from kotha.training.tasks.task import POSITIONS_AT_ONCE

Number = Literal["float32", "bfloat16", "float16"]
Device = Literal["cpu", "cuda"]

# Positions that go through a model at once on a CPU when no micro-batch is given: more would not be faster there.
CPU_POSITIONS = 8192

_FLOAT32 = 4
# The interpreter with torch, its optimizers and its thread pools, before any model.
_BASE = 370 << 20
# On a CPU, freed memory that the allocator cannot hand out again because it lies in pieces.
_SCATTERED = 0.06
# Chunks of logits that exist together in the loss: themselves, and their exponentials while they are summed.
_CHUNKS = 2
# Copies of a matrix that Muon's iteration holds together; AdamW makes one of the tensor it moves, on a CPU.
_MUON_COPIES = 5


@dataclass(frozen=True)
class Conditions:
    """How a training runs, as far as its memory depends on it."""

    context_length: int
    precision: Number
    device: Device
    compiled: bool
    ranks: int = 1
    sharded: bool = False


@dataclass(frozen=True)
class MemoryPlan:
    """Bytes by part, each at its own largest, and the total at the fullest moment."""

    weights: int  # the parameters, in float32
    gradients: int  # the gradients of those that learn; with data parallelism, also the buckets in which they are sent
    optimizer: int  # what the optimizers remember
    average: int  # the running average of the weights
    activations: int  # what the forward pass leaves for the backward pass, for one micro-batch
    loss: int  # the chunk of logits, and the head's gradient as the loss makes it
    base: int  # the interpreter and its libraries, where the device is the CPU
    total: int  # the fullest moment
    moment: str  # which one it is: forward, backward, step or validation


def plan_memory(model: ModelConfig, training: TrainConfig, micro_batch_size: int, how: Conditions) -> MemoryPlan:
    """What one process needs to train a model in micro-batches of a size.

    >>> from kotha.model.presets import preset
    >>> plan = plan_memory(preset("mini"), TrainConfig(), 2, Conditions(4, "float32", "cpu", compiled=False))
    >>> plan.weights, plan.optimizer > 2 * plan.weights
    (3632, True)
    """
    sizes = _sizes(model, training.optimizer, training.lora)
    shares = how.ranks if how.sharded else 1
    weights, states, learning = (-(-each // shares) for each in (sizes.weights, sizes.optimizer, sizes.learning))
    gradients = learning * (2 if how.ranks > 1 and not how.sharded else 1)
    average = learning if training.ema_decay is not None else 0
    width, places, on_cpu = DTYPES[how.precision].itemsize, positions(model, how.context_length), how.device == "cpu"
    seen = max(1, POSITIONS_AT_ONCE[how.device] // places)  # sequences of a validation batch
    body, measured = (
        body_memory(model, each, how.context_length, how.precision, how.device, how.compiled)
        for each in (micro_batch_size, seen)
    )
    kept = body.kept + micro_batch_size * places * sizes.beside * width
    loss, loss_gradients, chunk = _loss(model, sizes.vocabulary, micro_batch_size, how)
    hidden = _FLOAT32 * seen * places * model.d_model
    reading = hidden + _loss(model, sizes.vocabulary, seen, how)[2] + width * sizes.vocabulary * model.d_model
    depth = max(1, model.n_layers)
    # With FSDP, gathered when their turn comes: what stands outside the blocks, this block and the next.
    gathered = sizes.weights - sizes.blocks + 2 * sizes.blocks // depth if shares > 1 else 0
    table = _FLOAT32 * model.vocab_size * model.d_model if isinstance(model, TextConfig) else 0
    step = _FLOAT32 * max(sizes.largest_moved if on_cpu else 0, _MUON_COPIES * sizes.largest_matrix)
    accumulated = gradients if training.batch_size > micro_batch_size * how.ranks else 0
    first, last = accumulated + kept + loss_gradients, gradients + kept // depth + table  # of the backward pass
    moments = {
        "forward": accumulated + kept + loss + chunk,
        "backward": max(first, last) + body.working,
        "step": gradients + -(-step // shares),
        "validation": gradients + average + max(measured.measuring, reading) + sizes.merged,
    }
    moment = max(moments, key=lambda name: moments[name])
    base, total = 0, weights + states + average + gathered + moments[moment]
    if on_cpu:
        base, total = _BASE, _BASE + total + int(_SCATTERED * total)
    return MemoryPlan(weights, gradients, states, average, kept, loss + chunk, base, total, moment)


def _loss(model: ModelConfig, vocabulary: int, batch_size: int, how: Conditions) -> tuple[int, int, int]:
    """The loss at its fullest with its gradients so far, those gradients as it made them and scaled, and its chunk.

    Under autocast there are copies in the type of the products.
    """
    rows, width = batch_size, DTYPES[how.precision].itemsize
    if not isinstance(model, ViTConfig | ClassifierConfig):
        rows = int(batch_size * how.context_length * (CHOSEN if isinstance(model, BERTConfig) else 1.0))
    head, read = vocabulary * model.d_model, rows * model.d_model  # numbers in the head, and in what it reads
    largest = GPU_CHUNK_LOGITS if how.device == "cuda" else CHUNK_LOGITS
    chunk = _CHUNKS * _FLOAT32 * min(rows * vocabulary, max(largest, vocabulary))
    copied, summed = (width, _FLOAT32) if width < _FLOAT32 else (0, 0)
    fullest = copied * (read + 2 * head) + width * read + _FLOAT32 * head
    return fullest, 2 * width * (read + head) + summed * head, chunk


def largest_micro_batch(model: ModelConfig, training: TrainConfig, available_bytes: int, how: Conditions) -> int:
    """What is asked for; else the whole batch of a process if it fits and is of use, or a power of two that does."""
    if training.micro_batch_size is not None:
        return training.micro_batch_size
    size = training.batch_size // how.ranks
    if how.device == "cpu":
        size = min(size, CPU_POSITIONS // positions(model, how.context_length))
    while size > 1 and plan_memory(model, training, size, how).total > available_bytes:
        size = 1 << (size - 1).bit_length() - 1  # the next power of two below
    return max(1, size)


def check_room(model: ModelConfig, training: TrainConfig, room: int, how: Conditions) -> None:
    """Refuse a training for which so much memory is too little, even with one sequence at a time."""
    needed = plan_memory(model, training, 1, how).total
    if needed > room:
        raise ConfigError(
            "this model takes {needed} of memory to learn from one sequence at a time, and here are {room}; "
            "choose smaller sizes: d_model, d_ff, n_layers, vocab_size or context_length",
            needed=Size(needed),
            room=Size(room),
        )


def how_planned(
    model: ModelConfig, training: TrainConfig, arithmetic: Arithmetic, ranks: int = 1, sharded: bool = False
) -> Conditions:
    """How a training with this arithmetic will run."""
    device = cast("Device", arithmetic.device.type)
    assert device in ("cpu", "cuda"), f"no plan for {device}"
    compiled = training.compile == "on" or (training.compile == "auto" and device == "cuda")
    precision = cast("Number", arithmetic.precision)
    return Conditions(planned_context(model, training), precision, device, compiled, ranks, sharded)


def planned_context(model: ModelConfig, training: TrainConfig) -> int:
    """Tokens in a sequence as a training asks for it; for images, their patches and the class token."""
    if not isinstance(model, TextConfig):
        return positions(model, 0)
    wanted = training.context_length or model.context_length
    if wanted > model.context_length:
        raise ConfigError(
            "context_length={wanted} is more than the model's {longest}; use that or less",
            wanted=wanted,
            longest=model.context_length,
        )
    return wanted


class _Sizes(NamedTuple):
    """Bytes that follow from a model and its optimizer, whatever the batch."""

    weights: int
    learning: int  # the weights that learn
    optimizer: int
    blocks: int
    merged: int  # LoRA's, for the plain model that is kept
    beside: int  # numbers that LoRA's first narrow matrices give and the second read, for a position
    vocabulary: int  # rows of the head
    largest_moved: int  # numbers in AdamW's largest tensor
    largest_matrix: int  # … and in Muon's


@lru_cache(maxsize=64)
def _sizes(model: ModelConfig, optimizer: Optimizer, lora: int | None) -> _Sizes:
    try:
        built = build(model, "meta")
    except (RuntimeError, OverflowError, TypeError) as error:  # torch, of a size that it cannot count
        raise ConfigError(
            "d_model={d_model} and d_ff={d_ff} make matrices beyond any machine; choose smaller sizes",
            d_model=model.d_model,
            d_ff=model.d_ff,
        ) from error
    if lora is not None:
        add_low_rank(built, lora, alpha=1.0, whole=learned_whole(model.family))
    muon, *adamw = split_parameters(built, use_muon=optimizer == "muon")
    moved = [each.numel() for group in adamw for _, each in group]
    matrices = [each.numel() for _, each in muon]
    adapted = [module for module in built.modules() if isinstance(module, LowRankLinear)]
    blocks = [module for name, module in built.named_modules() if name.endswith("blocks")]
    return _Sizes(
        weights=_bytes(built),
        learning=_FLOAT32 * (sum(moved) + sum(matrices)),
        optimizer=_FLOAT32 * (2 * sum(moved) + len(moved) + sum(matrices)),  # AdamW counts steps of each tensor
        blocks=sum(map(_bytes, blocks)),
        merged=_FLOAT32 * sum(module.weight.numel() for module in adapted),
        beside=len(adapted) * (lora or 0),
        vocabulary=model.n_classes if isinstance(model, ViTConfig) else built.head.out_features,
        largest_moved=max(moved),
        largest_matrix=max(matrices, default=0),
    )


def _bytes(module: nn.Module) -> int:
    return _FLOAT32 * sum(parameter.numel() for parameter in module.parameters())
