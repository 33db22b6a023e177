"""Attention masks: causal and padding.

A mask is ``None`` (every position attends to all), ``"causal"`` (no position attends to later ones; kernels support
this without a mask tensor), or a boolean tensor that broadcasts to (B, H, T, S), where True allows attention.
"""

from typing import Literal

import torch
from torch import Tensor

Mask = Tensor | Literal["causal"] | None


def causal_mask(n_queries: int, n_keys: int, device: torch.device | None = None) -> Tensor:
    """Return a mask that allows each position to attend to itself and to earlier positions: (T, S).

    >>> causal_mask(3, 3).int()
    tensor([[1, 0, 0],
            [1, 1, 0],
            [1, 1, 1]], dtype=torch.int32)
    """
    return torch.ones(n_queries, n_keys, dtype=torch.bool, device=device).tril()


def padding_mask(real: Tensor) -> Tensor:
    """Return a mask that excludes padding from attention: (B, S) -> (B, 1, 1, S).

    >>> padding_mask(torch.tensor([[True, True, False]])).shape
    torch.Size([1, 1, 1, 3])
    """
    return real.bool()[:, None, None, :]


def decoder_mask(real: Tensor | None) -> Mask:
    """Return the decoder's mask: causal, combined with the padding mask if there is padding."""
    if real is None:
        return "causal"
    return causal_mask(real.shape[-1], real.shape[-1], real.device) & padding_mask(real)  # (B, 1, T, T)


def encoder_mask(real: Tensor | None) -> Mask:
    """Return the encoder's mask: the padding mask, or None if there is no padding."""
    return None if real is None else padding_mask(real)


def as_tensor(mask: Mask, scores: Tensor) -> Tensor | None:
    """Convert a mask to a boolean tensor for scores (B, H, T, S), or None; "causal" becomes a tensor."""
    return causal_mask(scores.shape[-2], scores.shape[-1], scores.device) if isinstance(mask, str) else mask
