"""Fixtures for the evaluation tests: one thread, a small data folder, small models."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pytest
import torch
from tests.prepared import prepared, some_stories, write_lines

from kotha.model.config import GPTConfig
from kotha.model.gpt import GPT
from kotha.text.shards import Dataset
from kotha.text.tokenizer.tokenizer import Tokenizer
from kotha.text.tokenizer.trainers import train

VOCAB_SIZE = 700


@pytest.fixture(autouse=True, scope="session")
def one_thread() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(scope="session")
def texts() -> list[str]:
    return some_stories(seed=3, n_documents=400)


@pytest.fixture(scope="session")
def tokenizer(texts: list[str]) -> Tokenizer:
    return train(texts[:150], "unigram", VOCAB_SIZE)


@pytest.fixture(scope="session")
def make_data(tokenizer: Tokenizer, tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Dataset]:
    def make(texts: Sequence[str], tokenizer: Tokenizer = tokenizer, **options: Any) -> Dataset:
        """A data folder made from some texts; ``held_out`` contains its validation documents."""
        folder = tmp_path_factory.mktemp("data")
        held_out = options.pop("held_out", None)
        if held_out is not None:
            options["validation"] = str(write_lines(folder / "held_out.jsonl", held_out))
        return prepared(folder, texts, tokenizer, **options)

    return make


@pytest.fixture(scope="session")
def data(make_data: Callable[..., Dataset], texts: list[str]) -> Dataset:
    return make_data(texts[:60], validation=0.1)


@pytest.fixture(scope="session")
def tiny() -> Callable[..., GPT]:
    def tiny(vocab_size: int = VOCAB_SIZE, context_length: int = 8, seed: int = 0, **more: Any) -> GPT:
        """A model with weights large enough that its scores differ."""
        torch.manual_seed(seed)
        sizes: dict[str, Any] = {"d_model": 16, "n_heads": 2, "n_layers": 2, "dropout": 0.1}
        model = GPT(GPTConfig(vocab_size=vocab_size, context_length=context_length, **{**sizes, **more})).eval()
        with torch.no_grad():
            for parameter in model.parameters():
                parameter.add_(0.2 * torch.randn_like(parameter))
        return model

    return tiny
