"""Where a token stands: added to its vector, or turned into its queries and keys.

Attention alone does not know order. Learned and sinusoidal positions add a vector for each place; rotary positions
turn each pair of a head's numbers by an angle that grows with the place, so that a query and a key meet at the
angle between them (RoPE, Su et al. 2021, https://arxiv.org/abs/2104.09864). Nothing is kept in buffers: angles are
computed from the positions of the call, which are few beside the rest, so that a model has no state but its
weights.
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
    """Order left unsaid; and what every kind of position does where it does nothing."""

    def forward(self, x: Tensor, positions: Tensor) -> Tensor:
        """Put positions, (T,) or (B, T), into embedded tokens: (B, T, C) -> (B, T, C)."""
        return x

    def rotation(self, positions: Tensor) -> Rotation | None:
        """How far attention turns queries and keys; None where it does not."""
        return None


class LearnedPositions(NoPositions):
    """A table with a row for each position."""

    def __init__(self, context_length: int, d_model: int) -> None:
        super().__init__()
        self.table = nn.Embedding(context_length, d_model)

    def forward(self, x: Tensor, positions: Tensor) -> Tensor:
        """Add each position's row."""
        y: Tensor = x + self.table(positions)
        return y


class SinusoidalPositions(NoPositions):
    """Sines and cosines of slower and slower waves, one after the other as the 2017 paper prints them."""

    def forward(self, x: Tensor, positions: Tensor) -> Tensor:
        """Add the waves in pairs."""
        sin, cos = waves(positions, x.shape[-1])  # each (..., T, C/2)
        return x + torch.stack((sin, cos), dim=-1).flatten(-2).to(x.dtype)


class HalvesPositions(NoPositions):
    """The same waves in another order, all sines before all cosines, as the paper's code and Marian have them."""

    def forward(self, x: Tensor, positions: Tensor) -> Tensor:
        """Add the waves in halves."""
        return x + torch.cat(waves(positions, x.shape[-1]), dim=-1).to(x.dtype)


class RotaryPositions(NoPositions):
    """Angles by which attention turns queries and keys, in the layout of Llama and Qwen3."""

    def __init__(self, d_head: int, base: float) -> None:
        super().__init__()
        self.d_head, self.base = d_head, base

    def rotation(self, positions: Tensor) -> Rotation:
        """Angles of a head's D/2 pairs at (T,) or (B, T) positions."""
        pairs = torch.arange(0, self.d_head, 2, dtype=torch.float32, device=positions.device)
        speeds = 1.0 / self.base ** (pairs / self.d_head)  # (D/2,)
        angles = positions[..., None].float() * speeds  # (..., T, D/2)
        if angles.dim() == 3:
            angles = angles[:, None]  # a place for the heads: (B, 1, T, D/2)
        return Rotation(angles.cos(), angles.sin())


def waves(positions: Tensor, width: int) -> tuple[Tensor, Tensor]:
    """Sine and cosine of each position at falling speeds: (..., T) -> twice (..., T, width/2).

    >>> sin, cos = waves(torch.tensor([0]), 4)
    >>> sin.tolist(), cos.tolist()
    ([[0.0, 0.0]], [[1.0, 1.0]])
    """
    # In double, where the device has it: at position 500 a float's angle is off by 3e-5.
    exact = torch.float32 if positions.device.type == "mps" else torch.float64
    pairs = torch.arange(0, width, 2, dtype=exact, device=positions.device)
    angles = positions[..., None].to(exact) / 10_000 ** (pairs / width)
    return angles.sin().float(), angles.cos().float()


def rotate(x: Tensor, rotation: Rotation) -> Tensor:
    """Turn each pair (i, i + D/2) by its angle: (B, H, T, D) -> (B, H, T, D)."""
    cos, sin = rotation.cos.to(x.dtype), rotation.sin.to(x.dtype)
    first, second = x.chunk(2, dim=-1)  # each (B, H, T, D/2)
    return torch.cat((first * cos - second * sin, second * cos + first * sin), dim=-1)


def make_positions(config: TextConfig) -> NoPositions:
    """The positions that a config names."""
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
