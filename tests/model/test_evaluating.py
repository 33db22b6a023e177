"""Evaluation mode ends with its block, even after an error."""

import pytest
from torch import nn

from kotha.model.evaluating import evaluating


@pytest.mark.parametrize("training", [True, False])
def test_the_mode_is_restored_even_after_an_error(training: bool) -> None:
    model = nn.Sequential(nn.Dropout(0.5)).train(training)
    with pytest.raises(ValueError, match="inside"), evaluating(model):
        assert not model.training and not model[0].training
        raise ValueError("inside")
    assert model.training is training and model[0].training is training


def test_training_mode_is_restored_after_a_failed_generation() -> None:
    import torch

    from kotha.generation.plain import continue_plainly
    from kotha.generation.settings import SamplingSettings
    from kotha.model.gpt import GPT
    from kotha.model.presets import preset

    model = GPT(preset("mini")).train()
    with pytest.raises(Exception, match="99"), torch.no_grad():
        continue_plainly(model, [99], 1, SamplingSettings())
    assert model.training
