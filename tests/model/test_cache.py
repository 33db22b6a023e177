"""Two minimal caches, one growing and one preallocated: cached and uncached logits agree."""

from typing import Any

import pytest
import torch
from torch import Tensor

from kotha.errors import UsageError
from kotha.model.attention import KeysValues
from kotha.model.cache_interface import Cache
from kotha.model.config import GPTConfig, ModelConfig
from kotha.model.gpt import GPT
from kotha.model.masks import Mask, causal_mask
from kotha.model.presets import MODERN

TEXT: dict[str, Any] = {"d_model": 16, "n_heads": 4, "n_layers": 2, "vocab_size": 30, "context_length": 10}
LAYOUTS: dict[str, GPTConfig] = {
    "classic": GPTConfig(**TEXT),
    "modern": GPTConfig(**TEXT, **MODERN, n_kv_heads=2),
}


class Growing:
    """Appends new keys and values to the old ones."""

    def __init__(self) -> None:
        self.length = 0
        self.kept: dict[int, KeysValues] = {}

    def positions(self, n_new: int) -> Tensor:
        return torch.arange(self.length, self.length + n_new)

    def mask(self, n_new: int) -> Mask:
        if self.length == 0:
            return "causal"
        return None if n_new == 1 else causal_mask(self.length + n_new, self.length + n_new)[self.length :]

    def append(self, layer: int, keys: Tensor, values: Tensor) -> KeysValues:
        if layer in self.kept:
            old_keys, old_values = (tensor[..., : self.length, :] for tensor in self.kept[layer])
            keys, values = torch.cat((old_keys, keys), dim=2), torch.cat((old_values, values), dim=2)
        self.kept[layer] = keys, values
        return keys, values


class Static:
    """Writes to preallocated tensors of fixed shape; each row of the batch has its own length."""

    def __init__(self, config: ModelConfig, n_batch: int, size: int) -> None:
        shape = (config.n_layers, n_batch, config.n_kv_heads, size, config.d_head)
        self.keys, self.values = torch.zeros(shape), torch.zeros(shape)
        self.length = torch.zeros(n_batch, dtype=torch.long)
        self.size = size

    def positions(self, n_new: int) -> Tensor:
        return self.length[:, None] + torch.arange(n_new)  # (B, T)

    def mask(self, n_new: int) -> Mask:
        return (torch.arange(self.size) <= self.positions(n_new)[..., None])[:, None]  # (B, 1, T, S)

    def append(self, layer: int, keys: Tensor, values: Tensor) -> KeysValues:
        places = self.positions(keys.shape[2])[:, None, :, None].expand_as(keys)  # (B, n_kv_heads, T, D)
        self.keys[layer].scatter_(2, places, keys)
        self.values[layer].scatter_(2, places, values)
        return self.keys[layer], self.values[layer]


def in_steps(model: GPT, tokens: Tensor, cache: Cache, steps: list[int]) -> Tensor:
    parts = []
    for part in torch.split(tokens, steps, dim=1):
        parts.append(model(part, cache=cache))
        cache.length += part.shape[1]  # type: ignore[attr-defined]
    return torch.cat(parts, dim=1)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("kind", ["growing", "static"])
@pytest.mark.parametrize("steps", [[10], [1] * 10, [4, 1, 1, 4], [7, 3]])
def test_cached_and_uncached_logits_agree(layout: str, kind: str, steps: list[int]) -> None:
    torch.manual_seed(0)
    model = GPT(LAYOUTS[layout]).eval()
    tokens = torch.randint(30, (2, 10))
    cache = Growing() if kind == "growing" else Static(model.config, 2, 10)
    assert (in_steps(model, tokens, cache, steps) - model(tokens)).abs().max() <= 1e-5


def test_tokens_not_yet_advanced_can_be_discarded() -> None:
    torch.manual_seed(0)
    model = GPT(LAYOUTS["modern"]).eval()
    tokens, guess = torch.randint(30, (1, 5)), torch.randint(30, (1, 3))
    for cache in (Growing(), Static(model.config, 1, 10)):
        model(tokens, cache=cache)
        cache.length += 5
        model(guess, cache=cache)
        again = model(guess[:, :1], cache=cache)
        assert (again - model(torch.cat((tokens, guess[:, :1]), dim=1))[:, -1:]).abs().max() <= 1e-5


def test_a_static_step_is_one_graph_for_every_step() -> None:
    torch._dynamo.reset()
    torch.manual_seed(0)
    model = GPT(LAYOUTS["modern"]).eval()
    tokens = torch.randint(30, (2, 10))
    cache = Static(model.config, 2, 10)
    graphs = 0

    def count(graph: Any, _: Any) -> Any:
        nonlocal graphs
        graphs += 1
        return graph.forward

    step = torch.compile(model, backend=count, fullgraph=True)
    with torch.no_grad():
        parts = []
        for token in torch.split(tokens, 1, dim=1):
            parts.append(step(token, cache=cache))
            cache.length += 1
        assert (torch.cat(parts, dim=1) - model(tokens)).abs().max() <= 1e-5
    assert graphs == 1


def test_a_position_beyond_the_context_is_refused() -> None:
    model = GPT(LAYOUTS["classic"]).eval()
    cache = Growing()
    cache.length = 10
    with pytest.raises(UsageError, match="11 tokens exceed context_length=10"):
        model(torch.zeros(1, 1, dtype=torch.long), cache=cache)
