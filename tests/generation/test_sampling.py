"""Batch sampling compared with the readable version; invalid settings."""

import random
from typing import Any

import numpy as np
import pytest
import torch

from kotha.errors import UsageError
from kotha.generation import plain, row_sampling, sampling
from kotha.generation.sampling import SamplerParameters, penalize, sampler_parameters
from kotha.generation.settings import SamplingSettings


def random_settings(chooser: random.Random) -> SamplingSettings:
    """A random mixture of settings, including extreme ones."""
    maybe = lambda value: value if chooser.random() < 0.5 else None
    return SamplingSettings(
        temperature=chooser.choice([0, 0.05, 0.3, 0.8, 1.0, 2.0, 50.0]),
        top_k=maybe(chooser.choice([1, 2, 7, 40, 300, 10_000])),
        top_p=maybe(chooser.choice([1e-9, 0.1, 0.5, 0.9, 0.999, 1.0])),
        min_p=maybe(chooser.choice([1e-6, 0.02, 0.3, 1.0])),
        repetition_penalty=maybe(chooser.choice([0.5, 1.1, 1.7, 10.0])),
    )


def draw_in_batch(logits: torch.Tensor, rows: list[SamplingSettings], seen: torch.Tensor, numbers: torch.Tensor) -> Any:
    vocab_size = logits.shape[1]
    knobs = SamplerParameters(*sampler_parameters(rows, vocab_size))
    width = max((min(s.top_k or vocab_size, vocab_size) for s in rows if not s.greedy), default=1)
    return sampling.draw(penalize(logits, knobs, seen), knobs, numbers, width).tolist()


def draw_alone(logits: torch.Tensor, settings: SamplingSettings, seen: torch.Tensor, number: float) -> int:
    scores = row_sampling.penalize(
        logits.numpy(), settings.repetition_penalty or 1.0, set(seen.nonzero()[:, 0].tolist())
    )
    return row_sampling.draw(scores, settings, number)


@pytest.mark.parametrize("seed", range(25))
def test_five_hundred_random_settings_equal_the_plain_version(seed: int) -> None:
    chooser, n = random.Random(seed), 20
    torch.manual_seed(seed)
    vocab_size = chooser.choice([2, 30, 257, 1000])
    logits = chooser.choice([0.1, 3.0, 20.0]) * torch.randn(n, vocab_size)
    seen, numbers = torch.rand(n, vocab_size) < 0.1, torch.rand(n)
    rows = [random_settings(chooser) for _ in range(n)]
    together = draw_in_batch(logits, rows, seen, numbers)
    for row, settings in enumerate(rows):
        result = seen[row].nonzero()[:, 0].tolist()
        assert together[row] == plain.draw(logits[row], settings, result, numbers[row].item()), settings
        here = slice(row, row + 1)
        assert draw_in_batch(logits[here], [settings], seen[here], numbers[here]) == [together[row]], "alone"
        assert draw_alone(logits[row], settings, seen[row], numbers[row].item()) == together[row], "in NumPy"


def test_the_largest_number_below_one_selects_a_token() -> None:
    numbers = torch.full((1,), 1 - 2**-24)
    logits = torch.zeros(1, 1000)
    for settings in (SamplingSettings(temperature=1, top_k=None), SamplingSettings(temperature=1, top_k=3, min_p=1.0)):
        (token,) = draw_in_batch(logits, [settings], torch.zeros(1, 1000, dtype=torch.bool), numbers)
        assert 0 <= token < 1000
        assert 0 <= row_sampling.draw(np.zeros(1000, np.float32), settings, numbers.item()) < 1000


@pytest.mark.parametrize(
    ("given", "wording"),
    [
        ({"temperature": -0.1}, "temperature=-0.1 is out of range; use 0"),
        ({"temperature": float("nan")}, "temperature=nan is out of range"),
        ({"temperature": float("inf")}, "temperature=inf is out of range"),
        ({"temperature": 10**400}, "is out of range"),
        ({"top_k": 0}, "top_k=0 is out of range; use 1 or more"),
        ({"top_p": 0}, "top_p=0 is out of range; use a number above 0 and up to 1"),
        ({"min_p": 1.01}, "min_p=1.01 is out of range"),
        ({"repetition_penalty": 0}, "repetition_penalty=0 is out of range; use a number above 0 and up to 100"),
        ({"seed": -1}, "seed=-1 must be an integer from 0"),
    ],
)
def test_settings_out_of_range_are_rejected(given: dict[str, Any], wording: str) -> None:
    with pytest.raises(UsageError, match=wording):
        SamplingSettings(**given)
