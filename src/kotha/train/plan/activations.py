"""Activation memory: what a model's body holds during a step, found without computing anything.

In eager mode the truth is autograd's, so it is asked: a small model of one and of two layers runs forward and backward
on fake tensors (shapes without numbers) while a ledger follows every storage from its making to its end. Blocks are
alike and batches are rows, so four such models give any depth and any micro-batch.

A compiled graph on a GPU keeps less, and is not at hand when a plan is made: ``compiled_block`` says what it keeps,
part by part. These rules were read off torch's own partitioner (benchmarks/memory_plan.py measures them on a GPU).
"""

import weakref
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from kotha.model.config import ModelConfig, Seq2SeqConfig, TextConfig, ViTConfig
from kotha.model.family import build
from kotha.train.device.precision import DTYPES

_FLOAT32 = 4


@dataclass(frozen=True)
class BodyMemory:
    """Bytes of a body that are neither weights nor their gradients."""

    kept: int  # activations: what the forward pass leaves for the backward pass
    working: int  # the most that the backward pass of one block holds beside them
    measuring: int  # the most that a forward pass without gradients holds, for a validation batch of the same size

    def plus(self, other: "BodyMemory", times: int) -> "BodyMemory":
        """This and some times another."""
        pairs = zip(vars(self).values(), vars(other).values(), strict=True)
        return BodyMemory(*(mine + times * theirs for mine, theirs in pairs))


def body_memory(
    config: ModelConfig, batch_size: int, context_length: int, precision: str, device: str, compiled: bool
) -> BodyMemory:
    """What a body holds for sequences of a length: counted, and on a compiled GPU body by rule."""
    if device == "cpu":
        return _extrapolated(config, batch_size, context_length, precision)
    # A GPU's attention drops inside its kernel, and a dropout keeps a byte for each number.
    counted = _extrapolated(config.replace(dropout=0.0, attention_dropout=0.0), batch_size, context_length, precision)
    masks = _dropout_masks(config, batch_size * positions(config, context_length))
    kept = masks + counted.kept
    if compiled:
        kept = masks + _compiled_kept(
            config, batch_size * positions(config, context_length), DTYPES[precision].itemsize
        )
    return replace(counted, kept=kept)


def positions(config: ModelConfig, context_length: int) -> int:
    """Places in one example: tokens, or patches and the class token."""
    return 1 + (config.image_size // config.patch_size) ** 2 if isinstance(config, ViTConfig) else context_length


# -- by rule ----------------------------------------------------------------------------------------------------------


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


# -- by counting ------------------------------------------------------------------------------------------------------


def _extrapolated(config: ModelConfig, batch_size: int, context_length: int, precision: str) -> BodyMemory:
    """From small models to this one: every layer adds the same, and so does every example."""
    few, more = (_stacked(config, size, context_length, precision) for size in (2, 3))
    return few.plus(more.plus(few, -1), batch_size - 2)


def _stacked(config: ModelConfig, batch_size: int, context_length: int, precision: str) -> BodyMemory:
    depths = {"n_layers": config.n_layers}
    if isinstance(config, Seq2SeqConfig):
        depths["n_decoder_layers"] = config.n_decoder_layers
    # As if no head had been removed: every layer counts alike here, and a little too much is no harm.
    smallest: dict[str, Any] = {**dict.fromkeys(depths, 1), "removed_heads": ()}
    if isinstance(config, TextConfig):
        smallest["vocab_size"] = 2  # the tables are counted with the weights
    one = _traced(config.replace(**smallest), batch_size, context_length, precision, True)
    found = one
    for name, depth in depths.items():
        two = _traced(config.replace(**{**smallest, name: 2}), batch_size, context_length, precision, False)
        layer = BodyMemory(two.kept - one.kept, 0, two.measuring - one.measuring)
        found = found.plus(layer, depth - 1)
    return found


@lru_cache(maxsize=256)
def _traced(config: ModelConfig, batch_size: int, context_length: int, precision: str, backward: bool) -> BodyMemory:
    """Count a small model's pass forward, and back if asked, and one without gradients."""
    from torch._subclasses.fake_tensor import FakeTensorMode  # a second to import, most of it shared with optimizers

    autocast = torch.autocast("cpu", DTYPES[precision], enabled=precision != "float32")
    with FakeTensorMode():
        model: Any = build(config)
        inputs = example_inputs(config, batch_size, context_length)
        for parameter in model.parameters():
            parameter.grad = torch.zeros_like(parameter)
        with Ledger([*model.parameters(), *(each.grad for each in model.parameters()), *inputs]) as ledger:
            with autocast:
                hidden = model.hidden(*inputs)
            kept = ledger.live
            if backward:
                hidden.backward(torch.ones_like(hidden))
            working = ledger.peak - kept
        del hidden
        with Ledger([*model.parameters(), *inputs]) as ledger, torch.no_grad(), autocast:
            model.eval().hidden(*inputs)
    return BodyMemory(kept, working, ledger.peak)


def example_inputs(config: ModelConfig, batch_size: int, context_length: int) -> tuple[Tensor, ...]:
    """Something of the right shape for ``model.hidden``."""
    if isinstance(config, ViTConfig):
        return (torch.zeros(batch_size, config.n_channels, config.image_size, config.image_size),)
    tokens = torch.zeros(batch_size, context_length, dtype=torch.long)
    return (tokens, tokens.clone()) if isinstance(config, Seq2SeqConfig) else (tokens,)


class Ledger(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Bytes of the storages that operations make, from their making until nobody holds them."""

    def __init__(self, known: list[Any]) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.live = self.peak = 0
        self._sizes: dict[int, int] = {}
        self._known = {each.untyped_storage()._cdata for each in known}

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func is torch.ops.aten._local_scalar_dense.default:
            return 0  # fake tensors have no numbers; a model looks only whether its ids are in range
        found = func(*args, **(kwargs or {}))
        for each in tree_leaves(found):
            if isinstance(each, Tensor):
                self._note(each.untyped_storage())
        return found

    def _note(self, storage: torch.UntypedStorage) -> None:
        key = storage._cdata
        if key in self._known or key in self._sizes:
            return
        self._sizes[key] = storage.nbytes()
        self.live += storage.nbytes()
        self.peak = max(self.peak, self.live)
        weakref.finalize(storage, self._forget, key)

    def _forget(self, key: int) -> None:
        self.live -= self._sizes.pop(key)
