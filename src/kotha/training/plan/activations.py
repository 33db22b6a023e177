"""Activation memory: what a model's body holds during a step, by rule, so that a plan makes no tensor.

In eager mode autograd keeps what its formulas ask for on the way back: what products, norms and bends have read, what
attention's kernel wants back, and the noise of a dropout. Under autocast every product keeps a copy of its own of what
it read, and each weight is copied once. Beside that, a backward pass and a pass without gradients are fullest at a few
moments: each is a line here, and the fullest counts. tests/training/plan/test_memory.py runs every kind of model
on fake tensors (shapes without numbers) beside these rules, which are for models whose heads together are about as wide
as the model. Fake tensors agree with them and take 20,000 times as long (docs/design.md).

A compiled graph on a GPU keeps less (``compiled_block``). These rules were read off torch's own
partitioner (benchmarks/memory_plan.py measures them on a GPU).
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from kotha.model.config import BERTConfig, ModelConfig, Seq2SeqConfig, TextConfig, ViTConfig
from kotha.training.device import DTYPES

_FLOAT32 = 4
_INDEX = 8  # bytes of a token's or a position's number


@dataclass(frozen=True)
class BodyMemory:
    """Bytes of a body that are neither weights nor their gradients."""

    kept: int  # activations: what the forward pass leaves for the backward pass
    working: int  # the most that the backward pass of one block holds beside them
    measuring: int  # the most that a forward pass without gradients holds, for a validation batch of the same size


def body_memory(
    config: ModelConfig, batch_size: int, context_length: int, precision: str, device: str, compiled: bool
) -> BodyMemory:
    """What a body holds for sequences of a length."""
    length, on_cpu = positions(config, context_length), device == "cpu"
    # A GPU's attention drops inside its kernel, and a dropout keeps a byte for each number.
    bare = config if on_cpu else config.replace(dropout=0.0, attention_dropout=0.0)
    body = _Body(bare, batch_size, length, DTYPES[precision].itemsize)
    kept = body.kept() if on_cpu or not compiled else body.kept_compiled()
    if config.dropout and not on_cpu:
        kept += (2 * body.layers + body.crosses + body.stacks) * batch_size * length * config.d_model
    return BodyMemory(kept, body.working(), body.measuring())


def positions(config: ModelConfig, context_length: int) -> int:
    """Places in one example: tokens, or patches and the class token."""
    return 1 + (config.image_size // config.patch_size) ** 2 if isinstance(config, ViTConfig) else context_length


def compiled_block(config: ModelConfig, width: int) -> int:
    """Bytes that a compiled block keeps for one position; ``width`` is the bytes of a product's number.

    Inputs of products stay, and what attention's kernel wants back; norms, bends and rotations are computed again. The
    sum around the parts stays in float32 under autocast.
    """
    c, (q, kv) = config.d_model, _heads(config)
    inner = 3 if config.activation == "swiglu" else 2  # before and after the bend, and the gate
    products = 2 * c + q + 2 * kv + q + inner * config.d_ff  # norms' outputs, queries, keys, values, what they find
    products += q + kv if config.qk_norm else 0  # queries and keys before their norm
    products += c if config.norm == "rms" else 0  # attention's output, projected
    return width * products + _FLOAT32 * (2 * c + config.n_heads)  # and the logarithm of each softmax's sum


def example_inputs(config: ModelConfig, batch_size: int, context_length: int) -> tuple[Tensor, ...]:
    """Something of the right shape for ``model.hidden``."""
    if isinstance(config, ViTConfig):
        return (torch.zeros(batch_size, config.n_channels, config.image_size, config.image_size),)
    tokens = torch.zeros(batch_size, context_length, dtype=torch.long)
    return (tokens, tokens.clone()) if isinstance(config, Seq2SeqConfig) else (tokens,)


# -- eager mode -------------------------------------------------------------------------------------------------------


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
    """Bytes that a norm keeps for one position: what it read, and LayerNorm its mean and deviation; RMSNorm keeps its
    root and the scaled vector.
    """
    return _FLOAT32 * (config.d_model + 2 if config.norm == "layer" else 2 * config.d_model + 1)


def _read(config: ModelConfig, readers: int, width: int) -> int:
    """What products read: under autocast each its own copy."""
    return config.d_model * (readers * width if width < _FLOAT32 else _FLOAT32)


def _heads(config: ModelConfig) -> tuple[int, int]:
    """How wide all queries are together, and all keys."""
    return config.n_heads * config.d_head, config.n_kv_heads * config.d_head


def _turns(config: ModelConfig) -> bool:
    return isinstance(config, TextConfig) and config.positions == "rotary"


class _Body:
    """A body and the batch that goes through it; ``width`` is the bytes of a product's number."""

    def __init__(self, config: ModelConfig, batch_size: int, length: int, width: int) -> None:
        self._config, self._length, self._width = config, length, width
        self._n, self._patches = batch_size * length, batch_size * (length - 1)
        self.crosses = config.n_decoder_layers if isinstance(config, Seq2SeqConfig) else 0
        self.layers, self.stacks = config.n_layers + self.crosses, 2 if self.crosses else 1
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

    def kept_compiled(self) -> int:
        """Bytes that a compiled forward pass leaves for the backward pass."""
        config, n, w, (q, kv) = self._config, self._n, self._width, _heads(self._config)
        cross = self._vector + w * (config.d_model + 2 * (q + kv)) + _FLOAT32 * config.n_heads
        block = compiled_block(config, w) * n + self._attention_copies + self._feedforward_copies
        return self.layers * block + n * (self.crosses * cross + self._vector)  # which the last norm reads

    def kept(self) -> int:
        """Bytes that the forward pass leaves for the backward pass: all layers, and what stands around them."""
        config, n, w, copied = self._config, self._n, self._width, self._copied
        around = self._norm + self._noise
        attention, cross = (eager_attention(config, self._length, w, each) + around for each in (False, True))
        block = attention + eager_feedforward(config, w) + around
        found = n * (self.layers * block + self.crosses * cross)
        head_norms = 2 * copied * config.d_head if config.qk_norm else 0
        angles = 2 * self._angles * copied // _FLOAT32  # a layer's queries and keys have each their own
        found += (self.layers + self.crosses) * (self._attention_copies + head_norms)
        found += self.layers * (self._feedforward_copies + angles)
        each = (self._vector if config.dropout else 0) + (self._norm if config.final_norm else 0)
        # The last vectors; the encoder's are read in place, but under autocast only copies of them are.
        found += n * (self.stacks * each + self._vector * (1 if copied else self.stacks))
        found += 0 if copied else self.stacks * self._angles
        if isinstance(config, TextConfig) and config.positions == "learned":
            found += self.stacks * _INDEX * self._length
        if isinstance(config, BERTConfig):
            found += n * (_INDEX + self._norm)  # segments, and the embeddings' own norm
        return found + self._patches * w * self._pixels

    def working(self) -> int:
        """Bytes at the fullest moment of the last block's backward pass, less what has been let go by then."""
        config, n, w, vector, inner = self._config, self._n, self._width, self._vector, self._inner
        c, (q, kv), narrow = config.d_model, _heads(config), bool(self._copied)
        norms = int(config.final_norm) + int(config.norm_order == "post")  # that come before the last feed-forward
        # The gradients of the body's output and of the sum around the parts, less what the norms on their way had kept.
        arriving = vector * (2 if norms else 1) - norms * self._norm
        cast = w * c if narrow and not config.dropout else 0
        read = 0 if config.activation == "relu" else inner  # by the last product; ReLU needs it still
        passed, bias = arriving - self._noise - read, w * c if config.feedforward_bias else 0
        # Gradients of the heads' outputs, of values or of all three, and of the weights where there are some.
        heads = w * (2 * q + 2 * kv - (q if config.qk_norm or self._angles else 0))
        if config.attention_dropout:
            heads = _FLOAT32 * (2 * q + config.n_heads * self._length) - w * q
        moments = {
            "last norm": n * _FLOAT32 * (5 * c - 1 if config.norm == "rms" else 2 * c) if norms else 0,
            "last matrix": n * (arriving + cast + inner) + w * c * config.d_ff + bias,
            "last matrix in float32": n * (passed + inner) + vector * config.d_ff if narrow else 0,
            "bend": n * (passed + self._gated * inner) - self._matrix_copy,
            "attention": n * (2 * vector + heads - (norms + 1) * self._norm)
            - n * (eager_feedforward(config, w) + 2 * self._noise)
            - self._feedforward_copies
            - self._output_copy,
        }
        if narrow and config.norm_order == "post":  # what is added and not read, so that nobody keeps it
            dropped = 1 if config.dropout and not isinstance(config, BERTConfig) else 0
            moments["forward"] = n * vector * (2 + dropped - int(config.final_norm) + self.stacks)
        return max(moments.values())

    def measuring(self) -> int:
        """Bytes at the fullest moment of a pass without gradients, in the last block, where nothing is kept."""
        config, n, w, copied, vector = self._config, self._n, self._width, self._copied, self._vector
        c, (q, kv), inner = config.d_model, _heads(config), self._inner
        normed_first = vector if config.norm_order == "pre" else 0
        entered = (1 + self.stacks) * vector + normed_first  # embedded, into the block, the encoder's
        looking = entered + (vector if self.crosses else 0)  # at a memory, after itself
        thinking = entered + vector
        bias = copied if config.feedforward_bias else 0
        later = self._feedforward_copies + bias * ((self._gated - 1) * config.d_ff + c)
        moments = {
            "norm": n
            * (thinking + vector - 2 * normed_first + (2 * vector if config.norm == "rms" else vector + 2 * _FLOAT32)),
            "projected": n * (looking + w * (2 * q + 2 * kv + c + (q if config.qk_norm or self._angles else 0)))
            - later,
            "bend": n * (thinking + self._gated * inner) - self._matrix_copy - bias * c,
            "last matrix": n * (thinking + inner + w * c),
        }
        if config.qk_norm:
            wide = _FLOAT32 * ((3 if copied else 2) * q + config.n_heads)
            moments["queries' norm"] = n * (looking + w * (q + 2 * kv) + wide) - later - self._output_copy
        if self._angles:
            moments["turned"] = n * (looking + w * (2 * q + 4 * kv)) - later - self._output_copy
        biases = copied * (q + 2 * kv + c) if config.attention_bias else 0
        copies = (self.layers + self.crosses) * (self._attention_copies + biases) + self.layers * later
        if not isinstance(config, ViTConfig):
            segments = n if isinstance(config, BERTConfig) else 0
            return copies + _INDEX * (self._length + segments) + self._angles + max(moments.values())
        copy = copied * c * (self._pixels + 1)
        # Images cut into patches, and those in the type of the products, as they are projected.
        cutting = self._patches * ((_FLOAT32 + copied) * self._pixels + w * c) + copy
        return max(copies + copy + self._patches * w * c + max(moments.values()), cutting)
