"""How long a step will take on this machine, from a few small ones.

A small model is timed whole. Of a large one, a model of one layer and not too many words is timed on some tokens and on
a few, and its layer alone: this tells what a micro-batch costs whatever its size (gradients of whole tables), what a
token adds and what a layer adds; its optimizer is timed on a slice. Only sensible on the machine that will train, while
it is as busy as it will be then. Nothing is compiled for it, so a GPU will do better than this says.
"""

from statistics import median
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from kotha.errors import ConfigError
from kotha.i18n.message import Plural
from kotha.i18n.numbers import Size
from kotha.model.bert import BERT
from kotha.model.config import ModelConfig, Seq2SeqConfig, TextConfig, ViTConfig
from kotha.model.family import Model, Unfilled, build
from kotha.model.loss import chunked_loss, next_token_loss
from kotha.model.presets import preset
from kotha.model.vit import ViT
from kotha.training.config import TrainConfig, recipe
from kotha.training.device import Arithmetic, available_memory, choose_arithmetic, now, peak_flops_per_second, quickest
from kotha.training.optim import Optimizers, orthogonalize, split_parameters
from kotha.training.plan.activations import example_inputs, positions
from kotha.training.plan.flops import count_work
from kotha.training.tasks.masked_words import CHOSEN

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
    model: ModelConfig, training: TrainConfig, micro_batch_size: int, context_length: int, arithmetic: Arithmetic
) -> float:
    """Seconds of one update: its micro-batches forward and back, and the optimizer."""
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
        layers = Plural("one layer", "its {n} layers", n=config.n_layers)
        raise ConfigError(
            "weights and gradients of {layers} take {needed}, and {room} are free here, so no step can be "
            "timed; choose smaller sizes, a GPU by name, or a plan without a time",
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
    part, gradient, mean, square = (torch.ones(_SLICE, device=arithmetic.device) for _ in range(4))
    each = quickest(lambda: adamw(part, gradient, mean, square), arithmetic.device, 0.0) / part.numel()
    product = quickest(lambda: orthogonalize(part), arithmetic.device, 0.0) / _products(part)
    moved = sum(parameter.numel() for group in others for _, parameter in group)
    return moved * each + sum(_products(parameter) for _, parameter in orthogonal) * product


def adamw(
    weights: Tensor, gradient: Tensor, mean: Tensor, square: Tensor, *, step: int = 1, rate: float = 1e-3
) -> None:
    """A step of AdamW in place, with torch's default settings and in the order of its lines.

    To be timed: torch's own optimizer would load torch's compiler for it, two seconds of work.
    """
    beta1, beta2, decay, eps = 0.9, 0.999, 0.01, 1e-8
    weights.mul_(1 - rate * decay)
    mean.lerp_(gradient, 1 - beta1)
    square.mul_(beta2).addcmul_(gradient, gradient, value=1 - beta2)
    root = (square.sqrt() / (1 - beta2**step) ** 0.5).add_(eps)
    weights.addcdiv_(mean, root, value=-rate / (1 - beta1**step))


def _products(matrix: Tensor) -> float:
    """What orthogonalizing a matrix takes, up to a factor: its smaller side once squared, once cubed."""
    small, large = sorted(matrix.shape)
    return float(2 * small * small * large + small**3)


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
