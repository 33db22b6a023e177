"""How much memory a training needs, part by part, before it starts.

Weights and what the optimizer remembers are always there, the rest is not, so the total is the fullest of five moments:
the end of the forward pass with the loss's chunk of logits, the start of the backward pass, its end, the optimizer's
step, and a look at the validation set. On a CPU it is what the process has resident at most (``ru_maxrss``), on a GPU
what torch has allocated at most (``max_memory_allocated``); benchmarks/memory_plan.py compares with real steps.

What a model's body holds goes by rule, so that a plan makes no tensor. In eager mode autograd keeps what its formulas
need on the way back: what products, norms and activations have read, what attention's kernel wants back, and the noise
of a dropout. Under autocast every product keeps a copy of its own of what it read, and each weight is copied once. A
backward pass and a pass without gradients are fullest at one of a few moments: each is a line, and the fullest counts.
A compiled graph on a GPU keeps less; those rules were read off torch's partitioner. The tests run every kind of model
on fake tensors beside these rules, which are for models whose heads together are about as wide as the model.
"""

from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

from torch import nn

from kotha.errors import ConfigError
from kotha.i18n.numbers import Size
from kotha.model.config import BERTConfig, ClassifierConfig, ModelConfig, Seq2SeqConfig, TextConfig, ViTConfig
from kotha.model.family import build
from kotha.model.lora import LowRankLinear, add_low_rank, learned_whole
from kotha.model.loss import CHUNK_LOGITS, GPU_CHUNK_LOGITS
from kotha.training.config import Optimizer, TrainConfig
from kotha.training.device import DTYPES, Arithmetic
from kotha.training.optim import split_parameters
from kotha.training.tasks.masked_words import CHOSEN
from kotha.training.tasks.task import POSITIONS_AT_ONCE

# Positions that go through a model at once on a CPU when no micro-batch is given: more would not be faster there.
CPU_POSITIONS = 8192

_FLOAT32 = 4
_INDEX = 8  # bytes of a token's or a position's number
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
    precision: str
    device: str  # cpu or cuda
    compiled: bool
    ranks: int = 1
    sharded: bool = False

    @property
    def width(self) -> int:
        """Bytes of a product's number."""
        return DTYPES[self.precision].itemsize


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
    places, on_cpu = positions(model, how.context_length), how.device == "cpu"
    seen = max(1, POSITIONS_AT_ONCE[how.device] // places)  # sequences of a validation batch
    body = Body(model, micro_batch_size, how)
    kept = body.kept() + micro_batch_size * places * sizes.beside * how.width
    loss, loss_gradients, chunk = _loss(model, sizes.vocabulary, micro_batch_size, how)
    hidden = _FLOAT32 * seen * places * model.d_model
    reading = hidden + _loss(model, sizes.vocabulary, seen, how)[2] + how.width * sizes.vocabulary * model.d_model
    depth = max(1, model.n_layers)
    # With FSDP, gathered when their turn comes: what stands outside the blocks, this block and the next.
    gathered = sizes.weights - sizes.blocks + 2 * sizes.blocks // depth if shares > 1 else 0
    table = _FLOAT32 * model.vocab_size * model.d_model if isinstance(model, TextConfig) else 0
    step = _FLOAT32 * max(sizes.largest_moved if on_cpu else 0, _MUON_COPIES * sizes.largest_matrix)
    accumulated = gradients if training.batch_size > micro_batch_size * how.ranks else 0
    first, last = accumulated + kept + loss_gradients, gradients + kept // depth + table  # of the backward pass
    moments = {
        "forward": accumulated + kept + loss + chunk,
        "backward": max(first, last) + body.working(),
        "step": gradients + -(-step // shares),
        "validation": gradients + average + max(Body(model, seen, how).measuring(), reading) + sizes.merged,
    }
    moment = max(moments, key=lambda name: moments[name])
    base, total = 0, weights + states + average + gathered + moments[moment]
    if on_cpu:
        base, total = _BASE, _BASE + total + int(_SCATTERED * total)
    return MemoryPlan(weights, gradients, states, average, kept, loss + chunk, base, total, moment)


def _loss(model: ModelConfig, vocabulary: int, batch_size: int, how: Conditions) -> tuple[int, int, int]:
    """The loss at its fullest with its gradients so far, those gradients as made and scaled, and a chunk of logits."""
    rows, width = batch_size, how.width
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
            "training this model on one sequence at a time needs {needed} of memory, but only {room} is "
            "available; choose smaller sizes: d_model, d_ff, n_layers, vocab_size or context_length",
            needed=Size(needed),
            room=Size(room),
        )


def how_planned(
    model: ModelConfig, training: TrainConfig, arithmetic: Arithmetic, ranks: int = 1, sharded: bool = False
) -> Conditions:
    """How a training with this arithmetic will run."""
    device = arithmetic.device.type
    compiled = training.compile == "on" or (training.compile == "auto" and device == "cuda")
    return Conditions(planned_context(model, training), arithmetic.precision, device, compiled, ranks, sharded)


def planned_context(model: ModelConfig, training: TrainConfig) -> int:
    """Tokens in a sequence as a training asks for it; for images, their patches and the class token."""
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
            "d_model={d_model} and d_ff={d_ff} give matrices too large for any machine; choose smaller sizes",
            d_model=model.d_model,
            d_ff=model.d_ff,
        ) from error
    if lora is not None:
        add_low_rank(built, lora, alpha=1.0, whole=learned_whole(model.family))
    muon, *adamw = split_parameters(built, use_muon=optimizer == "muon")
    moved = [each.numel() for group in adamw for _, each in group]
    matrices = [each.numel() for _, each in muon]
    adapted = [module for module in built.modules() if isinstance(module, LowRankLinear)]

    def numbers(module: nn.Module) -> int:
        return sum(each.numel() for each in module.parameters())

    blocks = [module for name, module in built.named_modules() if name.endswith("blocks")]
    return _Sizes(
        weights=_FLOAT32 * numbers(built),
        learning=_FLOAT32 * (sum(moved) + sum(matrices)),
        optimizer=_FLOAT32 * (2 * sum(moved) + len(moved) + sum(matrices)),  # AdamW counts steps of each tensor
        blocks=_FLOAT32 * sum(map(numbers, blocks)),
        merged=_FLOAT32 * sum(module.weight.numel() for module in adapted),
        beside=len(adapted) * (lora or 0),
        vocabulary=model.n_classes if isinstance(model, ViTConfig) else built.head.out_features,
        largest_moved=max(moved),
        largest_matrix=max(matrices, default=0),
    )


# -- what a body holds -------------------------------------------------------------------------------------------------


def positions(config: ModelConfig, context_length: int) -> int:
    """Places in one example: tokens, or patches and the class token."""
    return 1 + (config.image_size // config.patch_size) ** 2 if isinstance(config, ViTConfig) else context_length


def compiled_block(config: ModelConfig, width: int) -> int:
    """Bytes that a compiled block keeps for one position: inputs of products, and what attention's kernel wants back.

    The rest is computed again. The sum around the parts stays in float32; ``width`` is the bytes of a product's number.
    """
    c, (q, kv) = config.d_model, _heads(config)
    inner = 3 if config.activation == "swiglu" else 2  # before and after the bend, and the gate
    products = 2 * c + q + 2 * kv + q + inner * config.d_ff  # norms' outputs, queries, keys, values, what they find
    products += q + kv if config.qk_norm else 0  # queries and keys before their norm
    products += c if config.norm == "rms" else 0  # attention's output, projected
    return width * products + _FLOAT32 * (2 * c + config.n_heads)  # and the logarithm of each softmax's sum


def eager_attention(config: ModelConfig, length: int, width: int, cross: bool = False) -> int:
    """Bytes that an attention keeps for one position; ``width`` is the bytes of a product's number.

    With dropout the CPU has no kernel: the textbook's line by line, in float32, where keys are repeated for each query
    head, and the weights are there three times: as they were, the noise, and what it left.
    """
    q, kv = _heads(config)
    read = _read(config, 3, width)
    if config.qk_norm:  # queries and keys before their norm
        read += _FLOAT32 * (config.n_heads + config.n_kv_heads) * (2 * config.d_head + 1)
    if config.attention_dropout:
        return read + 3 * _FLOAT32 * (q + config.n_heads * length) + width * q
    # The kernel's output, put back in the order of positions where it was given queries in another.
    relaid = config.qk_norm or (_turns(config) and not cross)
    # Queries, keys, values, the output, and the logarithm of each softmax's sum.
    return read + width * (2 * q + 2 * kv + (q if relaid else 0)) + _FLOAT32 * config.n_heads


def eager_feedforward(config: ModelConfig, width: int) -> int:
    """Bytes that a feed-forward keeps for one position."""
    # ReLU needs only what it gave, which is what the next product reads; a gate needs all four.
    inner = {"relu": 1, "swiglu": 4}.get(config.activation, 2)
    return _read(config, 2 if config.activation == "swiglu" else 1, width) + inner * width * config.d_ff


def eager_norm(config: ModelConfig) -> int:
    """Bytes that a norm keeps for one position: what it read; its mean and deviation, or root and what it scaled."""
    return _FLOAT32 * (config.d_model + 2 if config.norm == "layer" else 2 * config.d_model + 1)


def _read(config: ModelConfig, readers: int, width: int) -> int:
    """What products read: under autocast each its own copy."""
    return config.d_model * (readers * width if width < _FLOAT32 else _FLOAT32)


def _heads(config: ModelConfig) -> tuple[int, int]:
    """How wide all queries are together, and all keys."""
    return config.n_heads * config.d_head, config.n_kv_heads * config.d_head


def _turns(config: ModelConfig) -> bool:
    return isinstance(config, TextConfig) and config.positions == "rotary"


class Body:
    """The bytes that a model's body and a batch going through it hold, beside weights and their gradients."""

    def __init__(self, model: ModelConfig, batch_size: int, how: Conditions) -> None:
        on_cpu, length, width = how.device == "cpu", positions(model, how.context_length), how.width
        # A GPU's attention drops inside its kernel, and a dropout keeps a byte for each number.
        config = model if on_cpu else model.replace(dropout=0.0, attention_dropout=0.0)
        self._config, self._length, self._width, self._compiled = config, length, width, how.compiled and not on_cpu
        self._n, self._patches = batch_size * length, batch_size * (length - 1)
        self._crosses = config.n_decoder_layers if isinstance(config, Seq2SeqConfig) else 0
        self._layers, self._stacks = config.n_layers + self._crosses, 2 if self._crosses else 1
        self._dropouts = 2 * self._layers + self._crosses + self._stacks if model.dropout and not on_cpu else 0
        c, (q, kv) = config.d_model, _heads(config)
        self._inner = width * config.d_ff
        self._vector, self._norm = _FLOAT32 * c, eager_norm(config)  # of one position
        self._noise = width * c if config.dropout else 0  # that a dropout keeps of what a part adds
        self._gated = 3 if config.activation == "swiglu" else 2
        self._pixels = config.n_channels * config.patch_size**2 if isinstance(config, ViTConfig) else 0
        # Cosines and sines of rotary positions.
        self._angles = _FLOAT32 * length * config.d_head if _turns(config) else 0
        # Under autocast: weights and biases in the type of the products.
        self._copied = copied = width if width < _FLOAT32 else 0
        self._matrix_copy, self._output_copy = copied * c * config.d_ff, copied * c * q
        self._attention_copies = 2 * copied * c * (q + kv)
        self._feedforward_copies = self._gated * self._matrix_copy

    def kept(self) -> int:
        """Bytes of activations: what the forward pass leaves for the backward pass."""
        found = self._kept_compiled() if self._compiled else self._kept_eager()
        return found + self._dropouts * self._n * self._config.d_model

    def _kept_compiled(self) -> int:
        config, n, w, (q, kv) = self._config, self._n, self._width, _heads(self._config)
        cross = self._vector + w * (config.d_model + 2 * (q + kv)) + _FLOAT32 * config.n_heads
        block = compiled_block(config, w) * n + self._attention_copies + self._feedforward_copies
        return self._layers * block + n * (self._crosses * cross + self._vector)  # which the last norm reads

    def _kept_eager(self) -> int:
        config, n, w, copied = self._config, self._n, self._width, self._copied
        around = self._norm + self._noise
        attention, cross = (eager_attention(config, self._length, w, each) + around for each in (False, True))
        block = attention + eager_feedforward(config, w) + around
        found = n * (self._layers * block + self._crosses * cross)
        head_norms = 2 * copied * config.d_head if config.qk_norm else 0
        angles = 2 * self._angles * copied // _FLOAT32  # a layer's queries and keys have each their own
        found += (self._layers + self._crosses) * (self._attention_copies + head_norms)
        found += self._layers * (self._feedforward_copies + angles)
        each = (self._vector if config.dropout else 0) + (self._norm if config.final_norm else 0)
        # The last vectors; the encoder's are read in place, but under autocast only copies of them are.
        found += n * (self._stacks * each + self._vector * (1 if copied else self._stacks))
        found += 0 if copied else self._stacks * self._angles
        if isinstance(config, TextConfig) and config.positions == "learned":
            found += self._stacks * _INDEX * self._length
        if isinstance(config, BERTConfig):
            found += n * (_INDEX + self._norm)  # segments, and the embeddings' own norm
        return found + self._patches * w * self._pixels

    def working(self) -> int:
        """Bytes at the fullest moment of the last block's backward pass, less what has been let go by then."""
        config, n, w, vector, inner = self._config, self._n, self._width, self._vector, self._inner
        c, q, narrow = config.d_model, _heads(config)[0], bool(self._copied)
        norms = int(config.final_norm) + int(config.norm_order == "post")  # that come before the last feed-forward
        # The gradients of the body's output and of the sum around the parts, less what the norms on their way had kept.
        arriving = vector * (2 if norms else 1) - norms * self._norm
        cast = w * c if narrow and not config.dropout else 0
        read = 0 if config.activation == "relu" else inner  # by the last product; ReLU needs it still
        passed = arriving - self._noise - read
        moments = [
            n * _FLOAT32 * (5 * c - 1 if config.norm == "rms" else 2 * c) if norms else 0,  # the last norm
            n * (arriving + cast + inner) + w * c * config.d_ff,  # the last matrix
            n * (passed + inner) + vector * config.d_ff if narrow else 0,  # … its gradient in float32
            n * (passed + self._gated * inner) - self._matrix_copy,  # the activation
        ]
        if config.attention_dropout:  # gradients of the heads' outputs, of values, and of the weights
            heads = _FLOAT32 * (2 * q + config.n_heads * self._length) - w * q
            gone = (norms + 1) * self._norm + eager_feedforward(config, w) + 2 * self._noise
            moments.append(n * (2 * vector + heads - gone) - self._feedforward_copies - self._output_copy)
        if narrow and config.norm_order == "post":  # still in the forward pass: what is added and not read
            dropped = 1 if config.dropout and not isinstance(config, BERTConfig) else 0
            moments.append(n * vector * (2 + dropped - int(config.final_norm) + self._stacks))
        return max(moments)

    def measuring(self) -> int:
        """Bytes at the fullest moment of a pass without gradients, in the last block, where nothing is kept."""
        config, n, w, copied, vector = self._config, self._n, self._width, self._copied, self._vector
        c, (q, kv), inner, later = config.d_model, _heads(config), self._inner, self._feedforward_copies
        first = vector if config.norm_order == "pre" else 0  # a norm before each part
        entered = (1 + self._stacks) * vector + first  # embedded, into the block, the encoder's
        attending = entered + (vector if self._crosses else 0)  # to a memory, after itself
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
        # Images cut into patches, and those in the type of the products, as they are projected.
        projected = self._patches * w * c
        cutting = self._patches * (_FLOAT32 + copied) * self._pixels + projected
        return copied * c * self._pixels + max(copies + projected + max(moments), cutting)
