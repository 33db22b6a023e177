"""Position encodings: learned, sinusoidal, rotary or none.

Attention itself does not depend on order. Learned and sinusoidal encodings add a vector for each position; rotary
encodings rotate each pair of a head's numbers by an angle proportional to the position, so that a query-key product
depends on the distance (RoPE, Su et al. 2021, https://arxiv.org/abs/2104.09864). Angles are computed in each call,
which is cheap, and not stored in buffers, so a model has no state except its weights.
"""

from typing import NamedTuple

import torch
from torch import Tensor, nn

from kotha.model.config import TextConfig


class Rotation(NamedTuple):
    """Cosine and sine of each position's angles; each broadcasts to (B, H, T, D/2)."""

    cos: Tensor
    sin: Tensor


class NoPositions(nn.Module):
    """No position encoding; the base class of all other encodings."""

    def forward(self, x: Tensor, positions: Tensor) -> Tensor:
        """Add positions, (T,) or (B, T), to embedded tokens: (B, T, C) -> (B, T, C)."""
        return x

    def rotation(self, positions: Tensor) -> Rotation | None:
        """Return the rotation of queries and keys, or None."""
        return None


class LearnedPositions(NoPositions):
    """A table with a row for each position."""

    def __init__(self, context_length: int, d_model: int) -> None:
        super().__init__()
        self.table = nn.Embedding(context_length, d_model)

    def forward(self, x: Tensor, positions: Tensor) -> Tensor:
        """Add the embedding of each position."""
        y: Tensor = x + self.table(positions)
        return y


class SinusoidalPositions(NoPositions):
    """Sines and cosines of increasing wavelengths, interleaved as in the 2017 paper."""

    def forward(self, x: Tensor, positions: Tensor) -> Tensor:
        """Add alternating sines and cosines."""
        sin, cos = waves(positions, x.shape[-1])  # each (..., T, C/2)
        return x + torch.stack((sin, cos), dim=-1).flatten(-2).to(x.dtype)


class HalvesPositions(NoPositions):
    """The same sines and cosines, with all sines before all cosines, as in the paper's code and in Marian."""

    def forward(self, x: Tensor, positions: Tensor) -> Tensor:
        """Add all sines, then all cosines."""
        return x + torch.cat(waves(positions, x.shape[-1]), dim=-1).to(x.dtype)


class RotaryPositions(NoPositions):
    """Rotary positions (RoPE) in the layout of Llama and Qwen3."""

    def __init__(self, d_head: int, base: float) -> None:
        super().__init__()
        self.d_head, self.base = d_head, base

    def rotation(self, positions: Tensor) -> Rotation:
        """Return the angles of a head's D/2 pairs at (T,) or (B, T) positions."""
        pairs = torch.arange(0, self.d_head, 2, dtype=torch.float32, device=positions.device)
        speeds = 1.0 / self.base ** (pairs / self.d_head)  # (D/2,)
        angles = positions[..., None].float() * speeds  # (..., T, D/2)
        if angles.dim() == 3:
            angles = angles[:, None]  # a dimension for the heads: (B, 1, T, D/2)
        return Rotation(angles.cos(), angles.sin())


def waves(positions: Tensor, width: int) -> tuple[Tensor, Tensor]:
    """Return the sine and cosine of each position at increasing wavelengths: (..., T) -> two tensors (..., T, width/2).

    >>> sin, cos = waves(torch.tensor([0]), 4)
    >>> sin.tolist(), cos.tolist()
    ([[0.0, 0.0]], [[1.0, 1.0]])
    """
    # Computed in double precision if the device supports it; in float32 the angle at position 500 is off by 3e-5.
    exact = torch.float32 if positions.device.type == "mps" else torch.float64
    pairs = torch.arange(0, width, 2, dtype=exact, device=positions.device)
    angles = positions[..., None].to(exact) / 10_000 ** (pairs / width)
    return angles.sin().float(), angles.cos().float()


def rotate(x: Tensor, rotation: Rotation) -> Tensor:
    """Rotate each pair (i, i + D/2) by its angle: (B, H, T, D) -> (B, H, T, D)."""
    cos, sin = rotation.cos.to(x.dtype), rotation.sin.to(x.dtype)
    first, second = x.chunk(2, dim=-1)  # each (B, H, T, D/2)
    return torch.cat((first * cos - second * sin, second * cos + first * sin), dim=-1)


def make_positions(config: TextConfig) -> NoPositions:
    """Return the position encoding for a config."""
    match config.positions:
        case "learned":
            return LearnedPositions(config.context_length, config.d_model)
        case "sinusoidal":
            return SinusoidalPositions()
        case "sinusoidal-halves":
            return HalvesPositions()
        case "rotary":
            return RotaryPositions(config.d_head, config.rotary_base)
        case "none":
            return NoPositions()
