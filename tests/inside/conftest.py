"""A new model of each architecture for every test, with inputs."""

import pytest
import torch
from tests.inside.small_models import make
from torch import Tensor, nn


@pytest.fixture(params=("gpt", "gpt-grouped", "bert", "seq2seq", "vit"))
def family_member(request: pytest.FixtureRequest) -> tuple[nn.Module, list[Tensor]]:
    """A model of each architecture, with inputs for two rows."""
    return with_inputs(request.param)


@pytest.fixture
def gpt() -> tuple[nn.Module, list[Tensor]]:
    return with_inputs("gpt")


@pytest.fixture
def bert() -> tuple[nn.Module, list[Tensor]]:
    return with_inputs("bert")


def with_inputs(body: str) -> tuple[nn.Module, list[Tensor]]:
    """Build a model of one architecture, with inputs for two rows."""
    model = make(body).model
    if body == "vit":
        return model, [torch.randn(2, 1, 8, 8)]
    tokens = torch.randint(0, 50, (2, 7))
    return model, [torch.randint(0, 50, (2, 9)), tokens] if body == "seq2seq" else [tokens]
