"""How much arithmetic a step is (FLOPs), and how long it takes: timed on this machine, or estimated for a named GPU.

A weight that multiplies takes 2 operations for each position, a product and a sum, and twice that going back: once for
its input's gradient, once for its own (only the latter in the first layer of a ViT, whose images need none). Embeddings
are looked up, which is no work. In attention, queries meet keys and weights meet values: this part grows with the
square of the length. All S positions count, also those that a causal mask hides; a kernel that skips them does half of
that part. Norms, bends and the softmax are left out. The rule of thumb is 6 N operations a token for N parameters
(Kaplan et al. 2020, https://arxiv.org/abs/2001.08361): it counts looked-up tables as work and leaves out the square.

On this machine a small model is timed whole. Of a large one, a model of one layer and not too many words is timed on
some tokens and on a few, and its layer alone: this tells what a micro-batch costs whatever its size (gradients of whole
tables), what a token adds and what a layer adds; its optimizer is timed on a slice. Only sensible on the machine that
will train, while it is as busy as it will be then. Nothing is compiled for it, so a GPU will do better than this says.

Of a named GPU (``gpus.json``) the speeds are the maker's for dense products with sums in float32: ``half`` in bfloat16
(float16 where there is no bfloat16), ``single`` in float32, by TF32 where the GPU has it. No training reaches them.
What ours reaches was measured on one H200 (benchmarks/results/train_speed.json), each step recorded as one CUDA graph:

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
from kotha.model.loss import chunked_loss, next_token_loss
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
_PATCHES = 4  # of training: images need no gradients


@dataclass(frozen=True)
class Work:
    """Floating-point operations for each position that is read; a Seq2Seq's source and target both count as read."""

    forward: dict[str, float]  # going forward, by part
    training: dict[str, float]  # forward and backward, by part
    parameters: int

    @property
    def training_per_token(self) -> float:
        """One position through the model and back."""
        return sum(self.training.values())


@lru_cache(maxsize=64)
def count_work(model: ModelConfig, context_length: int) -> Work:
    """Operations of a model on sequences of a length, by part.

    A BERT's word head works on the guessed places only. A Seq2Seq reads as long a source as its target.
    """
    n = positions(model, context_length)
    products = dict.fromkeys(("attention_matrices", "attention_scores", "feedforward", "head", "patches"), 0)
    for name, module in build(model, "meta").named_modules():
        if isinstance(module, nn.Linear):
            products[_part(name)] += _positions_met(model, name, n) * module.weight.numel()
    n_heads = sum(len(model.heads_of(name)) for name in model.attentions())  # of all attentions together
    products["attention_scores"] = 2 * n_heads * model.d_head * n * n  # queries with keys, weights with values
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


def _positions_met(model: ModelConfig, name: str, n_positions: int) -> int:
    """Positions of one example that a layer works on."""
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
    precision: str = "bfloat16"  # that a training takes there; or float16, with scaled gradients

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
        raise UsageError("unknown GPU {name!r}{nearest}", name=name, nearest=nearest(plain, GPUS))
    return GPUS[plain]


def arithmetic_there(precision: Precision, gpu: GPU | None) -> Arithmetic:
    """The arithmetic of a GPU that is not here, by its name or without one."""
    best = "bfloat16" if gpu is None else gpu.precision
    return Arithmetic(
        torch.device("cuda"), best if precision == "auto" else precision, Message("as the GPU supports it")
    )


def peak_of(arithmetic: Arithmetic, gpu: GPU | None) -> float:
    """Operations a second at most: timed here, or as a GPU's maker has it."""
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
    """Seconds in which the optimizer passes over its memory."""
    return _PASSES * _FLOAT32 * parameters / gpu.bandwidth


def tokens_per_step(model: ModelConfig, training: TrainConfig, context_length: int) -> int:
    """Positions that an update reads; a Seq2Seq reads two texts."""
    texts = 2 if isinstance(model, Seq2SeqConfig) else 1
    return training.batch_size * positions(model, context_length) * texts


# -- a few small steps -------------------------------------------------------------------------------------------------

# What one timed pass should take, so that all of the timing takes a few seconds.
_PASS_SECONDS = 0.2
_LEAST_TOKENS, _FEW_TOKENS = 128, 8  # with fewer than those, weights are read more than multiplied
_ROUNDS, _ENOUGH_SECONDS = 4, 0.4
_WORDS = 8192
# Of a large optimizer, the slice that is timed: rows and columns.
_SLICE = (256, 1024)
# The step by which threads are compared: small, as those are to which it matters.
_BATCH, _CONTEXT = 8, 128


def predict_seconds_per_step(
    model: ModelConfig,
    training: TrainConfig,
    micro_batch_size: int,
    context_length: int,
    arithmetic: Arithmetic,
    gpu: GPU | None = None,
) -> float:
    """Seconds of one update: its micro-batches forward and back, and the optimizer; timed here, or of a ``gpu``."""
    if gpu is not None:
        return _estimate(gpu, model, training, micro_batch_size, context_length, arithmetic.precision)
    micro_batches = -(-training.batch_size // micro_batch_size)
    with torch.random.fork_rng():  # dropout draws here, not from the caller's numbers
        if _affordable(model, micro_batch_size, context_length, arithmetic) == (micro_batch_size, context_length):
            gradients, step = _time(_built(model, arithmetic), training, micro_batch_size, context_length, arithmetic)
            return micro_batches * gradients + step
        depths = {"n_layers": 1, **({"n_decoder_layers": 1} if isinstance(model, Seq2SeqConfig) else {})}
        small = wordless = model.replace(**depths, removed_heads=())
        tables = 1.0  # how many times as large they are as those that are timed
        if isinstance(model, TextConfig):
            small, wordless = (small.replace(vocab_size=min(words, model.vocab_size)) for words in (_WORDS, 2))
            tables = max(1.0, model.vocab_size / _WORDS)
        batch_size, length = _affordable(small, micro_batch_size, context_length, arithmetic)
        few = length if isinstance(model, ViTConfig) else min(_FEW_TOKENS, length)
        built = _built(small, arithmetic)
        fixed, one = (_time(built, None, *shape, arithmetic)[0] for shape in ((1, few), (batch_size, length)))
        layer = _time(_built(wordless, arithmetic), None, batch_size, length, arithmetic)[0]
        step = _optimizer_seconds(model, training, arithmetic)
    whole = model.n_layers * layer + tables * max(0.0, one - layer)
    fixed = min(whole, tables * fixed)
    shares = training.batch_size * positions(model, context_length) / (batch_size * positions(model, length))
    return micro_batches * fixed + shares * (whole - fixed) + step


def use_fastest_threads() -> int:
    """Compute with all cores, or with one where that is faster: on a busy machine many short waits add up.

    Sums may round differently with another number of threads, so a run notes how many it had.
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
    """A batch that takes about as long as a timed pass should; whole sequences where one fits, else a part of one."""
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
            "weights and gradients of {layers} need {needed}, but only {room} is free here, so no step can "
            "be timed; choose smaller sizes, a GPU by name, or a plan without a time",
            layers=layers,
            needed=Size(needed),
            room=Size(room),
        )
    with Unfilled():
        model = build(config, arithmetic.device).train()
    for each in (*model.parameters(), *model.buffers()):
        torch.nn.init.constant_(each, 0)  # numbers do not matter, and drawing them takes its time
    return model


def _time(
    model: Model, training: TrainConfig | None, batch_size: int, context_length: int, arithmetic: Arithmetic
) -> tuple[float, float]:
    """Seconds of the gradients of a batch and of an optimizer's step: the median of a few rounds after the first."""
    inputs = tuple(each.to(arithmetic.device) for each in example_inputs(model.config, batch_size, context_length))
    optimizers = None if training is None else Optimizers(model, training)
    scaler = torch.amp.GradScaler(enabled=False)
    gradients, steps = [], []
    for round_ in range(1 + _ROUNDS):
        start = now(arithmetic.device)
        with arithmetic.autocast():
            loss = _example_loss(model, inputs, whole=training is not None)
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
    """A step of a large model's optimizers, from one on a slice: AdamW by numbers, Muon by its products."""
    orthogonal, *others = split_parameters(build(model, "meta"), use_muon=training.optimizer == "muon")
    move: Any = adamw  # the function and not the optimizer, which would load torch's compiler: two seconds of work
    tensors = [[torch.ones(_SLICE, device=arithmetic.device)] for _ in range(4)]  # weights, gradients, mean, square
    how: Any = {"lr": 1e-3, "beta1": 0.9, "beta2": 0.99, "weight_decay": 0.1, "eps": 1e-8}
    how |= {"amsgrad": False, "maximize": False, "foreach": arithmetic.device.type == "cuda"}
    (part,), steps = tensors[0], [torch.ones(())]
    each = quickest(lambda: move(*tensors, [], steps, **how), arithmetic.device, 0.0) / part.numel()
    product = quickest(lambda: orthogonalize(part), arithmetic.device, 0.0) / _products(part)
    moved = sum(parameter.numel() for group in others for _, parameter in group)
    return moved * each + sum(_products(parameter) for _, parameter in orthogonal) * product


def _products(matrix: Tensor) -> float:
    """What orthogonalizing a matrix takes, up to a factor: its smaller side once squared, once cubed."""
    small, large = sorted(matrix.shape)
    return float(2 * small * small * large + small**3)


def example_inputs(config: ModelConfig, batch_size: int, context_length: int) -> tuple[Tensor, ...]:
    """Something of the right shape for ``model.hidden``."""
    if isinstance(config, ViTConfig):
        return (torch.zeros(batch_size, config.n_channels, config.image_size, config.image_size),)
    tokens = torch.zeros(batch_size, context_length, dtype=torch.long)
    return (tokens, tokens.clone()) if isinstance(config, Seq2SeqConfig) else (tokens,)


def _example_loss(model: Any, inputs: tuple[Tensor, ...], whole: bool) -> Tensor:
    """A loss of the kind that a family learns by, with all answers 0.

    For a part of a model it is the twin of what a CPU trains with, as fast within a few percent: torch's own loads
    torch's compiler when it is first called, as the optimizers of a whole one do anyway.
    """
    hidden = model.hidden(*inputs)  # (B, T, C)
    if isinstance(model, ViT):
        logits = model.head(hidden[:, 0])
        return cross_entropy(logits, torch.zeros(len(logits), dtype=torch.long, device=logits.device))
    if isinstance(model, BERT):
        hidden = model.guess(hidden[:, : max(1, int(CHOSEN * hidden.shape[1]))])
    rows = hidden.flatten(0, 1)  # (N, C)
    answers = torch.zeros(len(rows), dtype=torch.long, device=rows.device)
    if whole:
        return next_token_loss(rows, model.head.weight, answers, model.head.bias)
    return chunked_loss(rows, model.head.weight, answers, model.head.bias, label_smoothing=0.0)
