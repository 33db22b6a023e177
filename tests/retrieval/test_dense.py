"""Embeddings from a model's layers, and nearest neighbours, compared with numpy and torch."""

from functools import partial

import numpy as np
import pytest
import torch

import kotha
from kotha.errors import UsageError
from kotha.model.config import ModelConfig
from kotha.model.family import build
from kotha.model.presets import preset
from kotha.retrieval.dense import VectorIndex
from kotha.retrieval.embedding import Embedder
from kotha.text.tokenizer.trainers import train

TEXTS = ["নদীর ধারে একটি গ্রাম", "মা", "নদীর ধারে একটি গ্রাম আছে, সেখানে মিনা থাকে আর রোজ নদীতে যায়"]


def keep(seen: list[torch.Tensor], _: object, __: object, states: torch.Tensor) -> None:
    seen.append(states)


def unit(rows: np.ndarray) -> np.ndarray:
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


@pytest.fixture(scope="module")
def embedders() -> list[Embedder]:
    tokenizer = train(TEXTS * 3, "char", 100)
    sizes = {"n_layers": 2, "d_model": 16, "n_heads": 2, "context_length": 24, "vocab_size": tokenizer.vocab_size}
    config: ModelConfig = preset("char").replace(**sizes)
    model = build(config).eval()
    return [Embedder(model, tokenizer, "tiny", layer) for layer in (0, 1, 2)]


def test_one_text_is_one_vector() -> None:
    lm = kotha.load()
    assert np.array_equal(lm.embed("নদীর ধারে"), lm.embed(["নদীর ধারে", "মা"])[0])


def test_layer_0_is_the_mean_of_the_token_embeddings(embedders: list[Embedder]) -> None:
    table, tokenizer = embedders[0].model.tokens.weight.detach().numpy(), embedders[0].tokenizer
    by_hand = unit(np.stack([table[tokenizer.encode(text)].mean(axis=0) for text in TEXTS]))
    assert np.allclose(embedders[0](TEXTS), by_hand, atol=1e-5)


def test_an_embedding_is_the_mean_of_states_alone_or_in_a_batch(embedders: list[Embedder]) -> None:
    for layer, embed in enumerate(embedders[1:], 1):
        short = TEXTS[:2]
        ids = [embed.tokenizer.encode(text) for text in short]
        start = embed.tokenizer.special["eos"]
        seen: list[torch.Tensor] = []
        handle = embed.model.stack.blocks[layer - 1].register_forward_hook(partial(keep, seen))
        with torch.no_grad():
            for each in ids:
                embed.model(torch.tensor([[start, *each]]))
        handle.remove()
        by_hand = unit(np.stack([states[0, 1:].mean(dim=0).numpy() for states in seen]))
        assert np.allclose(embed(short), by_hand, atol=1e-5)
        together = embed(TEXTS)
        assert together.shape == (3, 16) and np.allclose(together[:2], by_hand, atol=1e-5)


def test_fingerprints_distinguish_models_and_layers(embedders: list[Embedder]) -> None:
    assert len({embed.note.fingerprint for embed in embedders}) == 3
    with pytest.raises(
        UsageError, match="layer=3 is out of range: tiny has layers 1 to 2, and 0 is its token embedding"
    ):
        Embedder(embedders[0].model, embedders[0].tokenizer, "tiny", 3)
    assert not embedders[0]([""]).any()


def test_few_vectors_are_compared_by_plain_cosine() -> None:
    drawn = np.random.default_rng(0).normal(size=(10, 8)).astype(np.float32)
    asked = drawn[3] + 0.01
    cosines = unit(drawn) @ unit(asked[None])[0]
    found = VectorIndex(drawn)(asked, 4)
    assert [row for row, _ in found] == list(np.argsort(-cosines)[:4])
    assert np.allclose([cosine for _, cosine in found], np.sort(cosines)[::-1][:4], atol=1e-6)


def test_many_vectors_are_whitened() -> None:
    rng = np.random.default_rng(0)
    result = rng.normal(size=(400, 24)).astype(np.float32)
    loud = 3 + 20 * rng.normal(size=(800, 1)).astype(np.float32)  # unrelated to the content
    passages = np.concatenate([loud[:400], result], axis=1)
    questions = np.concatenate([loud[400:], result + 0.3 * rng.normal(size=result.shape).astype(np.float32)], axis=1)
    near = VectorIndex(passages)
    whitened = np.mean([near(question, 1)[0][0] == row for row, question in enumerate(questions)])
    plain = np.mean(np.argmax(unit(questions) @ unit(passages).T, axis=1) == np.arange(400))
    assert whitened > 0.8 > 0.5 > plain
