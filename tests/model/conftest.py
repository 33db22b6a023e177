"""Fixtures for the model tests: one thread, random weights, and the comparison with another library."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from kotha.export.huggingface.config import choose_layout
from kotha.export.weight_names import shapes_of

Convert = Callable[[dict[str, Tensor]], dict[str, Tensor]]


@pytest.fixture(autouse=True, scope="session")
def one_thread() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def shake(model: nn.Module) -> None:
    """Random values for all weights, including those initialized to 0 or 1."""
    with torch.no_grad():
        for parameter in (each for each in model.parameters() if each.requires_grad):
            parameter.add_(torch.randn_like(parameter) * 0.1)


def assert_parity(
    ours: Any, theirs: nn.Module, outputs: list[tuple[Tensor, Tensor]], convert: Convert | None = None
) -> None:
    """Compare outputs, each (ours, theirs), to within 1e-5, and the gradients of all weights to within 1e-4."""
    for mine, other in outputs:
        assert mine.shape == other.shape
        assert (mine - other).abs().max() <= 1e-5
    directions = [torch.randn_like(mine) for mine, _ in outputs]
    for side in (0, 1):
        loss = sum((pair[side] * direction).sum() for pair, direction in zip(outputs, directions, strict=True))
        assert isinstance(loss, Tensor)
        loss.backward()
    expected = convert(gradients(theirs)) if convert else converted(ours, gradients(theirs))
    measured = gradients(ours)
    assert set(measured) <= set(expected)
    for name, gradient in measured.items():
        assert (gradient - expected[name]).abs().max() <= 1e-4, name


def converted(ours: Any, theirs: dict[str, Tensor]) -> dict[str, Tensor]:
    """The weights (or their gradients) of a transformers model by Kotha's names."""
    layout, shapes = choose_layout(ours.config), shapes_of(ours.named_parameters(remove_duplicate=False))
    places = layout.reference_weights(shapes, ours.config)
    named = {layout.usual(name, places): tensor for name, tensor in theirs.items()}
    return layout.from_reference_layout({name: tensor for name, tensor in named.items() if name}, shapes, ours.config)


def gradients(model: nn.Module) -> dict[str, Tensor]:
    """Gradients by name, tied weights under each of their names; zeros for missing gradients."""
    named = model.named_parameters(remove_duplicate=False)
    return {name: torch.zeros_like(p) if p.grad is None else p.grad for name, p in named}
