"""Initial weights from counts: without its blocks, the model predicts the counted bigram probabilities."""

import math
from pathlib import Path

import numpy as np
import pytest
import torch
from tests.prepared import prepared, some_stories

from kotha.artifacts.run_folder import RunFolder
from kotha.errors import ConfigError
from kotha.model.config import GPTConfig
from kotha.model.family import build
from kotha.text.ngram import KneserNey
from kotha.text.shards import Dataset
from kotha.text.tokenizer.trainers import train as train_tokenizer
from kotha.training.bigrams import initialize_from_bigrams
from kotha.training.config import TrainConfig
from kotha.training.start import resume_run, start_run

MODERN = {"norm": "rms", "positions": "rotary", "tied_head": False, "n_layers": 1, "context_length": 32}


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Dataset:
    texts = some_stories(seed=3, n_documents=200)
    return prepared(tmp_path_factory.mktemp("data"), texts, train_tokenizer(texts, "unigram", 500), validation=0.1)


def model(width: int, **changes):
    return build(GPTConfig(**{"vocab_size": 500, "d_model": width, "n_heads": 2, **MODERN, **changes}))


def nats_without_blocks(gpt, line: np.ndarray) -> float:
    """Mean loss if the head is applied directly to the embeddings."""
    tokens = torch.from_numpy(line.astype(np.int64))
    with torch.no_grad():
        logits = gpt.head(gpt.stack.norm(gpt.tokens(tokens[:-1])))
    return float(torch.nn.functional.cross_entropy(logits, tokens[1:]))


def test_the_embeddings_and_the_head_predict_as_bigrams_do(data: Dataset) -> None:
    train, held_out = (np.concatenate(data[split].shards) for split in ("train", "validation"))
    counted = float(KneserNey(train, 2, 500, end=int(train[-1])).nats(held_out)[1:].mean())
    found = {}
    for width in (16, 64, 256):
        gpt = model(width)
        initialize_from_bigrams(gpt, data, seed=0)
        found[width] = nats_without_blocks(gpt, held_out)
    assert found[256] < found[64] < found[16] < math.log(500) - 1
    assert found[256] < counted + 0.1


def test_the_same_seed_gives_the_same_weights(data: Dataset) -> None:
    first, second = model(16), model(16)
    for each in (first, second):
        initialize_from_bigrams(each, data, seed=4)
    assert torch.equal(first.head.weight, second.head.weight)
    assert first.tokens.weight.square().mean(dim=1).sqrt().allclose(torch.ones(500))


def test_a_run_starts_lower_and_resumes(data: Dataset, tmp_path: Path) -> None:
    settings = TrainConfig(steps=4, batch_size=2, warmup_steps=1, evaluate_every=2, precision="float32")
    losses = {}
    for initial in ("random", "bigrams"):
        run = start_run(model(32).config, settings.change(initial=initial), data, RunFolder(tmp_path / initial))
        run.run()
        losses[initial] = run.progress.recent[0]
    assert losses["bigrams"] < losses["random"] - 1
    again = resume_run(data, RunFolder(tmp_path / "bigrams"), {"steps": 5})
    assert again.progress.step == 4
    assert again.run()["steps"] == 5


def test_a_tied_head_is_rejected(data: Dataset) -> None:
    with pytest.raises(ConfigError, match="tied_head=False"):
        initialize_from_bigrams(model(16, tied_head=True), data, seed=0)
