"""Initial weights: the weights that are copied, for which tokenizers, and rejected models."""

import json
import shutil
from pathlib import Path

import pytest
import torch
from tests.prepared import prepared, some_stories

import kotha
from kotha.artifacts import model_folder as bundle
from kotha.artifacts.model_folder import Bundle
from kotha.artifacts.run_folder import RunFolder
from kotha.errors import CheckpointError, ConfigError, UsageError
from kotha.model.config import BERTConfig, GPTConfig
from kotha.model.family import build
from kotha.model.presets import MODERN
from kotha.text.shards import Dataset
from kotha.text.tokenizer.tokenizer import Tokenizer
from kotha.text.tokenizer.trainers import train as train_tokenizer
from kotha.training.initial_weights import Origin, map_pieces
from kotha.training.request import TrainRequest, choose_settings
from kotha.training.train_run import train_run

torch.set_num_threads(1)


@pytest.fixture(scope="module")
def old() -> Tokenizer:
    return train_tokenizer(some_stories(seed=3, n_documents=40), "unigram", 700)


@pytest.fixture(scope="module")
def new() -> Tokenizer:
    return train_tokenizer(some_stories(seed=9, n_documents=40), "unigram", 900)


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory, old: Tokenizer) -> Dataset:
    return prepared(tmp_path_factory.mktemp("data"), some_stories(seed=5, n_documents=40), old)


def sizes(**changes: object) -> GPTConfig:
    given = {"vocab_size": 700, "context_length": 32, "n_layers": 1, "d_model": 16, "n_heads": 2, "d_ff": 32, **MODERN}
    return GPTConfig(**{**given, **changes})


def origin(config: object, tokenizer: Tokenizer | None) -> Origin:
    torch.manual_seed(1)
    return Origin("somewhere", Bundle(build(config), tokenizer))


def test_with_the_same_tokenizer_every_weight_is_copied(old: Tokenizer) -> None:
    start = origin(sizes(), old)
    torch.manual_seed(2)
    model = build(start.config(old))
    assert start.initialize(model, old) == {}
    for name, weight in start.bundle.model.state_dict().items():
        assert torch.equal(model.state_dict()[name], weight), name


@pytest.mark.parametrize("tied", [True, False])
def test_with_another_tokenizer_common_pieces_keep_their_rows(old: Tokenizer, new: Tokenizer, tied: bool) -> None:
    start = origin(sizes(tied_head=tied), old)
    torch.manual_seed(2)
    model = build(start.config(new))
    assert model.config.vocab_size == new.vocab_size
    counts = start.initialize(model, new)
    assert sum(counts.values()) == new.vocab_size
    assert counts["kept"] > 400
    assert counts["joined"] > 50
    before = dict(zip(old.pieces, start.bundle.model.tokens.weight, strict=True))
    for piece, row in zip(new.pieces, model.tokens.weight, strict=True):
        if piece in before:
            assert torch.equal(row, before[piece]), piece
    longer = next(
        token for token, piece in enumerate(new.pieces) if piece not in before and len(old.encode(piece)) == 2
    )
    ids = old.encode(new.pieces[longer])
    torch.testing.assert_close(model.tokens.weight[longer], start.bundle.model.tokens.weight[ids].mean(dim=0))
    torch.testing.assert_close(model.head.weight[longer], start.bundle.model.head.weight[ids].mean(dim=0))
    body, filled = (each.stack.blocks[0].attention.query.weight for each in (start.bundle.model, model))
    assert torch.equal(filled, body)


def test_special_tokens_are_matched_by_role(old: Tokenizer) -> None:
    other = train_tokenizer(some_stories(seed=3, n_documents=40), "wordpiece", 700)
    rows, _ = map_pieces(old, other)
    assert rows[other.special["mask"]] == [old.special["mask"]]
    assert rows[other.special["pad"]] == [old.special["pad"]]


def test_training_continues_at_the_trained_loss(data: Dataset, tmp_path: Path) -> None:
    quickly = {"learning_rate": 0.03, "ema_decay": None, "batch_size": 8, "context_length": 4}
    first = kotha.train(data.path, preset="mini", steps=60, out=tmp_path / "first", **quickly)
    fresh, again = (
        kotha.train(data.path, steps=1, out=tmp_path / name, batch_size=8, **how).metrics[0]["loss_nats"]
        for name, how in {
            "fresh": {"preset": "mini", "context_length": 4},
            "again": {"start": first.path},
        }.items()
    )
    assert again < fresh - 0.3
    about = json.loads((tmp_path / "again" / "config.json").read_text())
    assert about["origin"] == str(first.path)
    shutil.rmtree(tmp_path / "again" / "checkpoints")
    with pytest.raises(CheckpointError, match=f"has no checkpoint with the weights of {first.path}; start a new run"):
        train_run(data, RunFolder(tmp_path / "again"), TrainRequest(), resume=True)


def test_a_model_keeps_its_context_and_unused_rows(data: Dataset, old: Tokenizer) -> None:
    spare = sizes(vocab_size=old.vocab_size + 60)
    start = origin(spare, old)
    chosen = choose_settings(TrainRequest(changes={"steps": 5}, origin=start), tokenizer=old)
    assert chosen.model.vocab_size == old.vocab_size + 60
    assert chosen.model.context_length == 32
    start.check(chosen.model, old)


def test_incompatible_weights_are_rejected(data: Dataset, old: Tokenizer, tmp_path: Path) -> None:
    def refused(match: str, error: type[Exception], start: Origin, resume: bool = False, **changes: int) -> None:
        request = TrainRequest(changes={"steps": 1, **changes}, origin=start)
        with pytest.raises(error, match=match):
            train_run(data, RunFolder(tmp_path / "run"), request, resume=resume)
        assert not (tmp_path / "run").exists()

    start = origin(sizes(), old)
    refused("keeps their sizes; remove n_layers=2", ConfigError, start, n_layers=2)
    refused("initial weights and minutes apply only to new runs", UsageError, start, resume=True)
    refused("context_length=", ConfigError, origin(sizes(positions="learned"), old), context_length=64)
    with pytest.raises(UsageError, match="remove preset='pocket'"):
        TrainRequest(preset="pocket", origin=start)


def test_a_bert_continues_with_masked_words(data: Dataset, old: Tokenizer, tmp_path: Path) -> None:
    texts = some_stories(seed=5, n_documents=40)
    words = train_tokenizer(texts, "wordpiece", 600)
    prepared(tmp_path, texts, words)
    config = BERTConfig(vocab_size=words.vocab_size, context_length=32, n_layers=1, d_model=16, n_heads=2)
    folder = bundle.save(tmp_path / "bert", build(config), words)
    run = kotha.train(tmp_path / "data", start=folder, steps=2, out=tmp_path / "run", batch_size=4)
    assert run.model.config.family == "bert"
