"""ViT beside Hugging Face's ``ViTForImageClassification``."""

from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.model.conftest import converted
from transformers import ViTConfig as TheirConfig
from transformers import ViTForImageClassification

from kotha.errors import UsageError
from kotha.model.config import ViTConfig
from kotha.model.family import build
from kotha.model.presets import preset
from kotha.model.vit import ViT


@settings(max_examples=6, deadline=None, derandomize=True)
@given(
    n_layers=st.integers(1, 2),
    n_heads=st.sampled_from([1, 2, 4]),
    patch_size=st.integers(1, 4),
    n_side=st.integers(1, 4),
    n_channels=st.sampled_from([1, 3]),
    seed=st.integers(0, 1000),
)
def test_vit_is_hugging_faces(
    shake: Any,
    assert_parity: Any,
    n_layers: int,
    n_heads: int,
    patch_size: int,
    n_side: int,
    n_channels: int,
    seed: int,
) -> None:
    torch.manual_seed(seed)
    theirs = their_vit(n_layers, n_heads, patch_size, n_side, n_channels)
    shake(theirs)
    ours = our_vit(n_layers, n_heads, patch_size, n_side, n_channels)
    ours.load_state_dict(converted(ours, theirs.state_dict()))
    images = torch.randn(2, n_channels, n_side * patch_size, n_side * patch_size)
    assert_parity(ours, theirs, [(ours(images), theirs(images).logits)])


@pytest.mark.parametrize(("rows", "columns"), [(2, 2), (5, 5), (3, 6)])
def test_positions_stretch_as_hugging_faces_do(shake: Any, assert_parity: Any, rows: int, columns: int) -> None:
    torch.manual_seed(0)
    theirs = their_vit(1, 2, 2, 3, 1)
    shake(theirs)
    ours = our_vit(1, 2, 2, 3, 1)
    ours.load_state_dict(converted(ours, theirs.state_dict()))
    images = torch.randn(2, 1, 2 * rows, 2 * columns)
    other = theirs(images, interpolate_pos_encoding=True).logits
    assert_parity(ours, theirs, [(ours(images), other)])


def test_images_may_lie_in_memory_as_they_like() -> None:
    model = build(preset("vit-digits")).eval()
    images = torch.randn(2, 28, 28, 1).permute(0, 3, 1, 2)
    assert torch.equal(model(images), model(images.contiguous()))


def test_images_that_do_not_fit_are_refused() -> None:
    model = build(preset("vit-digits"))
    with pytest.raises(UsageError, match="images of 30x28 pixels do not divide into patches of patch_size=7; resize"):
        model(torch.zeros(1, 1, 30, 28))
    with pytest.raises(UsageError, match="images with 3 channels for a model of n_channels=1"):
        model(torch.zeros(1, 3, 28, 28))


def our_vit(n_layers: int, n_heads: int, patch_size: int, n_side: int, n_channels: int) -> ViT:
    return ViT(
        ViTConfig(
            d_model=16,
            n_heads=n_heads,
            d_ff=24,
            n_layers=n_layers,
            image_size=patch_size * n_side,
            patch_size=patch_size,
            n_channels=n_channels,
            n_classes=5,
        )
    )


def their_vit(n_layers: int, n_heads: int, patch_size: int, n_side: int, n_channels: int) -> ViTForImageClassification:
    return ViTForImageClassification(
        TheirConfig(
            hidden_size=16,
            num_hidden_layers=n_layers,
            num_attention_heads=n_heads,
            intermediate_size=24,
            image_size=patch_size * n_side,
            patch_size=patch_size,
            num_channels=n_channels,
            num_labels=5,
        )
    )
