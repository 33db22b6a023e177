"""The FLOPs of a step and its time, measured on this machine or estimated for a named GPU.

A weight in a matrix product takes 2 operations per position (a multiplication and an addition), and twice that in the
backward pass: one product for the gradient of the input and one for the gradient of the weight (only the latter in the
first layer of a ViT, because images need no gradients). Embedding lookups take no operations. Attention scores and
weighted sums of values grow with the square of the length. All S positions are counted, including those hidden by a
causal mask; a kernel that skips them does only half of the attention operations. Norms, activations and the softmax are
not counted. The rule of thumb is 6 N operations per token for N parameters (Kaplan et al. 2020,
https://arxiv.org/abs/2001.08361), which includes embeddings but not the quadratic part of attention.

On this machine a small model is timed directly. For a large model, a model with one layer and a limited vocabulary is
timed on a batch and on a few tokens, and then its layer is timed separately. These timings give the fixed time of a
micro-batch (gradients of full tables), the time per token and the time per layer; the optimizer is timed on a slice of
the weights. The result is valid for the machine under its current load. The timed steps are not compiled, so training
on a GPU will be faster than predicted.

For a named GPU (``gpus.json``), the peak speeds are the manufacturer's for dense products accumulated in float32:
``half`` in bfloat16 (float16 on GPUs without bfloat16), ``single`` in float32, with TF32 if available. Training runs do
not reach these speeds. The speed of this package was measured on one H200 (benchmarks/results/train_speed.json), with
each step recorded as one CUDA graph:

- The course's model with AdamW processed 1,077,680 tokens per second in batches of 64 x 128 and 1,401,625 in batches of
  512 x 128, 28 % and 36 % of the peak; ``gpt2`` processed 496,085 in batches of 32 x 1,024, 43 %. Two numbers predict
  all of these speeds within 10 %: 41 % of the peak for the operations of each token, and 0.2 ms per layer for each
  micro-batch.
- ``bangla-modern`` with Muon processed 1,141,885 in batches of 32 x 512. A step takes 4.3 ms more than those two
  numbers predict, or 0.08 ms per matrix that Muon updates.

The same two numbers are assumed for other GPUs and models, plus the time to read and write the optimizer's memory.
They change with the host and with the version of torch. The estimate is accurate enough to choose a GPU, but not to
guarantee a duration.
"""

import json
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from statistics import median
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy
from torch.optim.adamw import adamw

from kotha.errors import ConfigError, UsageError, nearest
from kotha.i18n.message import Message, Plural
from kotha.i18n.numbers import Size
from kotha.model.bert import BERT
from kotha.model.config import (
    BERTClassifierConfig,
    BERTConfig,
    GPTClassifierConfig,
    ModelConfig,
    Seq2SeqConfig,
    TextConfig,
    ViTConfig,
)
from kotha.model.family import Model, Unfilled, build
from kotha.model.loss import next_token_loss
from kotha.model.parameters import count_parameters
from kotha.model.presets import preset
from kotha.model.vit import ViT
from kotha.training.config import Precision, TrainConfig, recipe
from kotha.training.device import Arithmetic, available_memory, choose_arithmetic, now, peak_flops_per_second, quickest
from kotha.training.optim import Optimizers, orthogonalize, split_parameters
from kotha.training.plan.memory import positions
from kotha.training.tasks.masked_words import CHOSEN

# -- work --------------------------------------------------------------------------------------------------------------

_FORWARD, _TRAINING = 2, 6
_PATCHES = 4  # training factor, because images need no gradients


@dataclass(frozen=True)
class Work:
    """Floating-point operations per position; for a Seq2Seq, source and target positions are counted."""

    forward: dict[str, float]  # by part
    training: dict[str, float]  # forward and backward, by part
    parameters: int

    @property
    def training_per_token(self) -> float:
        """Operations per position in the forward and the backward pass."""
        return sum(self.training.values())


@lru_cache(maxsize=64)
def count_work(model: ModelConfig, context_length: int) -> Work:
    """Count a model's operations by part, for sequences of a given length.

    BERT's token head is applied only to masked positions. The source of a Seq2Seq is assumed to be as long as its
    target.
    """
    n = positions(model, context_length)
    products = dict.fromkeys(("attention_matrices", "attention_scores", "feedforward", "head", "patches"), 0)
    for name, module in build(model, "meta").named_modules():
        if isinstance(module, nn.Linear):
            products[_part(name)] += _positions_processed(model, name, n) * module.weight.numel()
    n_heads = sum(len(model.heads_of(name)) for name in model.attentions())  # over all attention layers
    products["attention_scores"] = 2 * n_heads * model.d_head * n * n  # scores and weighted sums
    read = 2 * n if isinstance(model, Seq2SeqConfig) else n
    forward = {part: _FORWARD * value / read for part, value in products.items()}
    times = {part: (_PATCHES if part == "patches" else _TRAINING) / _FORWARD for part in products}
    training = {part: times[part] * value for part, value in forward.items()}
    return Work(forward, training, count_parameters(model).total)


def _part(name: str) -> str:
    if ".attention." in name or ".cross." in name:
        return "attention_matrices"
    if ".feedforward." in name:
        return "feedforward"
    return "patches" if name.startswith("patches") else "head"


def _positions_processed(model: ModelConfig, name: str, n_positions: int) -> int:
    """Return the number of positions per example that a layer processes."""
    match model, name.removeprefix("body.").split(".")[0]:
        case GPTClassifierConfig() | BERTClassifierConfig(), "head" | "pooler":
            return 1
        case BERTConfig(), "transform" | "head":
            return int(CHOSEN * n_positions)
        case (BERTConfig(), "pooler" | "pair_head") | (ViTConfig(), "head"):
            return 1
        case ViTConfig(), "patches":
            return n_positions - 1
    return n_positions


# -- GPUs by name ------------------------------------------------------------------------------------------------------

SHARE_OF_PEAK = 0.41
SECONDS_PER_LAYER = 0.2e-3
COMPILE_SECONDS = 70.0
_SECONDS_PER_MUON_MATRIX = 0.08e-3
# An optimizer step reads weights, gradients and two state tensors, and writes all of these except the gradients.
_PASSES, _FLOAT32 = 7, 4


@dataclass(frozen=True)
class GPU:
    """A manufacturer's specification of a GPU."""

    title: str
    half: float  # operations per second in bfloat16 or float16
    single: float  # operations per second in float32 or TF32
    bandwidth: float  # memory bandwidth in bytes per second
    memory: int  # approximate usable memory in bytes
    link: float  # bytes per second to another GPU of the same machine, each way: NVLink or PCIe
    precision: str = "bfloat16"  # the default for training; float16 needs scaled gradients

    def peak(self, precision: str) -> float:
        """Peak operations per second."""
        return self.single if precision == "float32" else self.half


_TABLE = json.loads(Path(__file__).with_name("gpus.json").read_text(encoding="utf-8"))
GPUS = {name: GPU(**each) for name, each in _TABLE.items()}


def gpu_named(name: str) -> GPU:
    """Return the GPU with this name; the error for an unknown name suggests the nearest one.

    >>> gpu_named("h200").precision
    'bfloat16'
    """
    plain = name.lower().replace(" ", "-").replace("_", "-")
    if plain not in GPUS:
        raise UsageError("unknown GPU {name!r}{nearest}", name=name, nearest=nearest(plain, GPUS))
    return GPUS[plain]


def gpu_here(device: torch.device) -> GPU | None:
    """Return the specification of a GPU in this machine, if it is known."""
    name = torch.cuda.get_device_name(device) if device.type == "cuda" else ""
    return next((each for each in GPUS.values() if name == each.title), None)


def arithmetic_of(precision: Precision, gpu: GPU | None) -> Arithmetic:
    """Return the arithmetic for a GPU, named or unnamed, that this machine does not have."""
    best = "bfloat16" if gpu is None else gpu.precision
    return Arithmetic(torch.device("cuda"), best if precision == "auto" else precision, Message("supported by the GPU"))


def peak_of(arithmetic: Arithmetic, gpu: GPU | None) -> float:
    """Return the peak operations per second: measured here, or specified for a named GPU."""
    if gpu is None:
        return peak_flops_per_second(arithmetic.device, arithmetic.dtype)
    return gpu.peak(arithmetic.precision)


def _estimate(
    gpu: GPU, model: ModelConfig, training: TrainConfig, micro_batch_size: int, context_length: int, precision: str
) -> float:
    work = count_work(model, context_length)
    layers = model.n_layers + getattr(model, "n_decoder_layers", 0)
    tokens = tokens_per_step(model, training, context_length)
    products = tokens * work.training_per_token / (SHARE_OF_PEAK * gpu.peak(precision))
    waiting = -(-training.batch_size // micro_batch_size) * layers * SECONDS_PER_LAYER
    matrices = split_parameters(build(model, "meta"), use_muon=training.optimizer == "muon")[0]
    muon = _SECONDS_PER_MUON_MATRIX * len(matrices)
    return products + waiting + moving_seconds(gpu, work.parameters) + muon


def moving_seconds(gpu: GPU, parameters: float) -> float:
    """Return the time in seconds for the optimizer to read and write its memory."""
    return _PASSES * _FLOAT32 * parameters / gpu.bandwidth


def tokens_per_step(model: ModelConfig, training: TrainConfig, context_length: int) -> int:
    """Return the number of positions processed in a step; a Seq2Seq processes a source and a target per example."""
    texts = 2 if isinstance(model, Seq2SeqConfig) else 1
    return training.batch_size * positions(model, context_length) * texts


# -- timing short steps ------------------------------------------------------------------------------------------------

# Target duration of a timed pass, so that the whole measurement takes a few seconds.
_PASS_SECONDS = 0.2
_LEAST_TOKENS, _FEW_TOKENS = 128, 8  # with fewer tokens, reading the weights dominates
_ROUNDS, _ENOUGH_SECONDS = 4, 0.4
_WORDS = 8192
# Rows and columns of the slice on which a large optimizer is timed.
_SLICE = (256, 1024)
# The step on which thread counts are compared; it is small, because the count matters most for small steps.
_BATCH, _CONTEXT = 8, 128


def predict_seconds_per_step(
    model: ModelConfig,
    training: TrainConfig,
    micro_batch_size: int,
    context_length: int,
    arithmetic: Arithmetic,
    gpu: GPU | None = None,
) -> float:
    """Return the seconds per step, with all micro-batches and the optimizer: measured, or estimated for a ``gpu``."""
    if gpu is not None:
        return _estimate(gpu, model, training, micro_batch_size, context_length, arithmetic.precision)
    micro_batches = -(-training.batch_size // micro_batch_size)
    with torch.random.fork_rng():  # leaves the caller's random state unchanged
        if _affordable(model, micro_batch_size, context_length, arithmetic) == (micro_batch_size, context_length):
            gradients, step = _time(_built(model, arithmetic), training, micro_batch_size, context_length, arithmetic)
            return micro_batches * gradients + step
        depths = {"n_layers": 1, **({"n_decoder_layers": 1} if isinstance(model, Seq2SeqConfig) else {})}
        small = tiny_vocabulary = model.replace(**depths, removed_heads=())
        tables = 1.0  # size of the tables relative to the timed ones
        if isinstance(model, TextConfig):
            small, tiny_vocabulary = (small.replace(vocab_size=min(words, model.vocab_size)) for words in (_WORDS, 2))
            tables = max(1.0, model.vocab_size / _WORDS)
        batch_size, length = _affordable(small, micro_batch_size, context_length, arithmetic)
        few = length if isinstance(model, ViTConfig) else min(_FEW_TOKENS, length)
        built = _built(small, arithmetic)
        fixed, one = (_time(built, None, *shape, arithmetic)[0] for shape in ((1, few), (batch_size, length)))
        layer = _time(_built(tiny_vocabulary, arithmetic), None, batch_size, length, arithmetic)[0]
        step = _optimizer_seconds(model, training, arithmetic)
    full = model.n_layers * layer + tables * max(0.0, one - layer)
    fixed = min(full, tables * fixed)
    shares = training.batch_size * positions(model, context_length) / (batch_size * positions(model, length))
    return micro_batches * fixed + shares * (full - fixed) + step


def use_fastest_threads() -> int:
    """Use all cores, or one if that is faster, as it can be on a busy machine; return the number of threads.

    With another number of threads, sums can round differently, so a run records the number.
    """
    arithmetic, all_of_them = choose_arithmetic("auto"), torch.get_num_threads()
    if arithmetic.device.type == "cpu" and all_of_them > 1:
        seconds: dict[int, float] = {}
        for count in (all_of_them, 1):
            torch.set_num_threads(count)
            settings = recipe("modern", batch_size=_BATCH)
            seconds[count] = predict_seconds_per_step(preset("pocket"), settings, _BATCH, _CONTEXT, arithmetic)
        torch.set_num_threads(min(seconds, key=lambda count: seconds[count]))
    return torch.get_num_threads()


def _affordable(model: ModelConfig, batch_size: int, context_length: int, arithmetic: Arithmetic) -> tuple[int, int]:
    """Return the part of a batch that takes about the target duration: whole sequences, or a part of one sequence."""
    speed = peak_flops_per_second(arithmetic.device, arithmetic.dtype)
    work = count_work(model, context_length).training_per_token
    tokens = max(_LEAST_TOKENS, int(_PASS_SECONDS * speed / work))
    n = positions(model, context_length)
    if isinstance(model, ViTConfig) or tokens >= n:
        return max(1, min(batch_size, tokens // n)), context_length
    return 1, tokens


def _built(config: ModelConfig, arithmetic: Arithmetic) -> Model:
    needed = 2 * sum(each.nbytes for each in build(config, "meta").parameters())
    room = available_memory(arithmetic.device)
    if needed > room:
        layers = Plural("one layer", "all {n} layers", n=config.n_layers)
        raise ConfigError(
            "the weights and gradients of {layers} need {needed}, but only {room} is free, so no step can be timed; "
            "choose smaller sizes, name a GPU, or plan without timing",
            layers=layers,
            needed=Size(needed),
            room=Size(room),
        )
    with Unfilled():
        model = build(config, arithmetic.device).train()
    for each in (*model.parameters(), *model.buffers()):
        torch.nn.init.constant_(each, 0)  # the values do not matter, and random ones take time to draw
    return model


def _time(
    model: Model, training: TrainConfig | None, batch_size: int, context_length: int, arithmetic: Arithmetic
) -> tuple[float, float]:
    """Time the gradients of a batch and an optimizer step; return medians over a few rounds, without the first."""
    inputs = tuple(each.to(arithmetic.device) for each in example_inputs(model.config, batch_size, context_length))
    optimizers = None if training is None else Optimizers(model, training)
    scaler = torch.amp.GradScaler(enabled=False)
    gradients, steps = [], []
    for round_ in range(1 + _ROUNDS):
        start = now(arithmetic.device)
        with arithmetic.autocast():
            loss = _example_loss(model, inputs)
        torch.autograd.backward(loss)
        middle = now(arithmetic.device)
        if optimizers is not None:
            optimizers.step(scaler)
            optimizers.zero_grad()
        gradients.append(middle - start)
        steps.append(now(arithmetic.device) - middle)
        if round_ and sum(gradients) + sum(steps) > _ENOUGH_SECONDS:
            break
    return median(gradients[1:]), median(steps[1:])


def _optimizer_seconds(model: ModelConfig, training: TrainConfig, arithmetic: Arithmetic) -> float:
    """Extrapolate the seconds of an optimizer step for a large model: AdamW by parameters, Muon by matrix products."""
    orthogonal, *others = split_parameters(build(model, "meta"), use_muon=training.optimizer == "muon")
    move: Any = adamw  # not the optimizer class, which takes two seconds to load torch's compiler
    tensors = [[torch.ones(_SLICE, device=arithmetic.device)] for _ in range(4)]  # weights, gradients, mean, square
    how: Any = {"lr": 1e-3, "beta1": 0.9, "beta2": 0.99, "weight_decay": 0.1, "eps": 1e-8}
    how |= {"amsgrad": False, "maximize": False, "foreach": arithmetic.device.type == "cuda"}
    (part,), steps = tensors[0], [torch.ones(())]
    each = quickest(lambda: move(*tensors, [], steps, **how), arithmetic.device, 0.0) / part.numel()
    product = quickest(lambda: orthogonalize(part), arithmetic.device, 0.0) / _products(part)
    moved = sum(parameter.numel() for group in others for _, parameter in group)
    return moved * each + sum(_products(parameter) for _, parameter in orthogonal) * product


def _products(matrix: Tensor) -> float:
    """Return the number of operations to orthogonalize a matrix, up to a constant factor."""
    small, large = sorted(matrix.shape)
    return float(2 * small * small * large + small**3)


def example_inputs(config: ModelConfig, batch_size: int, context_length: int) -> tuple[Tensor, ...]:
    """Return inputs of the right shape for ``model.hidden``."""
    if isinstance(config, ViTConfig):
        return (torch.zeros(batch_size, config.n_channels, config.image_size, config.image_size),)
    tokens = torch.zeros(batch_size, context_length, dtype=torch.long)
    return (tokens, tokens.clone()) if isinstance(config, Seq2SeqConfig) else (tokens,)


def _example_loss(model: Any, inputs: tuple[Tensor, ...]) -> Tensor:
    """Return the training loss for the model's family, with all targets 0."""
    hidden = model.hidden(*inputs)  # (B, T, C)
    if isinstance(model, ViT):
        logits = model.head(hidden[:, 0])
        return cross_entropy(logits, torch.zeros(len(logits), dtype=torch.long, device=logits.device))
    if isinstance(model, BERT):
        hidden = model.guess(hidden[:, : max(1, int(CHOSEN * hidden.shape[1]))])
    rows = hidden.flatten(0, 1)  # (N, C)
    targets = torch.zeros(len(rows), dtype=torch.long, device=rows.device)
    return next_token_loss(rows, model.head.weight, targets, model.head.bias)
