"""The engine's copy of the weights: unchanged, converted to bfloat16, or quantized to int8.

A decoding step reads all weights except the embeddings once, so it takes at least their size divided by the memory
bandwidth. Narrower types reduce this time if the machine has fast matrix products for them. Int8 takes a quarter of the
memory and has an error of about one percent per product. Queries, keys and values are computed by one product instead
of three. The original model is unchanged.
"""

import copy
from typing import Literal

import torch
from torch import Tensor, nn

from kotha.errors import UsageError, nearest
from kotha.generation.native import Arrays
from kotha.i18n.message import Option
from kotha.model.attention import Attention, Memory
from kotha.model.gpt import GPT
from kotha.model.rounding import round_rows

Weights = Literal["float32", "bfloat16", "int8"]
DTYPES: dict[str, torch.dtype] = {"float32": torch.float32, "bfloat16": torch.bfloat16, "int8": torch.float32}

_LARGEST_COPY = 1 << 30  # bytes


def prepare(model: GPT, weights: Weights | None) -> GPT:
    """Return a copy of the model for the engine, or the model itself if ``weights`` is None."""
    if weights is None:
        return model
    if weights not in DTYPES:
        raise UsageError(
            "{weights} is not a valid choice{nearest}",
            weights=Option("weights", weights),
            nearest=nearest(str(weights), DTYPES),
        )
    prepared = copy.deepcopy(model).to(DTYPES[weights])
    for block in prepared.stack.blocks:
        block.attention = JoinedAttention(block.attention)  # type: ignore[arg-type]
    if weights == "int8":
        _replace_linears(prepared)
    return prepared.eval()


def stored_weights(model: nn.Module) -> Weights | None:
    """Return the ``weights`` setting that changes no value: "float32" on a CPU, so that the C step can be used."""
    on_cpu = all(weight.device.type == "cpu" and weight.dtype == torch.float32 for weight in model.parameters())
    return "float32" if isinstance(model, GPT) and on_cpu else None


def worth_copying(model: nn.Module) -> bool:
    """Return whether a copy gives the same text sooner: on a CPU, if the model is small and has no hooks.

    The C step chooses its number of threads by measurement, and the copy takes less time than a few steps in torch.
    """
    n_bytes = sum(weight.nbytes for weight in model.parameters())
    plain = (not each._forward_hooks and not each._forward_pre_hooks for each in model.modules())
    return n_bytes <= _LARGEST_COPY and stored_weights(model) is not None and all(plain)


def as_arrays(model: nn.Module) -> Arrays:
    """Return the weights of a float32 or int8 model on a CPU, by name, as NumPy arrays that share its memory."""
    tensors = [*model.named_parameters(remove_duplicate=False), *model.named_buffers(remove_duplicate=False)]
    return {name: tensor.detach().numpy() for name, tensor in tensors}


class Int8Linear(nn.Module):
    """``nn.Linear`` with an int8 weight matrix: (..., in) -> (..., out).

    The torch decoder uses this layer; x is not quantized. Torch has fast int8 products only on some machines; on ARM
    without bfloat16, all of them are slower than float32 (``docs/dev/experiments.md``). The C step implements these
    products itself.
    """

    weight: Tensor
    scale: Tensor
    bias: Tensor | None

    def __init__(self, linear: nn.Linear) -> None:
        super().__init__()
        quantized, scale = round_rows(linear.weight)
        self.register_buffer("weight", quantized, persistent=False)
        self.register_buffer("scale", scale, persistent=False)
        bias = None if linear.bias is None else linear.bias.detach().float()
        self.register_buffer("bias", bias, persistent=False)

    def forward(self, x: Tensor) -> Tensor:
        """Apply the layer."""
        rows = x.reshape(-1, x.shape[-1])  # (rows, in)
        y: Tensor = torch._weight_int8pack_mm(rows, self.weight, self.scale.to(x.dtype)).view(*x.shape[:-1], -1)
        return y if self.bias is None else y + self.bias


class JoinedAttention(Attention):
    """Self-attention that computes queries, keys and values with one product."""

    def __init__(self, attention: Attention) -> None:
        nn.Module.__init__(self)
        self.__dict__.update(attention.__dict__)  # safe, because this copy belongs to the engine
        parts = [self.query, self.key, self.value]
        self.widths = [part.out_features for part in parts]
        bias = self.query.bias is not None
        self.joined = nn.Linear(self.query.in_features, sum(self.widths), bias=bias, device="meta")
        self.joined.weight = nn.Parameter(torch.cat([part.weight.detach() for part in parts]), requires_grad=False)
        if bias:
            self.joined.bias = nn.Parameter(torch.cat([part.bias.detach() for part in parts]), requires_grad=False)
        del self.query, self.key, self.value

    def _project(self, x: Tensor, memory: Memory | None) -> tuple[Tensor, Tensor, Tensor]:
        assert memory is None, "JoinedAttention supports only self-attention"
        q, k, v = (self._split(part) for part in self.joined(x).split(self.widths, dim=-1))
        return self.query_norm(q), self.key_norm(k), v


def _replace_linears(module: nn.Module) -> None:
    for name, child in module.named_children():
        if isinstance(child, nn.Linear):
            setattr(module, name, Int8Linear(child))
        else:
            _replace_linears(child)
