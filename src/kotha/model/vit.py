"""ViT: an encoder whose tokens are patches of an image. It says what the image shows.

Dosovitskiy et al. 2020, https://arxiv.org/abs/2010.11929.
"""

import torch
from torch import Tensor, nn

from kotha.model.block import Block, Stack
from kotha.model.config import ViTConfig
from kotha.model.embedding import GridPositions, PatchEmbedding
from kotha.model.initialization import STANDARD_DEVIATION, initialize


class ViT(nn.Module):
    """Images in, scores for each class out: (B, n_channels, height, width) -> (B, n_classes)."""

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

        Images of another size than the config's have their positions stretched to fit.
        """
        logits: Tensor = self.head(self.hidden(images)[:, 0])
        return logits

    def hidden(self, images: Tensor) -> Tensor:
        """The class token and every patch in the light of all: -> (B, 1 + patches, C)."""
        patches = self.patches(images)  # (B, patches, C)
        first = self.class_token.expand(patches.shape[0], 1, -1)
        x = torch.cat((first, patches), dim=1) + self.positions(*self.patches.grid(images))  # (B, 1 + patches, C)
        y: Tensor = self.stack(self.dropout(x))
        return y

    @torch.no_grad()
    def at_size(self, image_size: int) -> "ViT":
        """The same model for images of another size, to be trained further there."""
        config = self.config.replace(image_size=image_size)
        n_side = config.image_size // config.patch_size
        weights = {**self.state_dict(), "positions.table.weight": self.positions(n_side, n_side)}
        model = ViT(config).to(self.class_token.device, self.class_token.dtype)
        model.load_state_dict(weights)
        return model
