"""Cached and uncached logits agree for every layout and for a Seq2Seq's decoder; rows move, fill up and are reused."""

import pytest
import torch
from tests.generation.conftest import LAYOUTS, SIZES, tiny
from torch import Tensor

from kotha.generation.cache import RowCache
from kotha.model.config import Seq2SeqConfig
from kotha.model.gpt import GPT
from kotha.model.seq2seq import Seq2Seq


@torch.no_grad()
def step(model: GPT, cache: RowCache, tokens: list[int]) -> Tensor:
    """One token for each row: (B,) -> (B, V)."""
    logits: Tensor = model(torch.tensor(tokens)[:, None], cache=cache)[:, 0]
    cache.advance()
    return logits


@torch.no_grad()
def fill(model: GPT, cache: RowCache, first: int, prompts: list[list[int]]) -> None:
    """Read prompts into rows, starting at ``first``."""
    longest = max(len(prompt) for prompt in prompts)
    cache.first, cache.n_rows, cache.even = first, len(prompts), 0
    model.hidden(torch.tensor([prompt + [0] * (longest - len(prompt)) for prompt in prompts]), cache=cache)
    cache.lengths[first : first + len(prompts)] = torch.tensor([len(prompt) for prompt in prompts])
    cache.first, cache.n_rows, cache.even = 0, len(cache.lengths), None


@pytest.mark.parametrize("layout", LAYOUTS)
@torch.no_grad()
def test_prompts_of_different_lengths_continue_as_if_read_together(layout: str) -> None:
    model = tiny(layout, context_length=12, vocab_size=30)
    texts = torch.randint(30, (3, 12)).tolist()
    lengths = [2, 7, 5]
    cache = RowCache(model.config, 3)
    fill(model, cache, 0, [text[:n] for text, n in zip(texts, lengths, strict=True)])
    for more in range(5):
        logits = step(model, cache, [text[n + more] for text, n in zip(texts, lengths, strict=True)])
        for row, (text, n) in enumerate(zip(texts, lengths, strict=True)):
            alone = model(torch.tensor([text[: n + more + 1]]))[0, -1]
            assert (logits[row] - alone).abs().max() <= 1e-5


@torch.no_grad()
def test_a_row_is_refilled_moved_and_looked_at_in_part() -> None:
    model = tiny("grouped", context_length=12, vocab_size=30)
    first, second, third = torch.randint(30, (3, 9)).tolist()
    cache = RowCache(model.config, 4)
    fill(model, cache, 0, [first, second])
    fill(model, cache, 0, [third[:3]])  # shorter than the previous content
    cache.move(1, 2)
    cache.move(0, 1)
    cache.move(2, 0)
    cache.n_rows, cache.span = 2, 10
    logits = step(model, cache, [5, 6])
    for row, text in enumerate(([*second, 5], [*third[:3], 6])):
        assert (logits[row] - model(torch.tensor([text]))[0, -1]).abs().max() <= 1e-5
    assert cache.lengths[:2].tolist() == [10, 4]


@pytest.mark.parametrize("positions", ["sinusoidal", "sinusoidal-halves", "learned", "rotary"])
@pytest.mark.parametrize("norm_order", ["pre", "post"])
@torch.no_grad()
def test_a_translation_step_by_step_is_the_same(positions: str, norm_order: str) -> None:
    torch.manual_seed(0)
    config = Seq2SeqConfig(
        **SIZES, n_decoder_layers=3, vocab_size=30, context_length=9, positions=positions, norm_order=norm_order
    )
    model = Seq2Seq(config).eval()
    source, target = torch.randint(30, (2, 7)), torch.randint(30, (2, 9))
    real = torch.ones(2, 7, dtype=torch.bool)
    real[1, 4:] = False
    memories, cache = model.project_kv(model.encode(source, real)), RowCache(config, 2)
    parts = []
    for token in torch.split(target, 1, dim=1):
        parts.append(model.head(model.decode(token, memories, real, cache)))
        cache.advance()
    assert (torch.cat(parts, dim=1) - model(source, target, real)).abs().max() <= 1e-5


def test_keys_are_kept_in_the_type_of_the_weights() -> None:
    model = tiny(vocab_size=30).bfloat16()
    cache = RowCache(model.config, 1, torch.bfloat16)
    assert step(model, cache, [3]).dtype == cache.keys[0].dtype == torch.bfloat16
