"""Masked words and sentence pairs: masking, pairing, and slices that are parts of the batch."""

import math
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.text.conftest import trained

from kotha.errors import ConfigError, DataError
from kotha.model.config import BERTConfig
from kotha.model.loss import IGNORED
from kotha.text.shards import Dataset, SplitWriter, write_description
from kotha.text.tokenizer.tokenizer import Tokenizer
from kotha.training.config import TrainConfig
from kotha.training.tasks.masked_words import MaskedWords, Masking, Passages, n_chosen

CONTEXT = 24
LENGTHS = [9, 40, 1, 21, 63, 0, 22, 5, 2, 1]
FIRST = 10  # lower ids are special tokens


def documents(lengths: list[int]) -> list[list[int]]:
    """Every id occurs once, so that a token identifies its document and position."""
    starts = np.cumsum([FIRST, *lengths])
    return [list(range(start, start + length)) for start, length in zip(starts, lengths, strict=False)]


def folder(path: Path, lengths: list[int], tokenizer: Tokenizer) -> Dataset:
    path.mkdir()
    infos = {}
    for name in ("train", "validation"):
        with SplitWriter(path, name, "uint16", eos=tokenizer.special["eos"]) as writer:
            for ids in documents(lengths):
                writer.add(np.array(ids, "<u2"), 1, 1)
            infos[name] = writer.close()
    write_description(path, tokenizer, infos, {})
    return Dataset(path)


@pytest.fixture(scope="module")
def tokenizer() -> Tokenizer:
    return trained("wordpiece")


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory, tokenizer: Tokenizer) -> Dataset:
    assert tokenizer.vocab_size > FIRST + sum(LENGTHS)
    return folder(tmp_path_factory.mktemp("masked") / "data", LENGTHS, tokenizer)


def bert(vocab_size: int) -> BERTConfig:
    return BERTConfig(vocab_size=vocab_size, context_length=CONTEXT, n_layers=1, d_model=8, n_heads=1)


def task(data: Dataset, **changes: object) -> MaskedWords:
    config = TrainConfig(**{"batch_size": 8, "seed": 1, **changes})
    return MaskedWords(bert(data.tokenizer.vocab_size), config, data)


def restored(tensors: dict[str, torch.Tensor], row: int) -> list[int]:
    """The real tokens of an example with masked words restored."""
    tokens = tensors["tokens"][row].clone()
    counts = tensors["words"][row] != IGNORED
    tokens[tensors["places"][row][counts]] = tensors["words"][row][counts]
    return tokens[tensors["real"][row]].tolist()


DOCUMENT_OF = {token: number for number, ids in enumerate(documents(LENGTHS)) for token in ids}


@settings(max_examples=40)
@given(seed=st.integers(0, 1000), step=st.integers(0, 1000))
def test_an_example_is_two_stretches_with_special_tokens(data: Dataset, seed: int, step: int) -> None:
    masking = Masking(data.tokenizer)
    made = task(data, seed=seed)
    tensors = made.batch(step, 0, 8).tensors
    for row in range(8):
        tokens = restored(tensors, row)
        assert len(tokens) <= CONTEXT
        assert (tokens[0], tokens[-1], tokens.count(masking.sep)) == (masking.cls, masking.sep, 2)
        middle = tokens.index(masking.sep)
        first, second = tokens[1:middle], tokens[middle + 1 : -1]
        assert first and second
        assert tensors["segments"][row].tolist() == [0] * (middle + 1) + [1] * (len(second) + 1) + [0] * (
            CONTEXT - len(tokens)
        )
        assert tensors["real"][row].sum() == len(tokens)
        assert (tensors["tokens"][row, len(tokens) :] == masking.pad).all()
        for stretch in (first, second):
            assert stretch == list(range(stretch[0], stretch[0] + len(stretch))), "an unchanged stretch of text"
        if tensors["unrelated"][row]:
            assert {DOCUMENT_OF[token] for token in first}.isdisjoint(DOCUMENT_OF[token] for token in second)
        else:
            assert second[0] == first[-1] + 1, "the text that follows"


@settings(max_examples=60)
@given(seed=st.integers(0, 10_000), n_words=st.integers(0, 100), n_unknown=st.integers(1, 3))
def test_the_right_number_of_ordinary_words_is_masked(
    tokenizer: Tokenizer, seed: int, n_words: int, n_unknown: int
) -> None:
    masking = Masking(tokenizer)
    chance = np.random.default_rng(seed)
    words = chance.choice(masking.ordinary, n_words)
    text = chance.permutation(np.concatenate((words, [tokenizer.special["unk"]] * n_unknown)))
    tokens = np.concatenate(([masking.cls], text, [masking.sep]))
    hidden = masking.hide(tokens, chance)
    assert len(hidden.places) == len(set(hidden.places)) == max(1, round(0.15 * (n_words or n_unknown)))
    assert (hidden.words == tokens[hidden.places]).all(), "the targets are the original words"
    if n_words:
        assert masking.is_ordinary[hidden.words].all(), "special tokens and unknown words are never targets"
    changed = np.flatnonzero(hidden.tokens != tokens)
    assert set(changed) <= set(hidden.places)
    shown = hidden.tokens[changed]
    assert (masking.is_ordinary[shown] | (shown == masking.mask)).all()


def test_of_chosen_words_eight_in_ten_are_masked_one_replaced_one_kept(tokenizer: Tokenizer) -> None:
    masking, chance = Masking(tokenizer), np.random.default_rng(0)
    counts = {"masked": 0, "replaced": 0, "kept": 0}
    places = np.zeros(40)
    for _ in range(2000):
        tokens = chance.choice(masking.ordinary, 40)
        hidden = masking.hide(tokens, chance)
        shown = hidden.tokens[hidden.places]
        counts["masked"] += int((shown == masking.mask).sum())
        counts["kept"] += int((shown == hidden.words).sum())
        counts["replaced"] += int(((shown != masking.mask) & (shown != hidden.words)).sum())
        places[hidden.places] += 1
    n = sum(counts.values())
    assert n == 2000 * n_chosen(40) == 12_000
    # Four standard deviations; a random word is the original word with probability 1 / vocabulary.
    for name, share in (("masked", 0.8), ("replaced", 0.1), ("kept", 0.1)):
        assert counts[name] / n == pytest.approx(share, abs=4 * math.sqrt(share * (1 - share) / n) + 0.001), name
    assert places.min() > 300 - 4 * math.sqrt(300), "each position has its share of 12,000 / 40"


def test_half_of_the_pairs_belong_together(data: Dataset) -> None:
    made = task(data, batch_size=1000)
    unrelated = torch.cat([made.batch(step, 0, 1000).tensors["unrelated"] for step in range(2)])
    assert unrelated.double().mean() == pytest.approx(0.5, abs=4 * math.sqrt(0.25 / 2000))


def test_both_kinds_of_pair_have_the_same_length(tmp_path: Path, tokenizer: Tokenizer) -> None:
    made = task(folder(tmp_path / "data", [40, 40, 40], tokenizer), batch_size=64)
    lengths = made.batch(0, 0, 64).tensors["real"].sum(dim=1)
    assert set(lengths.tolist()) == {20 + 3}, "otherwise the length would reveal the answer"


@settings(max_examples=20)
@given(seed=st.integers(0, 100), step=st.integers(0, 10_000), first=st.integers(0, 7), count=st.integers(1, 8))
def test_a_slice_equals_a_part_of_the_batch(data: Dataset, seed: int, step: int, first: int, count: int) -> None:
    count = min(count, 8 - first)
    full = task(data, seed=seed).batch(step, 0, 8)
    part = task(data, seed=seed).batch(step, first, count)
    for name, tensor in part.tensors.items():
        assert torch.equal(tensor, full.tensors[name][first : first + count]), name
    assert part.targets == {"words": int((part.tensors["words"] != IGNORED).sum()), "pairs": count}


def test_an_epoch_reads_every_word_once(data: Dataset) -> None:
    passages = Passages(data["train"], CONTEXT - 3)
    read = [int(token) for passage in range(len(passages)) for token in passages.read(passage)]
    assert sorted(read) == sorted(token for token in DOCUMENT_OF if LENGTHS[DOCUMENT_OF[token]] > 1)
    sizes = [len(passages.read(passage)) for passage in range(len(passages))]
    assert min(sizes) >= 2
    assert max(sizes) <= CONTEXT - 3
    made = task(data, batch_size=len(passages))
    firsts = [
        [restored(made.batch(step, 0, len(passages)).tensors, row)[1] for row in range(len(passages))]
        for step in (0, 1)
    ]
    starts = sorted(int(passages.read(passage)[0]) for passage in range(len(passages)))
    assert sorted(firsts[0]) == sorted(firsts[1]) == starts
    assert firsts[0] != firsts[1], "in another order"


def test_random_choices_change_from_epoch_to_epoch(data: Dataset) -> None:
    made = task(data, batch_size=1)
    n = len(Passages(data["train"], CONTEXT - 3))
    rows = {tuple(made.batch(step, 0, 1).tensors["tokens"][0].tolist()) for step in range(4 * n)}
    assert len(rows) > 3 * n


def test_validation_does_not_depend_on_the_seed(data: Dataset) -> None:
    first, second = (task(data, seed=seed).validation() for seed in (1, 2))
    for one, other in zip(first, second, strict=True):
        assert all(torch.equal(one.tensors[name], other.tensors[name]) for name in one.tensors)
    assert sum(len(batch.tensors["tokens"]) for batch in first) == len(Passages(data["validation"], CONTEXT - 3))
    assert len(task(data, evaluate_tokens=50).validation()[0].tensors["tokens"]) == 2


def test_scores_are_means_and_references_are_of_masked_words(data: Dataset) -> None:
    made = task(data)
    sums = {"words": 10.0, "pairs": 3.0, "words_right": 2.0, "pairs_right": 3.0}
    score = made.score(sums, {"words": 5, "pairs": 4})
    assert (score["words_nats"], score["pairs_nats"], score["loss_nats"]) == (2.0, 0.75, 2.75)
    assert (score["words_accuracy"], score["pairs_accuracy"]) == (0.4, 0.75)
    vocab_size = data.tokenizer.vocab_size
    # Every word of the fixture occurs once, plus one.
    unigram = -math.log(2 / (sum(LENGTHS) + vocab_size))
    expected = {"uniform": math.log(vocab_size), "unigram": unigram, "coin flip": math.log(2)}
    assert made.references() == pytest.approx(expected)


def test_invalid_settings_are_rejected(data: Dataset, tmp_path: Path, tokenizer: Tokenizer) -> None:
    config = TrainConfig()
    with pytest.raises(ConfigError, match="use vocab_size="):
        MaskedWords(bert(10), config, data)
    with pytest.raises(ConfigError, match="requires a context_length of at least 8"):
        task(data, context_length=7)
    generative = folder(tmp_path / "generative", LENGTHS, trained("unigram"))
    with pytest.raises(DataError, match=r"no cls, sep token, .* kind 'wordpiece'"):
        task(generative)
    lonely = folder(tmp_path / "lonely", [1, 30, 1], tokenizer)
    with pytest.raises(DataError, match="has 1 documents of at least 2 tokens, but sentence pairs require two"):
        task(lonely)
