"""The workshop's sheet, questions 1 to 5, out of the attention class that the 58M model uses."""

import math

import pytest
import torch
from torch import Tensor

from kotha.model.attention import Attention
from kotha.model.family import build
from kotha.model.presets import preset

X = [[1.0, 0.5, 0.2, 0.8], [0.3, 0.9, 0.4, 0.1], [0.7, 0.2, 0.6, 0.5]]
W_Q = [[0.1, 0.2], [0.3, 0.1], [0.2, 0.4], [0.1, 0.3]]
W_K = [[0.2, 0.1], [0.1, 0.3], [0.4, 0.2], [0.3, 0.1]]
W_V = [[0.3, 0.2], [0.2, 0.4], [0.1, 0.3], [0.4, 0.1]]

Rows = list[list[float]]


def times(a: Rows, b: Rows) -> Rows:
    """A matrix product as one does it on paper."""
    return [[sum(x * y for x, y in zip(row, column, strict=True)) for column in zip(*b, strict=True)] for row in a]


@pytest.fixture(scope="module")
def seen() -> dict[str, Tensor]:
    """What the 58M model's attention, cut to the sheet's sizes, computes for the sheet's tokens in its first head."""
    config = preset("bangla-58m").replace(d_model=4, n_heads=2, n_layers=1, vocab_size=3, context_length=3)
    model = build(config.replace(attention_dropout=0.0)).double()
    attention = model.get_submodule("stack.blocks.0.attention")
    assert isinstance(attention, Attention)
    with torch.no_grad():
        for matrix, sheet in ((attention.query, W_Q), (attention.key, W_K), (attention.value, W_V)):
            matrix.weight[:2] = torch.tensor(sheet, dtype=torch.float64).mT
    seen: dict[str, Tensor] = {}
    for name in ("queries", "keys", "values", "scores", "masked_scores", "weights", "head_outputs"):
        hook = lambda module, inputs, output, name=name: seen.update({name: output[0, 0].detach()})
        attention.get_submodule(name).register_forward_hook(hook)
    attention.reading = "explicit"
    attention(torch.tensor([X], dtype=torch.float64), "causal")
    return seen


def close(tensor: Tensor, expected: Rows) -> bool:
    return bool((tensor - torch.tensor(expected, dtype=torch.float64)).abs().max() <= 1e-6)


def test_question_1_queries_keys_values(seen: dict[str, Tensor]) -> None:
    assert close(seen["queries"], times(X, W_Q))
    assert close(seen["keys"], times(X, W_K))
    assert close(seen["values"], times(X, W_V))
    assert close(seen["queries"], [[0.37, 0.57], [0.39, 0.34], [0.30, 0.55]])
    assert close(seen["keys"], [[0.57, 0.37], [0.34, 0.39], [0.55, 0.30]])
    assert close(seen["values"], [[0.74, 0.54], [0.35, 0.55], [0.51, 0.45]])


def test_question_2_scores(seen: dict[str, Tensor]) -> None:
    keys_upright = [list(column) for column in zip(*times(X, W_K), strict=True)]
    assert close(seen["scores"], [[s / math.sqrt(2) for s in row] for row in times(times(X, W_Q), keys_upright)])


def test_question_3_the_mask(seen: dict[str, Tensor]) -> None:
    hidden = seen["masked_scores"] == -math.inf
    assert hidden.tolist() == [[False, True, True], [False, False, True], [False, False, False]]
    assert torch.equal(seen["masked_scores"][~hidden], seen["scores"][~hidden])


def test_question_4_softmax(seen: dict[str, Tensor]) -> None:
    first, second = (math.exp(score) for score in seen["scores"][1, :2].tolist())
    assert seen["weights"][1, 0].item() == pytest.approx(first / (first + second), abs=1e-9)
    assert close(seen["weights"], [[1, 0, 0], [0.514651, 0.485349, 0], [0.341432, 0.327712, 0.330856]])


def test_question_5_the_output(seen: dict[str, Tensor]) -> None:
    assert close(seen["head_outputs"], times(seen["weights"].tolist(), times(X, W_V)))
    assert close(seen["head_outputs"], [[0.74, 0.54], [0.550714, 0.544853], [0.536095, 0.5135]])
