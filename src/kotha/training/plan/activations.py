"""Activation memory: what a model's body holds during a step, by rule.

In eager mode autograd decides (``eager.py``). A compiled graph on a GPU keeps less: ``compiled_block`` says what, part
by part. These rules were read off torch's own partitioner (benchmarks/memory_plan.py measures them on a GPU).
"""

from dataclasses import dataclass, replace

import torch
from torch import Tensor

from kotha.model.config import ModelConfig, Seq2SeqConfig, ViTConfig
from kotha.training.device.precision import DTYPES
from kotha.training.plan.eager import EagerBody

_FLOAT32 = 4


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
