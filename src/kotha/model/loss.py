"""The next-token loss that never holds all logits at once.

For 8,192 tokens and a vocabulary of 32,100, float32 logits are a gigabyte, their softmax another and their gradient
a third. Here the rows go through the head in chunks: each chunk's logits give their losses and, in the same go,
their share of the gradients, and are gone (the idea of https://arxiv.org/abs/2411.09009 without its kernels).

``F.linear_cross_entropy`` of torch 2.13 does the same once it is given options (without them it builds all logits),
but knows no label smoothing and stops a compiled graph; ``_Chunked`` is its twin for these cases and for older
torch. Tests hold both equal to ``F.cross_entropy`` on all logits.
"""

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

# Logits of one chunk: 32 MiB in float32. A GPU needs larger products to be busy, and has the room: 512 MiB.
CHUNK_LOGITS = 1 << 23
GPU_CHUNK_LOGITS = 1 << 27
IGNORED = -100

_torch_loss: Any = getattr(functional, "linear_cross_entropy", None)
_torch_options: Any = getattr(nn, "LinearCrossEntropyOptions", None)


def next_token_loss(
    hidden: Tensor,
    weight: Tensor,
    targets: Tensor,
    bias: Tensor | None = None,
    *,
    label_smoothing: float = 0.0,
    ignore_index: int = IGNORED,
) -> Tensor:
    """Mean nats over the targets that count: (..., C), (V, C), (...) -> ().

    ``hidden`` is what the model's head would read and ``weight`` that head's matrix. Under autocast both are used in
    its type; the losses themselves are always summed in float32.
    """
    rows, weight, bias = _autocast(hidden.flatten(0, -2), weight, bias)
    flat = targets.flatten()
    if _torch_loss is not None and not label_smoothing and not torch.compiler.is_compiling():
        options = _torch_options(batch_chunk_size=_chunk_rows(weight), chunking_method=None)
        loss: Tensor = _torch_loss(rows, weight, flat, linear_bias=bias, ignore_index=ignore_index, options=options)
        return loss.float()
    return chunked_loss(rows, weight, flat, bias, label_smoothing, ignore_index)


def chunked_loss(
    rows: Tensor, weight: Tensor, targets: Tensor, bias: Tensor | None, label_smoothing: float, ignore_index: int
) -> Tensor:
    """The same with no help from torch: (N, C), (V, C), (N,) -> ()."""
    loss: Tensor = _Chunked.apply(rows, weight, bias, targets, label_smoothing, ignore_index)  # type: ignore[no-untyped-call]
    return loss


@torch.no_grad()
def token_losses(hidden: Tensor, weight: Tensor, targets: Tensor, bias: Tensor | None = None) -> Tensor:
    """Nats of each target by itself, for measuring and not for training: (..., C), (V, C), (...) -> (...)."""
    rows, weight, bias = _autocast(hidden.flatten(0, -2), weight, bias)
    size = _chunk_rows(weight)
    chunks = zip(torch.split(rows, size), torch.split(targets.flatten(), size), strict=True)
    losses = [functional.cross_entropy(_logits(chunk, weight, bias), some, reduction="none") for chunk, some in chunks]
    return torch.cat(losses).view_as(targets)


class _Chunked(torch.autograd.Function):
    """Losses and gradients chunk by chunk, both in the forward pass; the backward pass only scales the gradients."""

    @staticmethod
    def forward(
        ctx: Any,
        rows: Tensor,
        weight: Tensor,
        bias: Tensor | None,
        targets: Tensor,
        label_smoothing: float,
        ignore_index: int,
    ) -> Tensor:
        wanted = ctx.needs_input_grad[:3]
        counted = targets != ignore_index  # (N,)
        share = 1 / counted.sum()
        total = torch.zeros((), device=rows.device)
        grad_rows = torch.empty_like(rows) if wanted[0] else None
        grad_weight = torch.zeros_like(weight, dtype=torch.float32) if wanted[1] else None
        grad_bias = torch.zeros_like(weight[:, 0], dtype=torch.float32) if wanted[2] else None
        size = _chunk_rows(weight)
        for start in range(0, rows.shape[0], size):
            here = slice(start, start + size)
            logits = _logits(rows[here], weight, bias)  # (n, V), in float32
            target = targets[here].where(counted[here], 0)[:, None]  # (n, 1)
            scale = (counted[here] * share)[:, None]  # (n, 1)
            normaliser = logits.logsumexp(dim=-1, keepdim=True)  # (n, 1)
            total += (_losses(logits, normaliser, target, label_smoothing) * scale).sum()
            if not any(wanted):
                continue
            slope = _slope(logits, normaliser, target, label_smoothing).mul_(scale)  # (n, V): of the loss by the logits
            if grad_bias is not None:
                grad_bias += slope.sum(0)
            slope = slope.to(rows.dtype)
            if grad_rows is not None:
                grad_rows[here] = slope @ weight
            if grad_weight is not None:
                _add_product(grad_weight, slope.mT, rows[here])
        ctx.save_for_backward(grad_rows, _like(grad_weight, weight), _like(grad_bias, bias))
        return total

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        return *(None if saved is None else saved * grads[0] for saved in ctx.saved_tensors), None, None, None


def _losses(logits: Tensor, normaliser: Tensor, target: Tensor, label_smoothing: float) -> Tensor:
    """Nats of each row against its smoothed target: (n, V), (n, 1), (n, 1) -> (n, 1)."""
    losses = normaliser - (1 - label_smoothing) * logits.gather(1, target)
    return losses - label_smoothing * logits.mean(dim=-1, keepdim=True) if label_smoothing else losses


def _slope(logits: Tensor, normaliser: Tensor, target: Tensor, label_smoothing: float) -> Tensor:
    """Softmax less the smoothed target, in the logits' own memory: (n, V), (n, 1), (n, 1) -> (n, V)."""
    slope = logits.sub_(normaliser).exp_().sub_(label_smoothing / logits.shape[-1])
    return slope.scatter_add_(1, target, slope.new_full(target.shape, label_smoothing - 1))


def _add_product(total: Tensor, a: Tensor, b: Tensor) -> None:
    if total.dtype == a.dtype:
        total.addmm_(a, b)
    else:
        total += a @ b


def _logits(rows: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    logits = functional.linear(rows, weight).float()
    return logits if bias is None else logits + bias.float()


def _autocast(rows: Tensor, weight: Tensor, bias: Tensor | None) -> tuple[Tensor, Tensor, Tensor | None]:
    """What autocast would do to a linear layer, done once instead of for each chunk."""
    kind = rows.device.type
    dtype = torch.get_autocast_dtype(kind) if torch.is_autocast_enabled(kind) else weight.dtype
    return rows.to(dtype), weight.to(dtype), None if bias is None else bias.to(dtype)


def _chunk_rows(weight: Tensor) -> int:
    return max(1, (GPU_CHUNK_LOGITS if weight.is_cuda else CHUNK_LOGITS) // weight.shape[0])


def _like(gradient: Tensor | None, tensor: Tensor | None) -> Tensor | None:
    return gradient if gradient is None or tensor is None else gradient.to(tensor.dtype)
