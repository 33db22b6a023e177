"""Reading backwards: what a turned sequence looks like, which ones are turned, and until when."""

from pathlib import Path

import numpy as np
import pytest
import torch
from tests.prepared import prepared, some_stories

from kotha.artifacts.run_folder import RunFolder
from kotha.errors import ConfigError
from kotha.model.config import BERTConfig, GPTConfig
from kotha.text.shards import Dataset
from kotha.text.tokenizer.trainers import train as train_tokenizer
from kotha.training.config import TrainConfig
from kotha.training.start import resume_run, start_run
from kotha.training.tasks.task import NextToken

torch.set_num_threads(1)

SHORT = TrainConfig(steps=8, batch_size=32, schedule="constant", evaluate_every=4, precision="float32", backwards=0.5)
SIZES = GPTConfig(vocab_size=700, context_length=16, n_layers=1, d_model=16, n_heads=2)


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Dataset:
    texts = some_stories(seed=3, n_documents=40)
    return prepared(tmp_path_factory.mktemp("data"), texts, train_tokenizer(texts, "unigram", 700))


def read(data: Dataset, step: int, **changes: object) -> np.ndarray:
    config = SHORT.change(**changes)
    return NextToken(SIZES, config, data).batch(step, 0, config.batch_size).tensors["sequences"].numpy()


def test_a_turned_sequence_runs_from_its_end_behind_a_mark(data: Dataset) -> None:
    written, all_turned = read(data, 0, backwards=0.0), read(data, 0, backwards=1.0)
    assert (all_turned[:, 1:] == written[:, ::-1][:, 1:]).all()
    assert (all_turned[:, 0] == data.tokenizer.special["mask"]).all()


def test_a_share_is_turned_and_the_rest_is_as_written(data: Dataset) -> None:
    written, mixed = read(data, 3, backwards=0.0), read(data, 3)
    turned = mixed[:, 0] == data.tokenizer.special["mask"]
    assert 8 <= turned.sum() <= 24  # of 32; beyond lies one in five hundred seeds, and this is one seed
    assert (mixed[~turned] == written[~turned]).all()
    assert (mixed[turned, 1:] == written[turned, ::-1][:, 1:]).all()


def test_the_last_quarter_of_the_steps_is_read_as_written(data: Dataset) -> None:
    for step in (6, 7):
        assert (read(data, step, backwards=1.0) == read(data, step, backwards=0.0)).all()
    assert (read(data, 5, backwards=1.0)[:, 0] == data.tokenizer.special["mask"]).all()


def test_a_run_that_gets_fewer_steps_still_ends_with_its_last_quarter(data: Dataset) -> None:
    task = NextToken(SIZES, SHORT.change(backwards=1.0), data)
    task.set_total_steps(4)
    turned = [bool((task.batch(step, 0, 2).tensors["sequences"][:, 0] == 3).all()) for step in range(4)]
    assert data.tokenizer.special["mask"] == 3
    assert turned == [True, True, True, False]


def test_micro_batches_and_the_whole_batch_agree(data: Dataset) -> None:
    task = NextToken(SIZES, SHORT, data)
    whole = task.batch(2, 0, 32).tensors["sequences"]
    parts = [task.batch(2, first, 8).tensors["sequences"] for first in range(0, 32, 8)]
    assert torch.equal(whole, torch.cat(parts))


def test_validation_is_read_forwards(data: Dataset) -> None:
    mask = data.tokenizer.special["mask"]
    batches = NextToken(SIZES, SHORT.change(backwards=1.0), data).validation()
    assert not any((batch.tensors["sequences"] == mask).any() for batch in batches)


def test_a_run_goes_on_bit_for_bit(data: Dataset, tmp_path: Path) -> None:
    whole = start_run(SIZES, SHORT, data, RunFolder(tmp_path / "whole"))
    whole.run()
    half = start_run(SIZES, SHORT, data, RunFolder(tmp_path / "half"))
    half.config = SHORT.change(steps=4)
    half.run()
    rest = resume_run(data, RunFolder(tmp_path / "half"), {})
    rest.run()
    for name, weight in whole.model.state_dict().items():
        assert torch.equal(weight, rest.model.state_dict()[name]), name


def test_what_cannot_be_read_backwards_is_refused(data: Dataset, tmp_path: Path) -> None:
    bert = BERTConfig(vocab_size=700, context_length=16, n_layers=1, d_model=16, n_heads=2)
    with pytest.raises(ConfigError, match="backwards is for a gpt"):
        start_run(bert, SHORT, data, RunFolder(tmp_path / "bert"))
    with pytest.raises(ConfigError, match="either teachers or a share of backwards"):
        NextToken(SIZES, SHORT.change(teachers=("a",)), data)
    with pytest.raises(ConfigError, match="must be a share from 0 to 1"):
        SHORT.change(backwards=1.5)
