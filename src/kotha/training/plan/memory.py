"""Predict the memory that a training run will need, by part.

Weights and optimizer state are in memory throughout a step; the other parts are not. The prediction is therefore the
largest of the totals at five moments: the end of the forward pass with the loss's chunk of logits, the start and the
end of the backward pass, the optimizer step, and an evaluation. Memory means the process's peak resident memory (CPU)
or torch's peak allocation (GPU). benchmarks/memory_plan.py compares predictions with real steps.

The memory of a model's body is computed by rules, without creating tensors. In eager mode, autograd keeps the tensors
that the backward pass needs: inputs to products, norms and activations, the tensors of the attention kernel, and
dropout masks. Under autocast, every product keeps its own copy of its input, and each weight is copied once. A backward
pass, or a pass without gradients, has its peak at one of a few moments; each is computed in one line below, and the
largest is used. A compiled graph on a GPU keeps less; its rules were derived from torch's partitioner. Tests compare
the rules with all kinds of models on fake tensors. The total width of the heads is assumed to be about the model's
width.
"""

from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

from torch import nn

from kotha.errors import ConfigError
from kotha.i18n.numbers import Size
from kotha.model.config import BERTConfig, ClassifierConfig, ModelConfig, Seq2SeqConfig, TextConfig, ViTConfig
from kotha.model.family import build
from kotha.model.lora import LowRankLinear, add_low_rank, fully_trained_prefixes
from kotha.model.loss import CHUNK_LOGITS, GPU_CHUNK_LOGITS
from kotha.training.config import Optimizer, TrainConfig
from kotha.training.device import DTYPES, Arithmetic
from kotha.training.optim import split_parameters
from kotha.training.tasks.masked_words import CHOSEN
from kotha.training.tasks.task import POSITIONS_AT_ONCE

# Positions per forward pass on a CPU if no micro-batch size is set; more would not be faster.
CPU_POSITIONS = 8192

_FLOAT32 = 4
_INDEX = 8  # bytes of a token id or a position
# Memory of the interpreter with torch, its optimizers and thread pools, but no model.
_BASE = 370 << 20
_FRAGMENTATION = 0.06  # share of memory that is lost to fragmentation on a CPU
_CHUNKS = 2  # chunks in memory at once in the loss: the logits, and their exponentials while they are summed
# Copies of a matrix in memory at once in Muon's iteration; on a CPU, AdamW copies the tensor that it updates.
_MUON_COPIES = 5


@dataclass(frozen=True)
class MemoryConditions:
    """The conditions of a training run that determine its memory."""

    context_length: int
    precision: str
    device: str  # cpu or cuda
    compiled: bool
    ranks: int = 1
    sharded: bool = False

    @property
    def width(self) -> int:
        """The size in bytes of a number in a matrix product."""
        return DTYPES[self.precision].itemsize


@dataclass(frozen=True)
class MemoryPlan:
    """Bytes by part, each at its own peak, and the total at the peak moment."""

    weights: int  # the parameters, in float32
    gradients: int  # gradients of the trainable parameters; with data parallelism, also the communication buckets
    optimizer: int  # optimizer state
    average: int  # the running average of the weights
    activations: int  # tensors kept for the backward pass, for one micro-batch
    loss: int  # the chunk of logits, and the head's gradient as computed by the loss
    base: int  # the interpreter and its libraries, if the device is a CPU
    total: int  # at the peak moment
    moment: str  # the peak moment: forward, backward, step or validation


def plan_memory(model: ModelConfig, training: TrainConfig, micro_batch_size: int, how: MemoryConditions) -> MemoryPlan:
    """Predict the memory that one process needs to train a model with a micro-batch size.

    >>> from kotha.model.presets import preset
    >>> plan = plan_memory(preset("mini"), TrainConfig(), 2, MemoryConditions(4, "float32", "cpu", compiled=False))
    >>> plan.weights, plan.optimizer > 2 * plan.weights
    (3632, True)
    """
    sizes = _sizes(model, training.optimizer, training.lora)
    shares = how.ranks if how.sharded else 1
    weights, states, trainable = (-(-each // shares) for each in (sizes.weights, sizes.optimizer, sizes.trainable))
    gradients = trainable * (2 if how.ranks > 1 and not how.sharded else 1)
    average = trainable if training.ema_decay is not None else 0
    length, on_cpu = positions(model, how.context_length), how.device == "cpu"
    evaluated = max(1, POSITIONS_AT_ONCE[how.device] // length)  # sequences of a validation batch
    body = Body(model, micro_batch_size, how)
    kept = body.kept() + micro_batch_size * length * sizes.low_rank * how.width
    loss, loss_gradients, chunk = _loss(model, sizes.vocabulary, micro_batch_size, how)
    hidden = _FLOAT32 * evaluated * length * model.d_model
    reading = hidden + _loss(model, sizes.vocabulary, evaluated, how)[2] + how.width * sizes.vocabulary * model.d_model
    depth = max(1, model.n_layers)
    # Weights gathered by FSDP at the same time: those outside the blocks, the current block and the next.
    gathered = sizes.weights - sizes.blocks + 2 * sizes.blocks // depth if shares > 1 else 0
    table = _FLOAT32 * model.vocab_size * model.d_model if isinstance(model, TextConfig) else 0
    step = _FLOAT32 * max(sizes.largest_moved if on_cpu else 0, _MUON_COPIES * sizes.largest_matrix)
    accumulated = gradients if training.batch_size > micro_batch_size * how.ranks else 0
    first, last = accumulated + kept + loss_gradients, gradients + kept // depth + table  # of the backward pass
    moments = {
        "forward": accumulated + kept + loss + chunk,
        "backward": max(first, last) + body.working(),
        "step": gradients + -(-step // shares),
        "validation": gradients + average + max(Body(model, evaluated, how).measuring(), reading) + sizes.merged,
    }
    moment = max(moments, key=lambda name: moments[name])
    base, total = 0, weights + states + average + gathered + moments[moment]
    if on_cpu:
        base, total = _BASE, _BASE + total + int(_FRAGMENTATION * total)
    return MemoryPlan(weights, gradients, states, average, kept, loss + chunk, base, total, moment)


def _loss(model: ModelConfig, vocabulary: int, batch_size: int, how: MemoryConditions) -> tuple[int, int, int]:
    """Return the peak bytes of the loss: its gradients as computed and as scaled, and a chunk of logits."""
    rows, width = batch_size, how.width
    if not isinstance(model, ViTConfig | ClassifierConfig):
        rows = int(batch_size * how.context_length * (CHOSEN if isinstance(model, BERTConfig) else 1.0))
    head, read = vocabulary * model.d_model, rows * model.d_model  # numbers in the head and in its input
    largest = GPU_CHUNK_LOGITS if how.device == "cuda" else CHUNK_LOGITS
    chunk = _CHUNKS * _FLOAT32 * min(rows * vocabulary, max(largest, vocabulary))
    copied, summed = (width, _FLOAT32) if width < _FLOAT32 else (0, 0)
    fullest = copied * (read + 2 * head) + width * read + _FLOAT32 * head
    return fullest, 2 * width * (read + head) + summed * head, chunk


def largest_micro_batch(model: ModelConfig, training: TrainConfig, available_bytes: int, how: MemoryConditions) -> int:
    """Return the requested micro-batch size, or one that fits: a process's whole batch or a power of two."""
    if training.micro_batch_size is not None:
        return training.micro_batch_size
    size = training.batch_size // how.ranks
    if how.device == "cpu":
        size = min(size, CPU_POSITIONS // positions(model, how.context_length))
    while size > 1 and plan_memory(model, training, size, how).total > available_bytes:
        size = 1 << (size - 1).bit_length() - 1  # the next smaller power of two
    return max(1, size)


def check_memory(model: ModelConfig, training: TrainConfig, room: int, how: MemoryConditions) -> None:
    """Raise an error if the memory is not enough even for one sequence at a time."""
    needed = plan_memory(model, training, 1, how).total
    if needed > room:
        raise ConfigError(
            "training this model on one sequence at a time needs {needed} of memory, but only {room} is "
            "available; choose smaller sizes: d_model, d_ff, n_layers, vocab_size or context_length",
            needed=Size(needed),
            room=Size(room),
        )


def planned_conditions(
    model: ModelConfig, training: TrainConfig, arithmetic: Arithmetic, ranks: int = 1, sharded: bool = False
) -> MemoryConditions:
    """Return the conditions of a training run with this arithmetic."""
    device = arithmetic.device.type
    compiled = training.compile == "on" or (training.compile == "auto" and device == "cuda")
    return MemoryConditions(planned_context(model, training), arithmetic.precision, device, compiled, ranks, sharded)


def planned_context(model: ModelConfig, training: TrainConfig) -> int:
    """Return the number of tokens per sequence; for images, the number of patches plus the class token."""
    if not isinstance(model, TextConfig):
        return positions(model, 0)
    wanted = training.context_length or model.context_length
    if wanted > model.context_length:
        raise ConfigError(
            "context_length={wanted} is greater than the model's {longest}; use {longest} or less",
            wanted=wanted,
            longest=model.context_length,
        )
    return wanted


class _Sizes(NamedTuple):
    """Sizes, in bytes unless stated otherwise, that depend on a model and its optimizer but not on the batch."""

    weights: int
    trainable: int  # the trainable weights
    optimizer: int
    blocks: int
    merged: int  # weights to which LoRA applies, for the merged model that is saved
    low_rank: int  # numbers per position between LoRA's two matrices
    vocabulary: int  # rows of the head
    largest_moved: int  # numbers in the largest tensor of AdamW
    largest_matrix: int  # numbers in the largest matrix of Muon


@lru_cache(maxsize=64)
def _sizes(model: ModelConfig, optimizer: Optimizer, lora: int | None) -> _Sizes:
    try:
        built = build(model, "meta")
    except (RuntimeError, OverflowError, TypeError) as error:  # raised by torch for sizes out of range
        raise ConfigError(
            "the matrices for d_model={d_model} and d_ff={d_ff} are too large for any machine; choose smaller sizes",
            d_model=model.d_model,
            d_ff=model.d_ff,
        ) from error
    if lora is not None:
        add_low_rank(built, lora, alpha=1.0, whole=fully_trained_prefixes(model.family))
    muon, *adamw = split_parameters(built, use_muon=optimizer == "muon")
    moved = [each.numel() for group in adamw for _, each in group]
    matrices = [each.numel() for _, each in muon]
    adapted = [module for module in built.modules() if isinstance(module, LowRankLinear)]

    def numbers(module: nn.Module) -> int:
        return sum(each.numel() for each in module.parameters())

    blocks = [module for name, module in built.named_modules() if name.endswith("blocks")]
    return _Sizes(
        weights=_FLOAT32 * numbers(built),
        trainable=_FLOAT32 * (sum(moved) + sum(matrices)),
        optimizer=_FLOAT32 * (2 * sum(moved) + len(moved) + sum(matrices)),  # AdamW has a step count per tensor
        blocks=_FLOAT32 * sum(map(numbers, blocks)),
        merged=_FLOAT32 * sum(module.weight.numel() for module in adapted),
        low_rank=len(adapted) * (lora or 0),
        vocabulary=model.n_classes if isinstance(model, ViTConfig) else built.head.out_features,
        largest_moved=max(moved),
        largest_matrix=max(matrices, default=0),
    )


# -- the body of a model -----------------------------------------------------------------------------------------------


def positions(config: ModelConfig, context_length: int) -> int:
    """Return the number of positions in one example: tokens, or patches and the class token."""
    return 1 + (config.image_size // config.patch_size) ** 2 if isinstance(config, ViTConfig) else context_length


def compiled_block(config: ModelConfig, width: int) -> int:
    """Return the bytes kept per position by a compiled block: inputs to products and to the attention kernel.

    The rest is recomputed. The residual stream is in float32; ``width`` is the size of a number in a product.
    """
    c, (q, kv) = config.d_model, _heads(config)
    inner = 3 if config.activation == "swiglu" else 2  # before and after the activation, and the gate
    products = 2 * c + q + 2 * kv + q + inner * config.d_ff  # outputs of norms, queries, keys, values, attention output
    products += q + kv if config.qk_norm else 0  # queries and keys before their norm
    products += c if config.norm == "rms" else 0  # the projected attention output
    return width * products + _FLOAT32 * (2 * c + config.n_heads)  # and the log-sum-exp of each softmax


def eager_attention(config: ModelConfig, length: int, width: int, cross: bool = False) -> int:
    """Return the bytes kept per position by attention; ``width`` is the number of bytes per number in a product.

    A CPU has no kernel for attention with dropout. The explicit computation is in float32, repeats the keys per query
    head, and keeps three tensors: the attention weights before and after dropout, and the mask.
    """
    q, kv = _heads(config)
    read = _product_input(config, 3, width)
    if config.qk_norm:  # queries and keys before their norm
        read += _FLOAT32 * (config.n_heads + config.n_kv_heads) * (2 * config.d_head + 1)
    if config.attention_dropout:
        return read + 3 * _FLOAT32 * (q + config.n_heads * length) + width * q
    # The kernel's output is copied to a contiguous layout if its queries had another layout.
    relaid = config.qk_norm or (_rotates(config) and not cross)
    # Queries, keys, values, the output, and the log-sum-exp of each softmax.
    return read + width * (2 * q + 2 * kv + (q if relaid else 0)) + _FLOAT32 * config.n_heads


def eager_feedforward(config: ModelConfig, width: int) -> int:
    """Return the bytes kept per position by a feed-forward layer."""
    # ReLU needs only its output, which is also the input to the next product; a gate needs all four tensors.
    inner = {"relu": 1, "swiglu": 4}.get(config.activation, 2)
    return _product_input(config, 2 if config.activation == "swiglu" else 1, width) + inner * width * config.d_ff


def eager_norm(config: ModelConfig) -> int:
    """Return the bytes kept per position by a norm: input, mean and deviation, or RMS and scaled input."""
    return _FLOAT32 * (config.d_model + 2 if config.norm == "layer" else 2 * config.d_model + 1)


def _product_input(config: ModelConfig, readers: int, width: int) -> int:
    """Return the bytes kept for the input to products; under autocast each product keeps its own copy."""
    return config.d_model * (readers * width if width < _FLOAT32 else _FLOAT32)


def _heads(config: ModelConfig) -> tuple[int, int]:
    """Return the total width of the query heads, and of the key heads."""
    return config.n_heads * config.d_head, config.n_kv_heads * config.d_head


def _rotates(config: ModelConfig) -> bool:
    return isinstance(config, TextConfig) and config.positions == "rotary"


class Body:
    """The memory of a model's body for a batch, without weights and their gradients."""

    def __init__(self, model: ModelConfig, batch_size: int, how: MemoryConditions) -> None:
        on_cpu, length, width = how.device == "cpu", positions(model, how.context_length), how.width
        # On a GPU attention applies dropout inside its kernel, and other dropout layers keep one byte per number.
        config = model if on_cpu else model.replace(dropout=0.0, attention_dropout=0.0)
        self._config, self._length, self._width, self._compiled = config, length, width, how.compiled and not on_cpu
        self._n, self._patches = batch_size * length, batch_size * (length - 1)
        self._crosses = config.n_decoder_layers if isinstance(config, Seq2SeqConfig) else 0
        self._layers, self._stacks = config.n_layers + self._crosses, 2 if self._crosses else 1
        self._dropouts = 2 * self._layers + self._crosses + self._stacks if model.dropout and not on_cpu else 0
        c, (q, kv) = config.d_model, _heads(config)
        self._inner = width * config.d_ff
        self._vector, self._norm = _FLOAT32 * c, eager_norm(config)  # per position
        self._noise = width * c if config.dropout else 0  # a dropout mask on a sublayer's output
        self._gated = 3 if config.activation == "swiglu" else 2
        self._pixels = config.n_channels * config.patch_size**2 if isinstance(config, ViTConfig) else 0
        # Cosines and sines of the rotary positions.
        self._angles = _FLOAT32 * length * config.d_head if _rotates(config) else 0
        # Under autocast: copies of weights and biases in the type used for products.
        self._copied = copied = width if width < _FLOAT32 else 0
        self._matrix_copy, self._output_copy = copied * c * config.d_ff, copied * c * q
        self._attention_copies = 2 * copied * c * (q + kv)
        self._feedforward_copies = self._gated * self._matrix_copy

    def kept(self) -> int:
        """Return the bytes of activations that the forward pass keeps for the backward pass."""
        found = self._kept_compiled() if self._compiled else self._kept_eager()
        return found + self._dropouts * self._n * self._config.d_model

    def _kept_compiled(self) -> int:
        config, n, w, (q, kv) = self._config, self._n, self._width, _heads(self._config)
        cross = self._vector + w * (config.d_model + 2 * (q + kv)) + _FLOAT32 * config.n_heads
        block = compiled_block(config, w) * n + self._attention_copies + self._feedforward_copies
        return self._layers * block + n * (self._crosses * cross + self._vector)  # the input to the last norm

    def _kept_eager(self) -> int:
        config, n, w, copied = self._config, self._n, self._width, self._copied
        around = self._norm + self._noise
        attention, cross = (eager_attention(config, self._length, w, each) + around for each in (False, True))
        block = attention + eager_feedforward(config, w) + around
        found = n * (self._layers * block + self._crosses * cross)
        head_norms = 2 * copied * config.d_head if config.qk_norm else 0
        angles = 2 * self._angles * copied // _FLOAT32  # one copy for queries and one for keys of a layer
        found += (self._layers + self._crosses) * (self._attention_copies + head_norms)
        found += self._layers * (self._feedforward_copies + angles)
        each = (self._vector if config.dropout else 0) + (self._norm if config.final_norm else 0)
        # The last hidden vectors. Those of the encoder are kept too, but under autocast only as copies.
        found += n * (self._stacks * each + self._vector * (1 if copied else self._stacks))
        found += 0 if copied else self._stacks * self._angles
        if isinstance(config, TextConfig) and config.positions == "learned":
            found += self._stacks * _INDEX * self._length
        if isinstance(config, BERTConfig):
            found += n * (_INDEX + self._norm)  # segments, and the norm of the embeddings
        return found + self._patches * w * self._pixels

    def working(self) -> int:
        """Return the peak bytes of the last block's backward pass, minus those freed by then."""
        config, n, w, vector, inner = self._config, self._n, self._width, self._vector, self._inner
        c, q, narrow = config.d_model, _heads(config)[0], bool(self._copied)
        # Norms whose backward pass comes before that of the last feed-forward layer.
        norms = int(config.final_norm) + int(config.norm_order == "post")
        # The gradients of the body's output and of the residual stream, minus the tensors that the norms had kept.
        arriving = vector * (2 if norms else 1) - norms * self._norm
        cast = w * c if narrow and not config.dropout else 0
        read = 0 if config.activation == "relu" else inner  # input to the last product; ReLU still needs it
        passed = arriving - self._noise - read
        moments = [
            n * _FLOAT32 * (5 * c - 1 if config.norm == "rms" else 2 * c) if norms else 0,  # the last norm
            n * (arriving + cast + inner) + w * c * config.d_ff,  # the last matrix
            n * (passed + inner) + vector * config.d_ff if narrow else 0,  # … its gradient in float32
            n * (passed + self._gated * inner) - self._matrix_copy,  # the activation
        ]
        if config.attention_dropout:  # gradients of head outputs, values and attention weights
            heads = _FLOAT32 * (2 * q + config.n_heads * self._length) - w * q
            gone = (norms + 1) * self._norm + eager_feedforward(config, w) + 2 * self._noise
            moments.append(n * (2 * vector + heads - gone) - self._feedforward_copies - self._output_copy)
        if narrow and config.norm_order == "post":  # in the forward pass: intermediate sums, which are not kept
            dropped = 1 if config.dropout and not isinstance(config, BERTConfig) else 0
            moments.append(n * vector * (2 + dropped - int(config.final_norm) + self._stacks))
        return max(moments)

    def measuring(self) -> int:
        """Return the peak bytes of a pass without gradients; the peak is in the last block."""
        config, n, w, copied, vector = self._config, self._n, self._width, self._copied, self._vector
        c, (q, kv), inner, later = config.d_model, _heads(config), self._inner, self._feedforward_copies
        first = vector if config.norm_order == "pre" else 0  # a norm before each sublayer
        entered = (1 + self._stacks) * vector + first  # embeddings, the block's input, the encoder's output
        attending = entered + (vector if self._crosses else 0)  # cross-attention follows self-attention
        thinking = entered + vector
        normed = 3 * vector if config.norm == "rms" else 2 * (vector + _FLOAT32)
        moments = [
            n * (thinking - 2 * first + normed),
            n * (attending + w * (2 * q + 2 * kv + c + (q if config.qk_norm or self._angles else 0))) - later,
            n * (thinking + self._gated * inner) - self._matrix_copy,  # the activation
            n * (thinking + inner + w * c),  # the last matrix
        ]
        if config.qk_norm:
            wide = _FLOAT32 * ((3 if copied else 2) * q + config.n_heads)
            moments.append(n * (attending + w * (q + 2 * kv) + wide) - later - self._output_copy)
        copies = (self._layers + self._crosses) * self._attention_copies + self._layers * later
        if not isinstance(config, ViTConfig):
            return copies + self._angles + max(moments)
        # Images as patches, their copies in the type used for products, and their projection.
        projected = self._patches * w * c
        cutting = self._patches * (_FLOAT32 + copied) * self._pixels + projected
        return copied * c * self._pixels + max(copies + projected + max(moments), cutting)
