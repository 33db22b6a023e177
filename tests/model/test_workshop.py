"""The workshop's sheet (questions 1 to 5), computed by the attention class of the 58M model."""

import math

import torch
from torch import Tensor

from kotha.model.attention import Attention
from kotha.model.family import build
from kotha.model.presets import preset

X = [[1.0, 0.5, 0.2, 0.8], [0.3, 0.9, 0.4, 0.1], [0.7, 0.2, 0.6, 0.5]]
SHEET = {
    "query": [[0.1, 0.2], [0.3, 0.1], [0.2, 0.4], [0.1, 0.3]],
    "key": [[0.2, 0.1], [0.1, 0.3], [0.4, 0.2], [0.3, 0.1]],
    "value": [[0.3, 0.2], [0.2, 0.4], [0.1, 0.3], [0.4, 0.1]],
}
Q = [[0.37, 0.57], [0.39, 0.34], [0.30, 0.55]]
K = [[0.57, 0.37], [0.34, 0.39], [0.55, 0.30]]
# The workshop's results, question by question; -inf at masked positions.
SCORES = [[sum(a * b for a, b in zip(q, k, strict=True)) / math.sqrt(2) for k in K] for q in Q]
ON_PAPER = {
    "queries": Q,
    "keys": K,
    "values": [[0.74, 0.54], [0.35, 0.55], [0.51, 0.45]],
    "scores": SCORES,
    "masked_scores": [line[: row + 1] + [-math.inf] * (2 - row) for row, line in enumerate(SCORES)],
    "weights": [[1, 0, 0], [0.514651, 0.485349, 0], [0.341432, 0.327712, 0.330856]],
    "head_outputs": [[0.74, 0.54], [0.550714, 0.544853], [0.536095, 0.5135]],
}


def test_the_sheet_is_what_the_58m_models_attention_computes() -> None:
    """The model's attention in the sheet's sizes; the first head has the sheet's matrices."""
    config = preset("bangla-58m").replace(d_model=4, n_heads=2, n_layers=1, vocab_size=3, context_length=3)
    model = build(config.replace(attention_dropout=0.0)).double()
    attention = model.get_submodule("stack.blocks.0.attention")
    assert isinstance(attention, Attention)
    with torch.no_grad():
        for name, sheet in SHEET.items():
            getattr(attention, name).weight[:2] = torch.tensor(sheet, dtype=torch.float64).mT
    seen: dict[str, Tensor] = {}
    for name in ON_PAPER:
        hook = lambda module, inputs, output, name=name: seen.update({name: output[0, 0].detach()})
        attention.get_submodule(name).register_forward_hook(hook)
    attention.implementation = "explicit"
    attention(torch.tensor([X], dtype=torch.float64), "causal")
    for name, expected in ON_PAPER.items():
        torch.testing.assert_close(seen[name], torch.tensor(expected, dtype=torch.float64), rtol=0, atol=1e-6, msg=name)
