"""What the tests of the bodies share: one thread, random weights, and what "the same" means beside another library."""

from collections.abc import Callable, Iterator

import pytest
import torch
from torch import Tensor, nn

Convert = Callable[[dict[str, Tensor]], dict[str, Tensor]]


@pytest.fixture(autouse=True, scope="session")
def one_thread() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(scope="session")
def shake() -> Callable[[nn.Module], None]:
    def shake(model: nn.Module) -> None:
        """Random weights everywhere, also where models start at 0 and 1."""
        with torch.no_grad():
            for parameter in (each for each in model.parameters() if each.requires_grad):
                parameter.add_(torch.randn_like(parameter) * 0.1)

    return shake


@pytest.fixture(scope="session")
def assert_parity() -> Callable[..., None]:
    def assert_parity(
        ours: nn.Module, theirs: nn.Module, convert: Convert, outputs: list[tuple[Tensor, Tensor]]
    ) -> None:
        """Outputs, each (ours, theirs), to 1e-5, and the gradient of every weight to 1e-4."""
        for mine, other in outputs:
            assert mine.shape == other.shape
            assert (mine - other).abs().max() <= 1e-5
        directions = [torch.randn_like(mine) for mine, _ in outputs]
        for side in (0, 1):
            loss = sum((pair[side] * direction).sum() for pair, direction in zip(outputs, directions, strict=True))
            assert isinstance(loss, Tensor)
            loss.backward()
        expected = convert(gradients(theirs))
        measured = gradients(ours)
        assert set(measured) <= set(expected)
        for name, gradient in measured.items():
            assert (gradient - expected[name]).abs().max() <= 1e-4, name

    return assert_parity


def gradients(model: nn.Module) -> dict[str, Tensor]:
    """By name, tied weights under each of theirs; zero where nothing flowed."""
    named = model.named_parameters(remove_duplicate=False)
    return {name: torch.zeros_like(p) if p.grad is None else p.grad for name, p in named}
