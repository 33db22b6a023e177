"""Pairs of texts: marks, padding, slices, and what is left out."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.text.conftest import trained

from kotha.errors import ConfigError, DataError
from kotha.model.config import Seq2SeqConfig
from kotha.model.loss import IGNORED
from kotha.model.presets import preset
from kotha.training.config import TrainConfig
from kotha.training.tasks.examples import TextPair, Translation

TOKENIZER = trained("unigram")
START, END = TOKENIZER.special["bos"], TOKENIZER.special["eos"]
# A token names its pair: tens for the pair, units for the place.
PAIRS: list[TextPair] = [
    ([10 * n + i for i in range(1 + n % 4)], [10 * n + i for i in range(2 + n % 3)]) for n in range(10, 21)
]


def translation(pairs: list[TextPair] = PAIRS, held_out: list[TextPair] = PAIRS[:4], **changes: object) -> Translation:
    model = Seq2SeqConfig(vocab_size=TOKENIZER.vocab_size, context_length=6, n_layers=1, d_model=8, n_heads=1)
    return Translation(model, TrainConfig(**{"batch_size": 4, "seed": 3, **changes}), pairs, TOKENIZER, held_out)


def test_a_pair_has_its_marks_and_padding_counts_for_nothing() -> None:
    batch = translation().batch(0, 0, 4)
    source, real, target = (batch.tensors[name] for name in ("source", "real", "target"))
    for row in range(4):
        ids, answer = source[row][real[row]].tolist(), target[row][target[row] != IGNORED].tolist()
        assert (ids[-1], answer[0], answer[-1]) == (END, START, END)
        assert (ids[:-1], answer[1:-1]) in [(list(a), list(b)) for a, b in PAIRS], "both sides are of one pair"
    assert real.any(dim=0).all(), "as wide as the longest"
    assert (target != IGNORED).any(dim=0).all()
    assert batch.targets == {"tokens": int((target[:, 1:] != IGNORED).sum())}
    assert batch.tokens == source.numel() + target[:, 1:].numel()


@settings(max_examples=20)
@given(step=st.integers(0, 10_000), first=st.integers(0, 3), count=st.integers(1, 4))
def test_a_slice_is_a_part_of_the_whole(step: int, first: int, count: int) -> None:
    whole, part = translation().batch(step, 0, 4), translation().batch(step, first, min(count, 4 - first))
    for name, tensor in part.tensors.items():
        assert torch.equal(tensor, whole.tensors[name][first : first + count]), name


def test_an_epoch_reads_every_pair_once_in_a_new_order() -> None:
    made = translation(batch_size=11)
    rows = [[int(row[1]) // 10 - 10 for row in made.batch(step, 0, 11).tensors["target"]] for step in range(3)]
    assert all(sorted(row) == list(range(11)) for row in rows)
    assert rows[0] != rows[1] != rows[2]


def test_pairs_that_cannot_be_used_are_left_out_and_counted() -> None:
    most = list(range(100, 105))  # with its mark, all of a context of 6
    made = translation([([], [1]), ([1], []), ([*most, 1], [1]), (most, most), ([1], [*most, 1])], PAIRS[:2])
    assert made.left_out == 4
    assert made.document_ids(0) == [3], "named by its place among those given"
    assert made.batch(0, 0, 1).tensors["target"].tolist() == [[START, *most, END]]


def test_the_unigram_knows_targets_only() -> None:
    pair = [10, 11], [12, 13, 14]
    made = translation([pair] * 3, [pair])
    answers, vocab_size = [*pair[1], END], TOKENIZER.vocab_size
    counts = np.bincount(answers, minlength=vocab_size)
    chances = (3 * counts + 1) / (3 * len(answers) + vocab_size)
    expected = {"ln V": math.log(vocab_size), "unigram": -np.log(chances[answers]).mean()}
    assert made.references() == pytest.approx(expected)
    assert made.score({"tokens": 6.0, "right": 1.0}, {"tokens": 4}) == {"loss_nats": 1.5, "accuracy": 0.25, "tokens": 4}


def test_unusable_pairs_are_refused() -> None:
    with pytest.raises(ConfigError, match="use vocab_size="):
        Translation(preset("pocket-seq2seq").replace(vocab_size=9), TrainConfig(), PAIRS, TOKENIZER, PAIRS)
    with pytest.raises(DataError, match="none of 0 training examples can be used: each needs a text"):
        translation([])
    with pytest.raises(DataError, match="none of 1 validation examples"):
        translation(held_out=[([], [1])])
