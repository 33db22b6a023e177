"""Writing the plain way."""

import torch
from tests.text.conftest import trained

from kotha.generate.plain import sample, write
from kotha.model.config import GPTConfig
from kotha.model.gpt import GPT


def tiny(context_length: int = 8) -> GPT:
    torch.manual_seed(0)
    vocab_size = trained("unigram").vocab_size
    return GPT(GPTConfig(vocab_size=vocab_size, context_length=context_length, n_layers=1, d_model=16, n_heads=2))


def test_the_same_seed_writes_the_same_text() -> None:
    model, tokenizer = tiny(), trained("unigram")
    first, again, other = (write(model, tokenizer, "মা", tokens=20, seed=seed) for seed in (1, 1, 2))
    assert first == again != other
    assert first.startswith("মা")


def test_it_slides_past_the_context_and_takes_an_empty_prompt() -> None:
    assert write(tiny(context_length=4), trained("unigram"), "", tokens=30)


def test_the_model_is_left_as_it_was() -> None:
    model = tiny().train()
    write(model, trained("unigram"), "মা", tokens=2)
    assert model.training


def test_temperature_zero_takes_the_best() -> None:
    logits = torch.tensor([0.1, 2.0, 0.3])
    generator = torch.Generator().manual_seed(0)
    assert sample(logits, 0, 40, generator) == 1
    assert {sample(logits, 1.0, 1, generator) for _ in range(20)} == {1}


def test_draws_follow_the_chances() -> None:
    logits = torch.log(torch.tensor([0.2, 0.5, 0.3, 1e-9]))
    generator = torch.Generator().manual_seed(0)
    draws = torch.tensor([sample(logits, 1.0, 3, generator) for _ in range(4000)])
    shares = torch.bincount(draws, minlength=4) / 4000
    assert torch.allclose(shares, torch.tensor([0.2, 0.5, 0.3, 0.0]), atol=0.03)
