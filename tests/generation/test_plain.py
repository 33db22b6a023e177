"""The readable version, compared with manual computations and with the filters of transformers."""

import json
import math
import random
from itertools import islice
from pathlib import Path
from typing import Any

import pytest
import torch
from tests.generation.conftest import tiny
from tests.text.conftest import trained
from transformers import (
    LogitsProcessorList,
    MinPLogitsWarper,
    RepetitionPenaltyLogitsProcessor,
    TemperatureLogitsWarper,
    TopKLogitsWarper,
    TopPLogitsWarper,
)

from kotha.generation.plain import chances, draw, write
from kotha.generation.settings import SamplingSettings, uniforms


def test_the_same_seed_writes_the_same_text() -> None:
    model, tokenizer = tiny(), trained("unigram")
    first, again, other = (write(model, tokenizer, "মা", tokens=20, seed=seed) for seed in (1, 1, 2))
    assert first == again != other
    assert first.startswith("মা")


def test_generation_beyond_the_context_and_with_an_empty_prompt() -> None:
    assert write(tiny(context_length=4), trained("unigram"), "", tokens=30)


def test_the_model_is_not_changed() -> None:
    model = tiny().train()
    write(model, trained("unigram"), "মা", tokens=2)
    assert model.training


def test_chances_by_hand() -> None:
    logits = torch.log(torch.tensor([0.1, 0.4, 0.2, 0.3]))
    plain = SamplingSettings(temperature=1, top_k=None)
    cases = {
        (): [1, 3, 2, 0],
        ("top_k", 2): [1, 3],
        ("top_p", 0.6): [1, 3],  # 0.4 is not enough, 0.7 is
        ("top_p", 0.39): [1],
        ("min_p", 0.49): [1, 3, 2],  # 0.2 is half of 0.4
        ("temperature", 0): [1],
    }
    for change, tokens in cases.items():
        given = dict([change]) if change else {}
        kept = chances(logits, SamplingSettings(**{**vars(plain), **given}), [])
        assert list(kept) == tokens, change
        assert math.isclose(sum(kept.values()), 1)


def test_the_penalty_lowers_positive_and_negative_logits() -> None:
    settings = SamplingSettings(temperature=1, top_k=None, repetition_penalty=2.0)
    kept = chances(torch.tensor([2.0, -1.0, 0.0]), settings, seen=[0, 1, 1])
    weights = {0: math.exp(1.0), 1: math.exp(-2.0), 2: math.exp(0.0)}
    assert kept == pytest.approx({token: weight / sum(weights.values()) for token, weight in weights.items()})


def test_a_number_selects_a_token_by_cumulative_probability() -> None:
    logits = torch.log(torch.tensor([0.2, 0.5, 0.3]))
    settings = SamplingSettings(temperature=1, top_k=None)
    assert [draw(logits, settings, [], number) for number in (0, 0.49, 0.51, 0.79, 0.81, 0.999999)] == [
        1,
        1,
        2,
        2,
        0,
        0,
    ]


def test_draws_follow_the_chances() -> None:
    logits = torch.log(torch.tensor([0.2, 0.5, 0.3, 1e-9]))
    settings = SamplingSettings(temperature=1, top_k=3)
    draws = torch.tensor([draw(logits, settings, [], number) for number in islice(uniforms(0), 4000)])
    shares = torch.bincount(draws, minlength=4) / 4000
    assert torch.allclose(shares, torch.tensor([0.2, 0.5, 0.3, 0.0]), atol=0.03)


def test_random_numbers_depend_on_the_seed() -> None:
    assert list(islice(uniforms(3), 7)) != list(islice(uniforms(4), 7))


@pytest.mark.parametrize("seed", [0, 1, 5489, 2**32 - 1, 2**32, 2**40 + 7, 2**63 - 1])
def test_random_numbers_are_those_of_torch(seed: int) -> None:
    generator = torch.Generator().manual_seed(seed)
    numbers = torch.cat([torch.rand(256, generator=generator) for _ in range(4)])
    assert list(islice(uniforms(seed), 1000)) == numbers[:1000].tolist()


@pytest.mark.parametrize(
    "case", json.loads((Path(__file__).parents[2] / "web/tests/cases/sampling.json").read_text(encoding="utf-8"))
)
def test_the_web_pages_cases_equal_the_library(case: dict[str, Any]) -> None:
    kept = chances(torch.tensor(case["logits"]), SamplingSettings(**case["settings"]), case["seen"])
    assert list(kept) == case["kept"]
    assert list(kept.values()) == pytest.approx(case["chances"], abs=1e-9)


@pytest.mark.parametrize("seed", range(100))
def test_filters_equal_those_of_transformers(seed: int) -> None:
    random.seed(seed)
    torch.manual_seed(seed)
    logits, seen = 3 * torch.randn(50), [random.randrange(50) for _ in range(10)]
    wanted = {
        "temperature": random.choice([0.5, 1.0, 1.7]),
        "top_k": random.choice([None, 1, 5, 30]),
        "top_p": random.choice([None, 0.1, 0.5, 0.95]),
        "min_p": random.choice([None, 0.05, 0.3]),
        "repetition_penalty": random.choice([None, 0.8, 1.3]),
    }
    theirs = LogitsProcessorList()
    if wanted["repetition_penalty"]:
        theirs.append(RepetitionPenaltyLogitsProcessor(wanted["repetition_penalty"]))
    theirs.append(TemperatureLogitsWarper(wanted["temperature"]))
    for name, warper in (("top_k", TopKLogitsWarper), ("top_p", TopPLogitsWarper), ("min_p", MinPLogitsWarper)):
        if wanted[name]:
            theirs.append(warper(wanted[name]))
    other = theirs(torch.tensor([seen]), logits[None].clone())[0].softmax(dim=-1)
    ours = torch.zeros(50)
    for token, chance in chances(logits, SamplingSettings(**wanted), seen).items():
        ours[token] = chance
    assert (ours - other).abs().max() <= 1e-5
