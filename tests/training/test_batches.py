"""A step's data is a function of the seed and the step, and an epoch uses every token."""

import itertools
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from tests.text.conftest import trained

from kotha.errors import DataError
from kotha.text.shards import Dataset, Split, SplitWriter, write_description
from kotha.training.tasks.task import OffsetBatches, PackedBatches

# Every id occurs once, so that a token identifies its position.
DOCUMENTS = [list(range(start, start + length)) for start, length in ((10, 7), (30, 3), (50, 12), (80, 1), (100, 5))]


@pytest.fixture
def split(tmp_path: Path) -> Split:
    path = tmp_path / "data"
    path.mkdir()
    with SplitWriter(path, "train", "uint16", eos=0, shard_tokens=9) as writer:
        for document in DOCUMENTS:
            writer.add(np.array(document, "<u2"), 1, 1)
        info = writer.close()
    write_description(path, trained("unigram"), {"train": info}, {})
    return Dataset(path)["train"]


TOKENS = sum(len(document) + 1 for document in DOCUMENTS)  # with end tokens: 33


def line(batches: PackedBatches, steps: int, batch_size: int) -> list[int]:
    """The inputs of consecutive steps, concatenated."""
    return [int(i) for step in range(steps) for row in batches.sequences(step, 0, batch_size) for i in row[:-1]]


def test_an_epoch_reads_every_token_once(split: Split) -> None:
    batches = PackedBatches(split, context_length=4, batch_size=2, seed=0)
    read = line(batches, steps=100, batch_size=2)
    for epoch in range(100 * 8 // TOKENS):
        once = read[epoch * TOKENS : (epoch + 1) * TOKENS]
        wanted = Counter(token for document in DOCUMENTS for token in [*document, 0])
        assert Counter(once) == wanted
    orders = {tuple(read[epoch * TOKENS : (epoch + 1) * TOKENS]) for epoch in range(10)}
    assert len(orders) > 5, "each epoch has its own order"


def test_documents_are_complete_and_in_order(split: Split) -> None:
    read = line(PackedBatches(split, 4, 2, seed=1), steps=8, batch_size=2)[:TOKENS]
    for document in DOCUMENTS:
        place = read.index(document[0])
        assert read[place : place + len(document) + 1] == [*document, 0]


def test_a_target_is_the_next_token_across_documents(split: Split) -> None:
    batches = PackedBatches(split, context_length=5, batch_size=3, seed=2)
    rows = [row for step in range(30) for row in batches.sequences(step, 0, 3)]
    for before, after in itertools.pairwise(rows):
        assert before[-1] == after[0]


@pytest.mark.parametrize("kind", [PackedBatches, OffsetBatches])
def test_a_step_does_not_depend_on_earlier_calls(split: Split, kind: type) -> None:
    first, second = (kind(split, 4, 6, seed=3) for _ in range(2))
    wanted = [first.sequences(step, 0, 6) for step in range(20)]
    for step in reversed(range(20)):
        assert np.array_equal(second.sequences(step, 0, 6), wanted[step])
        parts = [second.sequences(step, start, 2) for start in (0, 2, 4)]
        assert np.array_equal(np.concatenate(parts), wanted[step]), "micro-batches are parts of the batch"
    other = kind(split, 4, 6, seed=4)
    assert any(not np.array_equal(other.sequences(step, 0, 6), wanted[step]) for step in range(20))


def test_random_offsets_reach_every_position(split: Split) -> None:
    batches = OffsetBatches(split, context_length=4, batch_size=64, seed=0)
    starts = {tuple(row) for step in range(30) for row in batches.sequences(step, 0, 64)}
    assert len(starts) == TOKENS - 4


def test_too_little_text_is_rejected(split: Split) -> None:
    with pytest.raises(DataError, match="has only 33 tokens, less than one sequence of 65"):
        PackedBatches(split, context_length=64, batch_size=1, seed=0)
