"""Activation memory: what a model's body holds during a step, by rule, so that a plan makes no tensor.

In eager mode autograd keeps what its formulas ask for on the way back: what products, norms and bends have read, what
attention's kernel wants back, and the noise of a dropout. Under autocast every product keeps a copy of its own of what
it read, and each weight is copied once. Beside that, a backward pass and a pass without gradients are fullest at a few
moments: each is a line here, and the fullest counts. tests/training/plan/test_activations.py runs every kind of model
on fake tensors (shapes without numbers) beside these rules, which are for models whose heads together are about as wide
as the model. Fake tensors agree with them and take 20,000 times as long (docs/design.md).

A compiled graph on a GPU keeps less: ``compiled_block`` says what, part by part. These rules were read off torch's own
partitioner (benchmarks/memory_plan.py measures them on a GPU).
"""

from dataclasses import dataclass, replace

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
    length, width = positions(config, context_length), DTYPES[precision].itemsize
    if device == "cpu":
        return _eager(config, batch_size, length, width)
    # A GPU's attention drops inside its kernel, and a dropout keeps a byte for each number.
    without_masks = _eager(config.replace(dropout=0.0, attention_dropout=0.0), batch_size, length, width)
    kept = _compiled_kept(config, batch_size * length, width) if compiled else without_masks.kept
    return replace(without_masks, kept=_dropout_masks(config, batch_size * length) + kept)


def _eager(config: ModelConfig, batch_size: int, length: int, width: int) -> BodyMemory:
    body = EagerBody(config, batch_size, length, width)
    return BodyMemory(body.kept(), body.working(), body.measuring())


def positions(config: ModelConfig, context_length: int) -> int:
    """Places in one example: tokens, or patches and the class token."""
    return 1 + (config.image_size // config.patch_size) ** 2 if isinstance(config, ViTConfig) else context_length


def compiled_block(config: ModelConfig, width: int) -> dict[str, int]:
    """Bytes that a compiled block keeps for one position, by part; ``width`` is the bytes of a product's number.

    Inputs of products stay, and what attention's kernel wants back; norms, bends and rotations are computed again. The
    sum around the parts stays in float32 under autocast.
    """
    c, q, kv = config.d_model, config.n_heads * config.d_head, config.n_kv_heads * config.d_head
    inner = 3 if config.activation == "swiglu" else 2  # before and after the bend, and the gate
    return {
        "residual": 2 * _FLOAT32 * c,
        "norm outputs": 2 * width * c,
        "queries, keys, values": width * (q + 2 * kv),
        "queries and keys before their norm": width * (q + kv) if config.qk_norm else 0,
        "attention output": width * q + _FLOAT32 * config.n_heads,  # and the logarithm of each softmax's sum
        "attention output, projected": width * c if config.norm == "rms" else 0,
        "feed-forward": inner * width * config.d_ff,
    }


def _compiled_kept(config: ModelConfig, n_positions: int, width: int) -> int:
    c, q, kv = config.d_model, config.n_heads * config.d_head, config.n_kv_heads * config.d_head
    n_cross = config.n_decoder_layers if isinstance(config, Seq2SeqConfig) else 0
    cross = (_FLOAT32 + width) * c + width * 2 * (q + kv) + _FLOAT32 * config.n_heads
    matrices = 2 * c * (q + kv) + (3 if config.activation == "swiglu" else 2) * c * config.d_ff
    copies = matrices * width if width < _FLOAT32 else 0  # weights in the type of the products
    ends = _FLOAT32 * c * n_positions  # what the last norm reads
    block = sum(compiled_block(config, width).values()) * n_positions + copies
    return (config.n_layers + n_cross) * block + n_cross * cross * n_positions + ends


def _dropout_masks(config: ModelConfig, n_positions: int) -> int:
    if not config.dropout:
        return 0
    n_decoder = config.n_decoder_layers if isinstance(config, Seq2SeqConfig) else 0
    embeddings = 2 if n_decoder else 1
    return (2 * config.n_layers + 3 * n_decoder + embeddings) * n_positions * config.d_model


def example_inputs(config: ModelConfig, batch_size: int, context_length: int) -> tuple[Tensor, ...]:
    """Something of the right shape for ``model.hidden``."""
    if isinstance(config, ViTConfig):
        return (torch.zeros(batch_size, config.n_channels, config.image_size, config.image_size),)
    tokens = torch.zeros(batch_size, context_length, dtype=torch.long)
    return (tokens, tokens.clone()) if isinstance(config, Seq2SeqConfig) else (tokens,)


# -- eager mode -------------------------------------------------------------------------------------------------------


def eager_attention(config: ModelConfig, length: int, width: int, cross: bool = False) -> dict[str, int]:
    """Bytes that an attention keeps for one position, by part; ``width`` is the bytes of a product's number.

    With dropout the CPU has no kernel: the textbook's line by line, in float32, where keys are repeated for each query
    head, and the weights are there three times: as they were, the noise, and what it left.
    """
    c, q, kv = config.d_model, config.n_heads * config.d_head, config.n_kv_heads * config.d_head
    # The kernel's output, put back in the order of positions where it was given queries in another.
    relaid = 1 if config.qk_norm or (_turns(config) and not cross) else 0
    parts = {
        "read by products": 3 * width * c if width < _FLOAT32 else _FLOAT32 * c,
        "queries and keys before their norm": _head_norms(config) if config.qk_norm else 0,
    }
    if config.attention_dropout:
        return parts | {
            "queries, keys, values": 3 * _FLOAT32 * q,
            "weights": 3 * _FLOAT32 * config.n_heads * length,
            "output": width * q,
        }
    return parts | {
        "queries, keys, values": width * (q + 2 * kv),
        "weights": _FLOAT32 * config.n_heads,  # the logarithm of each softmax's sum
        "output": (1 + relaid) * width * q,
    }


def eager_feedforward(config: ModelConfig, width: int) -> dict[str, int]:
    """Bytes that a feed-forward keeps for one position, by part."""
    readers = 2 if config.activation == "swiglu" else 1
    # ReLU needs only what it gave, which is what the next product reads; a gate needs all four.
    inner = {"relu": 1, "swiglu": 4}.get(config.activation, 2)
    return {
        "read by products": readers * width * config.d_model if width < _FLOAT32 else _FLOAT32 * config.d_model,
        "inner": inner * width * config.d_ff,
    }


def eager_norm(config: ModelConfig) -> int:
    """Bytes that a norm keeps for one position: what it read, and LayerNorm its mean and deviation; RMSNorm keeps its
    root and the scaled vector.
    """
    return _FLOAT32 * (config.d_model + 2 if config.norm == "layer" else 2 * config.d_model + 1)


def _head_norms(config: ModelConfig) -> int:
    heads = config.n_heads + config.n_kv_heads
    return _FLOAT32 * heads * (2 * config.d_head + 1)


def _turns(config: ModelConfig) -> bool:
    return isinstance(config, TextConfig) and config.positions == "rotary"


@dataclass(frozen=True)
class EagerBody:
    """A body and the batch that goes through it."""

    config: ModelConfig
    batch_size: int
    length: int  # positions of one example
    width: int  # bytes of a product's number

    @property
    def _n_positions(self) -> int:
        return self.batch_size * self.length

    @property
    def _narrow(self) -> bool:
        return self.width < _FLOAT32

    @property
    def _n_decoder_layers(self) -> int:
        return self.config.n_decoder_layers if isinstance(self.config, Seq2SeqConfig) else 0

    @property
    def _noise(self) -> int:
        """What a dropout keeps for one position of what a part adds."""
        return self.width * self.config.d_model if self.config.dropout else 0

    # -- what the forward pass leaves for the backward pass ----------------------------------------------------------

    def kept(self) -> int:
        """Bytes of all layers and of what stands before and after them."""
        config, n = self.config, self._n_positions
        around = eager_norm(config) + self._noise
        attention, cross = (
            sum(eager_attention(config, self.length, self.width, each).values()) + around for each in (False, True)
        )
        feedforward = sum(eager_feedforward(config, self.width).values()) + around
        n_layers, n_cross = config.n_layers + self._n_decoder_layers, self._n_decoder_layers
        layers = n * (n_layers * (attention + feedforward) + n_cross * cross)
        copies = (n_layers + n_cross) * (self._attention_copies + self._head_norm_copies)
        copies += n_layers * (self._feedforward_copies + self._angle_copies)
        return layers + copies + self._ends()

    def _ends(self) -> int:
        config, n, c = self.config, self._n_positions, self.config.d_model
        stacks = 2 if self._n_decoder_layers else 1
        each = _FLOAT32 * c if config.dropout else 0  # of the embeddings
        each += eager_norm(config) if config.final_norm else 0
        # The last vectors; the encoder's are read in place, but under autocast only copies of them are.
        last = _FLOAT32 * c * (1 if self._narrow else stacks)
        found = n * (stacks * each + last)
        if isinstance(config, TextConfig) and config.positions == "learned":
            found += stacks * _INDEX * self.length
        if isinstance(config, BERTConfig):
            found += n * (_INDEX + eager_norm(config))  # segments, and the embeddings' own norm
        if isinstance(config, ViTConfig):
            found += self._n_patches * self.width * config.n_channels * config.patch_size**2
        return found + (0 if self._narrow else stacks * self._angles)

    @property
    def _n_patches(self) -> int:
        return self.batch_size * (self.length - 1)

    @property
    def _angles(self) -> int:
        """Cosines and sines of rotary positions."""
        return _FLOAT32 * self.length * self.config.d_head if _turns(self.config) else 0

    @property
    def _angle_copies(self) -> int:
        """Under autocast a layer's queries and keys have each their own."""
        return 2 * self._angles * self.width // _FLOAT32 if self._narrow else 0

    @property
    def _attention_copies(self) -> int:
        config = self.config
        weights = 2 * config.d_model * (config.n_heads + config.n_kv_heads) * config.d_head
        return self.width * weights if self._narrow else 0

    @property
    def _head_norm_copies(self) -> int:
        return 2 * self.width * self.config.d_head if self._narrow and self.config.qk_norm else 0

    @property
    def _feedforward_copies(self) -> int:
        matrices = 3 if self.config.activation == "swiglu" else 2
        return matrices * self._matrix if self._narrow else 0

    @property
    def _matrix(self) -> int:
        return self.width * self.config.d_model * self.config.d_ff

    # -- what the backward pass holds beside it ----------------------------------------------------------------------

    def working(self) -> int:
        """Bytes at the fullest moment of the last block's backward pass, less what has been let go by then."""
        config, n, c, w = self.config, self._n_positions, self.config.d_model, self.width
        inner, copy = w * config.d_ff, self._matrix if self._narrow else 0
        norms = int(config.final_norm) + int(config.norm_order == "post")  # that come before the last feed-forward
        # The gradients of the body's output and of the sum around the parts, less what the norms on their way had kept.
        arriving = _FLOAT32 * c * (2 if norms else 1) - norms * eager_norm(config)
        cast = w * c if self._narrow and not config.dropout else 0
        read = 0 if config.activation == "relu" else inner  # by the last product; ReLU needs it still
        passed = arriving - self._noise - read
        moments = {
            "last norm": n * _FLOAT32 * (5 * c - 1 if config.norm == "rms" else 2 * c) if norms else 0,
            "last matrix": n * (arriving + cast + inner) + self._matrix + (w * c if config.feedforward_bias else 0),
            "last matrix in float32": n * (passed + inner) + _FLOAT32 * c * config.d_ff if self._narrow else 0,
            "bend": n * (passed + (3 if config.activation == "swiglu" else 2) * inner) - copy,
            "attention": n * (2 * _FLOAT32 * c + self._attention_gradients - (norms + 1) * eager_norm(config))
            - n * (sum(eager_feedforward(config, w).values()) + 2 * self._noise)
            - self._feedforward_copies
            - self._output_copy,
        }
        if self._narrow and config.norm_order == "post":  # what is added and not read, so that nobody keeps it
            dropped = 1 if config.dropout and not isinstance(config, BERTConfig) else 0
            vectors = 3 + dropped - int(config.final_norm) + int(self._n_decoder_layers > 0)
            moments["forward"] = n * _FLOAT32 * c * vectors
        return max(moments.values())

    @property
    def _attention_gradients(self) -> int:
        """Of the heads' outputs, of values or of all three, and of the weights where there are some; for a position."""
        config, w = self.config, self.width
        q, kv = config.n_heads * config.d_head, config.n_kv_heads * config.d_head
        if config.attention_dropout:
            return _FLOAT32 * (2 * q + config.n_heads * self.length) - w * q
        return w * (q + 2 * kv) + (0 if config.qk_norm or _turns(config) else w * q)

    @property
    def _output_copy(self) -> int:
        config = self.config
        return self.width * config.d_model * config.n_heads * config.d_head if self._narrow else 0

    # -- a pass without gradients ------------------------------------------------------------------------------------

    def measuring(self) -> int:
        """Bytes at the fullest moment of the last block, where nothing has to be kept."""
        config, n, c, w = self.config, self._n_positions, self.config.d_model, self.width
        q, kv = config.n_heads * config.d_head, config.n_kv_heads * config.d_head
        vectors = _FLOAT32 * c  # of one position
        entered = 2 * vectors + (vectors if self._n_decoder_layers else 0)  # embedded, into the block, the encoder's
        normed_first = vectors if config.norm_order == "pre" else 0
        thinking = entered + normed_first + vectors
        looking = thinking if self._n_decoder_layers else entered + normed_first  # at a memory, after itself
        last_copy = self._matrix + (w * c if config.feedforward_bias else 0) if self._narrow else 0
        later = self._feedforward_copies + self._feedforward_bias_copies
        relaid = w * q if config.qk_norm or _turns(config) else 0
        normed = 2 * vectors if config.norm == "rms" else vectors + 2 * _FLOAT32
        moments = {
            "norm": n * (entered + 2 * vectors - normed_first + normed),
            "projected": n * (looking + w * (2 * q + 2 * kv + c) + relaid) - later,
            "bend": n * (thinking + (3 if config.activation == "swiglu" else 2) * w * config.d_ff) - last_copy,
            "last matrix": n * (thinking + w * (config.d_ff + c)),
        }
        before_output = later + self._output_copy
        if config.qk_norm:
            wide = (3 if self._narrow else 2) * _FLOAT32 * q + _FLOAT32 * config.n_heads
            moments["queries' norm"] = n * (looking + w * (q + 2 * kv) + wide) - before_output
        if _turns(config):
            moments["turned"] = n * (looking + w * (2 * q + 4 * kv)) - before_output
        return max(self._all_copies + self._ids + max(moments.values()), self._cutting)

    @property
    def _ids(self) -> int:
        """What goes along through all layers: numbers of positions and segments, angles; of images, their patches."""
        if isinstance(self.config, ViTConfig):
            return self._n_patches * self.width * self.config.d_model
        segments = self._n_positions if isinstance(self.config, BERTConfig) else 0
        return _INDEX * (self.length + segments) + self._angles

    @property
    def _cutting(self) -> int:
        """Images cut into patches, and those in the type of the products, as they are projected."""
        if not isinstance(self.config, ViTConfig):
            return 0
        c, w, pixels = self.config.d_model, self.width, self.config.n_channels * self.config.patch_size**2
        read = _FLOAT32 + w if self._narrow else _FLOAT32
        return self._n_patches * (read * pixels + w * c) + (w * c * (pixels + 1) if self._narrow else 0)

    @property
    def _all_copies(self) -> int:
        """Under autocast: each weight and bias of the body in the type of the products."""
        if not self._narrow:
            return 0
        config, c, w = self.config, self.config.d_model, self.width
        q, kv = config.n_heads * config.d_head, config.n_kv_heads * config.d_head
        biases = w * (q + 2 * kv + c) if config.attention_bias else 0
        n_layers, n_cross = config.n_layers + self._n_decoder_layers, self._n_decoder_layers
        patches = config.n_channels * config.patch_size**2 + 1 if isinstance(config, ViTConfig) else 0
        attentions = (n_layers + n_cross) * (self._attention_copies + biases)
        return attentions + n_layers * (self._feedforward_copies + self._feedforward_bias_copies) + w * c * patches

    @property
    def _feedforward_bias_copies(self) -> int:
        config, inner = self.config, 2 if self.config.activation == "swiglu" else 1
        wanted = self._narrow and config.feedforward_bias
        return self.width * (inner * config.d_ff + config.d_model) if wanted else 0
