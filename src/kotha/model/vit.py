"""ViT: an encoder that classifies images, with image patches as tokens.

Patches are flattened and projected to the model's width (Dosovitskiy et al. 2020, https://arxiv.org/abs/2010.11929).
"""

import torch
from torch import Tensor, nn
from torch.nn.functional import interpolate

from kotha.errors import UsageError
from kotha.model.block import Block, Stack
from kotha.model.config import ViTConfig
from kotha.model.initialization import STANDARD_DEVIATION, initialize


class PatchEmbedding(nn.Module):
    """Cut images into squares and project each: (B, n_channels, height, width) -> (B, patches, C)."""

    def __init__(self, n_channels: int, patch_size: int, d_model: int) -> None:
        super().__init__()
        self.n_channels, self.patch_size = n_channels, patch_size
        self.projection = nn.Linear(n_channels * patch_size**2, d_model)

    def forward(self, images: Tensor) -> Tensor:
        """Embed patches row by row; each patch is flattened channel by channel."""
        rows, columns = self.grid(images)
        size = self.patch_size
        squares = images.reshape(-1, self.n_channels, rows, size, columns, size)
        flat = squares.permute(0, 2, 4, 1, 3, 5).flatten(1, 2).flatten(2)  # (B, patches, n_channels size size)
        y: Tensor = self.projection(flat)  # (B, patches, C)
        return y

    def grid(self, images: Tensor) -> tuple[int, int]:
        """The number of rows and columns of patches."""
        _, n_channels, height, width = images.shape
        if n_channels != self.n_channels:
            raise UsageError(
                "the images have {n} channels, but the model expects n_channels={wanted}",
                n=n_channels,
                wanted=self.n_channels,
            )
        if height % self.patch_size or width % self.patch_size:
            raise UsageError(
                "image size {height}x{width} is not divisible by patch_size={patch_size}; resize or crop the "
                "images to a multiple of it",
                height=height,
                width=width,
                patch_size=self.patch_size,
            )
        return height // self.patch_size, width // self.patch_size


class GridPositions(nn.Module):
    """Learned positions for the class token and a square grid of patches, interpolated for other grids."""

    def __init__(self, n_side: int, d_model: int) -> None:
        super().__init__()
        self.n_side = n_side
        self.table = nn.Embedding(1 + n_side**2, d_model)

    def forward(self, rows: int, columns: int) -> Tensor:
        """Class token first, then patches row by row: (1 + rows columns, C)."""
        table: Tensor = self.table.weight
        if rows == columns == self.n_side:
            return table
        grid = table[1:].view(1, self.n_side, self.n_side, -1).permute(0, 3, 1, 2)  # (1, C, side, side)
        grid = interpolate(grid, size=(rows, columns), mode="bicubic", align_corners=False)  # (1, C, rows, columns)
        return torch.cat((table[:1], grid.flatten(2)[0].mT))


class ViT(nn.Module):
    """Maps images to logits for each class: (B, n_channels, height, width) -> (B, n_classes)."""

    def __init__(self, config: ViTConfig) -> None:
        super().__init__()
        self.config = config
        self.patches = PatchEmbedding(config.n_channels, config.patch_size, config.d_model)
        self.class_token = nn.Parameter(torch.empty(config.d_model))
        self.positions = GridPositions(config.image_size // config.patch_size, config.d_model)
        self.dropout = nn.Dropout(config.dropout)
        self.stack = Stack(config, [Block(config) for _ in range(config.n_layers)])
        self.head = nn.Linear(config.d_model, config.n_classes)
        initialize(self, config)
        nn.init.normal_(self.class_token, std=STANDARD_DEVIATION)

    def forward(self, images: Tensor) -> Tensor:
        """Logits from the class token: (B, n_channels, height, width) -> (B, n_classes).

        If the image size differs from the config, positions are interpolated.
        """
        logits: Tensor = self.head(self.hidden(images)[:, 0])
        return logits

    def hidden(self, images: Tensor) -> Tensor:
        """Contextual vectors of the class token and all patches: -> (B, 1 + patches, C)."""
        patches = self.patches(images)  # (B, patches, C)
        first = self.class_token.expand(patches.shape[0], 1, -1)
        x = torch.cat((first, patches), dim=1) + self.positions(*self.patches.grid(images))  # (B, 1 + patches, C)
        y: Tensor = self.stack(self.dropout(x))
        return y
