"""How long a step will take on this machine, from a few small ones.

A model of one layer is timed on some tokens and on half of them, and one of two layers on all: this tells what a
micro-batch costs whatever its size (gradients of whole tables), what a token adds and what a layer adds. Only sensible
on the machine that will train, while it is as busy as it will be then. Nothing is compiled for it, so a GPU will do
better than this says.
"""

import time
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from kotha.model.bert import BERT
from kotha.model.config import ModelConfig, Seq2SeqConfig, ViTConfig
from kotha.model.family import Model, build
from kotha.model.loss import next_token_loss
from kotha.model.presets import preset
from kotha.model.vit import ViT
from kotha.train.config import TrainConfig
from kotha.train.device.hardware import flops_per_token, peak_flops_per_second
from kotha.train.device.precision import Arithmetic, choose_arithmetic
from kotha.train.optimize.optimizer import Optimizers
from kotha.train.plan.activations import example_inputs, positions, run_body
from kotha.train.recipes import recipe
from kotha.train.tasks.masking import CHOSEN

# What one timed pass should take, so that all of the timing takes a few seconds.
_PASS_SECONDS = 0.35
_LEAST_TOKENS = 256  # with fewer, weights are read more than multiplied
_ROUNDS = 2


# The step by which threads are compared: small, as those are to which it matters.
_BATCH, _CONTEXT = 8, 128


@dataclass(frozen=True)
class _Timing:
    gradients: float
    step: float


def predict_seconds_per_step(
    model: ModelConfig, training: TrainConfig, micro_batch_size: int, context_length: int, arithmetic: Arithmetic
) -> float:
    """Seconds of one update: its micro-batches forward and back, and the optimizer."""
    depths = {"n_layers": 1, **({"n_decoder_layers": 1} if isinstance(model, Seq2SeqConfig) else {})}
    small, double = model.replace(**depths), model.replace(**dict.fromkeys(depths, 2))
    batch_size, length = _affordable(double, micro_batch_size, context_length, arithmetic)
    half = (batch_size // 2, length) if batch_size > 1 else (1, max(1, length // 2))
    with torch.random.fork_rng():  # dropout and first weights draw here, not from the caller's numbers
        less = _time(small, training, *half, arithmetic)
        one = _time(small, training, batch_size, length, arithmetic)
        two = _time(double, training, batch_size, length, arithmetic)
    layers = model.n_layers - 1
    whole = one.gradients + layers * max(0.0, two.gradients - one.gradients)
    fixed = min(one.gradients, max(0.0, 2 * less.gradients - one.gradients))
    step = one.step + layers * max(0.0, two.step - one.step)
    shares = training.batch_size * positions(model, context_length) / (batch_size * positions(model, length))
    return -(-training.batch_size // micro_batch_size) * fixed + shares * (whole - fixed) + step


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
    tokens = max(_LEAST_TOKENS, int(_PASS_SECONDS * speed / flops_per_token(model, context_length)))
    n = positions(model, context_length)
    if isinstance(model, ViTConfig) or tokens >= n:
        return max(1, min(batch_size, tokens // n)), context_length
    return 1, tokens


def _time(
    config: ModelConfig, training: TrainConfig, batch_size: int, context_length: int, arithmetic: Arithmetic
) -> _Timing:
    """The quickest of a few passes and steps of a small model."""
    model = build(config).to(arithmetic.device).train()
    inputs = tuple(each.to(arithmetic.device) for each in example_inputs(config, batch_size, context_length))
    optimizers, scaler = Optimizers(model, training), torch.amp.GradScaler(enabled=False)
    gradients, steps = [], []
    for _ in range(_ROUNDS):
        start = _now(arithmetic)
        with arithmetic.autocast():
            loss = example_loss(model, inputs)
        torch.autograd.backward(loss)
        middle = _now(arithmetic)
        optimizers.step(scaler)
        gradients.append(middle - start)
        steps.append(_now(arithmetic) - middle)
    return _Timing(min(gradients), min(steps))


def example_loss(model: Model, inputs: tuple[Tensor, ...]) -> Tensor:
    """A loss of the kind that a family learns by, with all answers 0."""
    hidden = run_body(model, inputs)  # (B, T, C)
    if isinstance(model, ViT):
        logits = model.head(hidden[:, 0])
        return cross_entropy(logits, torch.zeros(len(logits), dtype=torch.long, device=logits.device))
    if isinstance(model, BERT):
        hidden = model.guess(hidden[:, : max(1, int(CHOSEN * hidden.shape[1]))])
    answers = torch.zeros(hidden.shape[:-1], dtype=torch.long, device=hidden.device)
    return next_token_loss(hidden, model.head.weight, answers, model.head.bias)


def _now(arithmetic: Arithmetic) -> float:
    if arithmetic.device.type == "cuda":
        torch.cuda.synchronize(arithmetic.device)
    return time.perf_counter()
