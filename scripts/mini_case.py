"""Write a test case for the web page: loss and gradients of a ``mini`` model, computed by torch.

The case is written to ``web/tests/data/mini.json``; a test generates it again and compares.
"""

import json
from pathlib import Path
from typing import Any

import torch
from torch.nn.functional import cross_entropy

from kotha.model.gpt import GPT
from kotha.model.presets import preset

FILE = Path(__file__).parents[1] / "web" / "tests" / "data" / "mini.json"
VOCABULARY, CONTEXT = 7, 6
TEXTS = [[0, 3, 1, 4, 1, 5], [0, 2, 6, 2]]


def made() -> dict[str, Any]:
    """Return the case: config, texts, weights, loss, gradients and probabilities."""
    torch.manual_seed(11)
    config = preset("mini").replace(vocab_size=VOCABULARY, context_length=CONTEXT, positions="learned")
    model = GPT(config).double()
    with torch.no_grad():
        for parameter in model.parameters():  # unlike the initial values, also for biases and gains
            parameter.copy_(torch.round(torch.randn_like(parameter) * 400) / 1000 + (parameter == 1))
    losses, foretold = [], []
    for text in TEXTS:
        logits = model(torch.tensor([text[:-1]]))[0]
        losses.append(cross_entropy(logits, torch.tensor(text[1:]), reduction="sum"))
        foretold.append(logits.softmax(-1).tolist())
    loss = torch.stack(losses).sum() / sum(len(text) - 1 for text in TEXTS)
    loss.backward()
    return {
        "config": {
            "vocabulary": VOCABULARY,
            "context": CONTEXT,
            "width": config.d_model,
            "heads": config.n_heads,
            "inner": config.d_ff,
        },
        "texts": TEXTS,
        "loss": loss.item(),
        "foretold": foretold,
        "weights": {name: parameter.flatten().tolist() for name, parameter in model.named_parameters()},
        "gradients": {name: _gradient(parameter).flatten().tolist() for name, parameter in model.named_parameters()},
    }


def _gradient(parameter: torch.Tensor) -> torch.Tensor:
    assert parameter.grad is not None, "every weight must contribute to the loss"
    return parameter.grad


if __name__ == "__main__":
    FILE.write_text(json.dumps(made()) + "\n", encoding="utf-8")
