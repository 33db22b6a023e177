"""The workshop's sheet as a model: X is the token table, its matrices are the first of two heads; norms come last."""

import torch

from kotha.course.worksheet.workshop import Given
from kotha.model.config import GPTConfig
from kotha.model.gpt import GPT


def as_model(given: Given) -> GPT:
    """A model in double precision whose first head is the sheet's."""
    n_tokens, width = given.x.shape
    config = GPTConfig(
        vocab_size=n_tokens,
        context_length=n_tokens,
        n_layers=1,
        d_model=width,
        n_heads=2,
        d_head=given.w_q.shape[1],
        norm_order="post",
        positions="none",
        attention_bias=False,
    )
    model = GPT(config).double().eval()
    attention = model.get_submodule("stack.blocks.0.attention")
    with torch.no_grad():
        model.tokens.weight.copy_(torch.from_numpy(given.x))
        for name, matrix in {"query": given.w_q, "key": given.w_k, "value": given.w_v}.items():
            attention.get_parameter(f"{name}.weight")[: matrix.shape[1]] = torch.from_numpy(matrix).mT
    return model
