"""The workshop's sheet as a model: X is the token table, its matrices are the first of two heads; norms come last."""

import torch

from kotha.course.worksheet.operations import Matrices
from kotha.model.config import GPTConfig
from kotha.model.gpt import GPT


def as_model(given: Matrices) -> GPT:
    """A model in double precision whose first head is the sheet's."""
    n_tokens, width = given["X"].shape
    config = GPTConfig(
        vocab_size=n_tokens,
        context_length=n_tokens,
        n_layers=1,
        d_model=width,
        n_heads=2,
        d_head=given["W_Q"].shape[1],
        norm_order="post",
        positions="none",
        attention_bias=False,
    )
    model = GPT(config).double().eval()
    attention = model.get_submodule("stack.blocks.0.attention")
    with torch.no_grad():
        model.tokens.weight.copy_(torch.from_numpy(given["X"]))
        for name, matrix in {"query": given["W_Q"], "key": given["W_K"], "value": given["W_V"]}.items():
            attention.get_parameter(f"{name}.weight")[: matrix.shape[1]] = torch.from_numpy(matrix).mT
    return model
