"""``mini`` in torch compared with its one-page NumPy version."""

import numpy as np
import pytest
import torch
from torch import Tensor

from kotha.model.attention import set_implementation
from kotha.model.family import build
from kotha.model.mini_numpy import mini
from kotha.model.presets import preset


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_torch_and_numpy_agree(seed: int, dtype: torch.dtype) -> None:
    torch.manual_seed(seed)
    model = build(preset("mini"))
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.normal_(std=0.5)
    model = model.to(dtype)
    set_implementation(model, "explicit")
    seen: dict[str, Tensor] = {}
    block = "stack.blocks.0"
    places = {
        "embeddings": "tokens",
        "after_attention": f"{block}.attention_norm",
        "after_feedforward": f"{block}.feedforward_norm",
    }
    for name in ("queries", "keys", "values", "scores", "masked_scores", "weights", "head_outputs"):
        places[name] = f"{block}.attention.{name}"
    for name, place in places.items():
        hook = lambda module, inputs, output, name=name: seen.update({name: output[0].detach()})
        model.get_submodule(place).register_forward_hook(hook)
    tokens = torch.randint(20, (1, 4))
    logits = model(tokens)[0].detach()
    steps = mini({name: tensor.numpy() for name, tensor in model.state_dict().items()}, tokens[0].tolist())
    for name, tensor in {**seen, "logits": logits, "probabilities": logits.softmax(-1)}.items():
        assert tensor.shape == steps[name].shape, name
        np.testing.assert_allclose(tensor.numpy(), steps[name], rtol=1e-6, atol=1e-6, err_msg=name)
    assert steps["next_token"] == int(logits[-1].argmax())
