"""The next-token loss: a cross-entropy without all logits in memory at once.

For 8,192 tokens and a vocabulary of 32,100, float32 logits take one gigabyte, their softmax another, and their gradient
a third. Here the head is applied in chunks of rows. Each chunk's losses and gradients are computed from its logits,
which are then discarded (the idea of https://arxiv.org/abs/2411.09009, without its custom kernels).

``F.linear_cross_entropy`` of torch 2.13 does the same if given options (without them it builds all logits), but does
not support label smoothing, breaks a compiled graph, and imports torch's compiler, which takes seconds. On a GPU the
operations between the matrix products are compiled into kernels that read and write logits in their own type. GPUs have
no fast kernel for a head of 50,257 rows, so there a copy of the head is padded to a multiple of 64 rows, and the
padding gets probability zero. Tests check that all variants equal ``F.cross_entropy`` on all logits.

For knowledge distillation, the target is a mixture of the teachers' distributions and the actual tokens. Distillation
takes one more product per chunk and teacher, and memory for one chunk of a teacher's logits. A target can also be a
mixture of the actual token and a few sampled tokens, which takes almost no extra time.
"""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

# Logits per chunk: 8 MiB in float32, or 512 MiB on a GPU, which needs larger products for full utilization. On a CPU,
# a block of 32 MiB or more would come from the operating system each time, one page fault after another.
CHUNK_LOGITS = 1 << 21
GPU_CHUNK_LOGITS = 1 << 27
IGNORED = -100
_GPU_ROWS = 64

# The input to a head, and the head's matrix: (N, C), (V, C).
RowsAndHead = tuple[Tensor, Tensor]


def next_token_loss(
    hidden: Tensor,
    weight: Tensor,
    targets: Tensor,
    bias: Tensor | None = None,
    *,
    label_smoothing: float = 0.0,
    teachers: Sequence[RowsAndHead] = (),
    teacher_share: float = 0.0,
    sampled: Tensor | None = None,
    sampled_share: float = 0.0,
) -> Tensor:
    """Return the mean loss in nats over the targets that are not ``IGNORED``: (..., C), (V, C), (...) -> ().

    ``hidden`` is the input to the model's head and ``weight`` the head's matrix. Under autocast both are cast to its
    type; losses are always summed in float32. The fraction ``teacher_share`` of the loss is the cross-entropy with the
    mean distribution of ``teachers``; the rest is the cross-entropy with the targets. Of the rest, the fraction
    ``sampled_share`` is the mean cross-entropy with the tokens in ``sampled`` (..., K).
    """
    rows, flat = hidden.flatten(0, -2), targets.flatten()
    dtype = _product_type(rows, weight)
    all_targets, shares = flat[:, None], [1.0]
    if sampled is not None:
        all_targets = torch.cat([all_targets, sampled.flatten(0, -2)], dim=1)  # (N, 1 + K)
        shares = [1 - sampled_share, *[sampled_share / sampled.shape[-1]] * sampled.shape[-1]]
    flat_teachers = [(each.flatten(0, -2).to(dtype), _padded(head, dtype)) for each, head in teachers]
    loss: Tensor = _Chunked.apply(  # type: ignore[no-untyped-call]
        rows.to(dtype), weight, bias, all_targets, shares, label_smoothing, flat_teachers, teacher_share
    )
    return loss


@torch.no_grad()
def token_losses(hidden: Tensor, weight: Tensor, targets: Tensor, bias: Tensor | None = None) -> Tensor:
    """Return the loss of each target in nats, for evaluation: (..., C), (V, C), (...) -> (...)."""
    rows, weight, bias = _autocast(hidden.flatten(0, -2), weight, bias)
    size = _chunk_rows(rows.shape[0], weight)
    chunks = zip(torch.split(rows, size), torch.split(targets.flatten(), size), strict=True)
    losses = []
    for chunk, some in chunks:
        logits = functional.linear(chunk, weight).float()  # (n, V)
        logits = logits if bias is None else logits + bias.float()
        losses.append(functional.cross_entropy(logits, some, reduction="none"))
    return torch.cat(losses).view_as(targets)


class _Chunked(torch.autograd.Function):
    """Computes losses and gradients chunk by chunk in the forward pass; the backward pass scales the gradients."""

    @staticmethod
    def forward(
        ctx: Any,
        rows: Tensor,
        weight: Tensor,
        bias: Tensor | None,
        targets: Tensor,
        shares: Sequence[float],
        label_smoothing: float,
        teachers: Sequence[RowsAndHead],
        teacher_share: float,
    ) -> Tensor:
        wanted = ctx.needs_input_grad[:3]
        counted = targets[:, 0] != IGNORED  # (N,)
        share = 1 / counted.sum()
        total = torch.zeros((), device=rows.device)
        n_words = weight.shape[0]
        head, shift = _padded(weight, rows.dtype), None if bias is None else _padded(bias, rows.dtype)
        grad_rows = torch.empty_like(rows) if wanted[0] else None
        grad_weight = torch.zeros_like(head, dtype=torch.float32) if wanted[1] else None
        grad_bias = torch.zeros_like(head[:, 0], dtype=torch.float32) if wanted[2] else None
        size = _chunk_rows(rows.shape[0], weight)
        for start in range(0, rows.shape[0], size):
            here = slice(start, start + size)
            logits = functional.linear(rows[here], head, shift)  # (n, V), with padding on a GPU
            target = targets[here].where(counted[here, None], 0)  # (n, J)
            scale = (counted[here] * share)[:, None]  # (n, 1)
            teacher_logits = [functional.linear(each[here], each_head) for each, each_head in teachers]
            loss, slope = _kernel(
                logits, target, shares, scale, label_smoothing, n_words, teacher_logits, teacher_share
            )
            total = total + loss  # not in place: in a graph, torch 2.11 would return zeros for all gradients
            if grad_bias is not None:
                grad_bias += slope.float().sum(0)
            if grad_rows is not None:
                grad_rows[here] = slope @ head
            if grad_weight is not None and grad_weight.dtype == slope.dtype:
                grad_weight.addmm_(slope.mT, rows[here])
            elif grad_weight is not None:
                grad_weight += slope.mT @ rows[here]
        kept = [
            None if gradient is None else gradient[:n_words].to(tensor.dtype)
            for gradient, tensor in ((grad_weight, weight), (grad_bias, weight if bias is None else bias))
        ]
        ctx.save_for_backward(grad_rows, *kept)
        return total

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        return *(None if saved is None else saved * grads[0] for saved in ctx.saved_tensors), *[None] * 5


def loss_and_gradient(
    logits: Tensor,
    target: Tensor,
    shares: Sequence[float],
    scale: Tensor,
    label_smoothing: float,
    n_words: int,
    teacher_logits: Sequence[Tensor] = (),
    teacher_share: float = 0.0,
) -> tuple[Tensor, Tensor]:
    """Return the scaled loss of all rows in nats and its gradient: (n, V), (n, J), (J,), (n, 1) -> (), (n, V).

    The gradient with respect to the logits is the softmax minus the smoothed target, which is divided among J tokens by
    ``shares``. The fraction ``teacher_share`` of the target is the mean distribution of the teachers, given as logits
    (n, V). Logits at index ``n_words`` and above are padding.
    """
    words = torch.arange(logits.shape[-1], device=logits.device)
    exists = words < n_words
    wide = logits.float().where(exists, -torch.inf)
    normaliser = wide.logsumexp(dim=-1, keepdim=True)  # (n, 1)
    given: Any = sum((words == each) * share for each, share in zip(torch.split(target, 1, dim=1), shares, strict=True))
    wanted = given * (1 - label_smoothing) + exists * (label_smoothing / n_words)  # (n, V)
    if teacher_logits:
        guesses = [some.float().where(exists, -torch.inf).softmax(dim=-1) for some in teacher_logits]
        wanted = teacher_share * torch.stack(guesses).mean(dim=0) + (1 - teacher_share) * wanted
    if teacher_logits or label_smoothing or len(shares) > 1:
        losses = normaliser - (wanted * wide.where(exists, 0)).sum(dim=-1, keepdim=True)  # (n, 1)
    else:
        losses = normaliser - wide.gather(1, target)
    slope = ((wide - normaliser).exp() - wanted) * scale
    return (losses * scale).sum(), slope.to(logits.dtype)


def _in_place(
    logits: Tensor, target: Tensor, shares: Sequence[float], scale: Tensor, label_smoothing: float, n_words: int
) -> tuple[Tensor, Tensor]:
    """Compute ``loss_and_gradient`` in place, for use without compilation."""
    wide = logits.float()
    real = wide[:, :n_words]
    given = real.new_tensor(shares).mul(1 - label_smoothing).expand(target.shape)  # (n, J)
    wanted = (given * real.gather(1, target)).sum(dim=-1, keepdim=True)  # (n, 1)
    if label_smoothing:
        wanted += label_smoothing * real.mean(dim=-1, keepdim=True)
    highest = real.amax(dim=-1, keepdim=True)
    torch.softmax(real, dim=-1, out=real)
    losses = highest - real.amax(dim=-1, keepdim=True).log() - wanted  # the first two terms are a faster logsumexp
    if label_smoothing:
        real.sub_(label_smoothing / n_words)
    real.scatter_add_(1, target, -given).mul_(scale)
    wide[:, n_words:] = 0
    return (losses * scale).sum(), wide.to(logits.dtype)


_compiled: Any = None
_compiles = True


def _kernel(logits: Tensor, *how: Any) -> tuple[Tensor, Tensor]:
    """``loss_and_gradient``, compiled on a GPU if possible."""
    global _compiled, _compiles
    teacher_logits: Sequence[Tensor] = how[5]
    if logits.is_cuda and _compiles and not torch.compiler.is_compiling():
        try:
            _compiled = _compiled or torch.compile(loss_and_gradient, dynamic=False)
            result: tuple[Tensor, Tensor] = _compiled(logits, *how)
            return result
        except torch.OutOfMemoryError:
            raise
        except Exception:  # without a compiler: slower, but the same result
            _compiles = False
    return loss_and_gradient(logits, *how) if teacher_logits else _in_place(logits, *how[:5])


def _product_type(rows: Tensor, weight: Tensor) -> torch.dtype:
    """Return the type that autocast would use for matrix products."""
    kind = rows.device.type
    return torch.get_autocast_dtype(kind) if torch.is_autocast_enabled(kind) else weight.dtype


def _autocast(rows: Tensor, weight: Tensor, bias: Tensor | None) -> tuple[Tensor, Tensor, Tensor | None]:
    """Cast as autocast would for a linear layer, once instead of for each chunk."""
    dtype = _product_type(rows, weight)
    return rows.to(dtype), weight.to(dtype), None if bias is None else bias.to(dtype)


def _padded(weight: Tensor, dtype: torch.dtype) -> Tensor:
    """Return the head in the type used for products; on a GPU, padded to a multiple of 64 rows."""
    missing = -weight.shape[0] % _GPU_ROWS if weight.is_cuda else 0
    if not missing:
        return weight.to(dtype)
    padded = weight.new_zeros(weight.shape[0] + missing, *weight.shape[1:], dtype=dtype)
    padded[: weight.shape[0]] = weight
    return padded


def _chunk_rows(n_rows: int, weight: Tensor) -> int:
    """Return the rows of each chunk; on a GPU all chunks have one size, because kernels are compiled for each size."""
    most = max(1, (GPU_CHUNK_LOGITS if weight.is_cuda else CHUNK_LOGITS) // weight.shape[0])
    return -(-n_rows // -(-n_rows // most)) if weight.is_cuda and n_rows else most
