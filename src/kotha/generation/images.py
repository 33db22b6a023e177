"""What a ViT says of an image: the probability of each class."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from kotha.artifacts.model_folder import Bundle
from kotha.errors import UsageError
from kotha.generation.classes import Classified
from kotha.i18n.message import Message
from kotha.i18n.wording import OnProgress
from kotha.model.evaluating import evaluating
from kotha.model.vit import ViT
from kotha.storage.images import read_picture

_AT_ONCE = 256


def classify_images(bundle: Bundle, files: Sequence[Path]) -> list[Classified]:
    """What a model says of each image file."""
    config = vit_of(bundle).config
    return [classify_pixels(bundle, read_picture(file, config.image_size, config.n_channels)) for file in files]


def classify_pixels(bundle: Bundle, image: NDArray[np.float32]) -> Classified:
    """What a model says of an image as it was read, (n_channels, height, width)."""
    model = vit_of(bundle)
    [row] = probabilities(model, image[None])
    names, order = model.config.class_names, row.argsort(descending=True).tolist()
    return Classified(names[order[0]], {names[place]: float(row[place]) for place in order})


@torch.no_grad()
def probabilities(
    model: ViT, images: NDArray[np.uint8] | NDArray[np.float32], on_progress: OnProgress | None = None
) -> Tensor:
    """The probability of each class for each image, (N, n_channels, height, width): -> (N, K)."""
    found, device = [], next(model.parameters()).device
    with evaluating(model):
        for start in range(0, len(images), _AT_ONCE):
            some = torch.from_numpy(images[start : start + _AT_ONCE])
            some = some.float() / 127.5 - 1 if some.dtype == torch.uint8 else some
            found.append(model(some.to(device)).float().softmax(dim=-1).cpu())
            if on_progress is not None:
                on_progress(Message("looking"), min(start + _AT_ONCE, len(images)), len(images))
    return torch.cat(found)


def vit_of(bundle: Bundle) -> ViT:
    """The model of a bundle, which must be one that reads images."""
    if not isinstance(bundle.model, ViT):
        raise UsageError("this is a {family} model; only a ViT reads images", family=bundle.config.family)
    return bundle.model
