"""Splits: parts that share no text, with every class in each."""

from collections import Counter

import pytest

from kotha.errors import DataError, UsageError
from kotha.finetune.splits import divide
from kotha.text.corpus.labelled import LabelledTexts
from kotha.text.corpus.pairs import TextPairs


def examples(n_each: int, classes: str = "abc", start: int = 0) -> LabelledTexts:
    rows = [(f"the text number {n} of class {label}", label) for n in range(start, start + n_each) for label in classes]
    texts, labels = zip(*rows, strict=True)
    return LabelledTexts(texts, labels)


def test_the_split_is_random_and_stratified() -> None:
    data = examples(40)
    first, again, other = divide(data, seed=1), divide(data, seed=1), divide(data, seed=2)
    assert first == again and first != other
    assert Counter(first.test.labels) == Counter(first.validation.labels) == {"a": 4, "b": 4, "c": 4}
    assert Counter(first.train.labels) == {"a": 32, "b": 32, "c": 32}
    texts = [*first.train.texts, *first.validation.texts, *first.test.texts]
    assert sorted(texts) == sorted(data.texts)


def test_copies_are_used_once_and_near_copies_of_held_out_texts_removed() -> None:
    data = examples(10)
    twice = LabelledTexts((*data.texts, *data.texts[:5]), (*data.labels, *data.labels[:5]))
    found = divide(twice)
    assert len(found.train) + len(found.validation) + len(found.test) == 30
    assert "5 texts skipped" in str(found.remarks[0])
    quoted = f"He said: {found.test.texts[0]}, and went on"
    leaking = LabelledTexts((*found.train.texts, quoted), (*found.train.labels, "a"))
    cleaned = divide(leaking, found.validation, found.test)
    assert quoted not in cleaned.train.texts and len(cleaned.train) == len(found.train)
    assert "1 text removed from training" in str(cleaned.remarks[0])


def test_a_given_part_is_used_unchanged() -> None:
    data, test = examples(10), examples(4, start=100)
    found = divide(data, test=test)
    assert found.test is test and len(found.validation) == 3 and len(found.train) == 27


def test_data_that_cannot_be_split_is_rejected() -> None:
    with pytest.raises(DataError, match="all 5 examples have the label 'a'"):
        divide(examples(5, "a"))
    with pytest.raises(DataError, match="class 'a' with 2 examples cannot be split"):
        divide(examples(2))
    with pytest.raises(DataError, match="class 'c' of the test examples has no training example"):
        divide(examples(5, "ab"), test=examples(2, "abc", start=50))
    with pytest.raises(UsageError, match=r"held_out=0\.9 is out of range"):
        divide(examples(5), share=0.9)


# -- pairs ------------------------------------------------------------------------------------------------------------


def pairs(n_pairs: int, start: int = 0) -> TextPairs:
    numbers = range(start, start + n_pairs)
    return TextPairs(tuple(f"the source number {n}" for n in numbers), tuple(f"target {n} of all" for n in numbers))


def test_pairs_are_split_at_random_and_stay_together() -> None:
    data = pairs(100)
    first, again, other = (divide(data, seed=seed, share=0.1) for seed in (1, 1, 2))
    assert first == again and first != other
    assert [len(part) for part in (first.train, first.validation, first.test)] == [80, 10, 10]
    together = {*zip(data.sources, data.targets, strict=True)}
    for part in (first.train, first.validation, first.test):
        assert {*zip(part.sources, part.targets, strict=True)} <= together
    assert len(divide(pairs(20_000)).test) == 500, "more would take longer than they are worth"


def test_pairs_leak_through_either_side() -> None:
    found = divide(pairs(20), share=0.1)
    source, target = found.test.sources[0], found.validation.targets[0]
    known = found.train
    more = TextPairs((*known.sources, source, "another"), (*known.targets, "something else", f" {target}  "))
    cleaned = divide(more, found.validation, found.test)
    assert cleaned.train == known
    assert [*map(str, cleaned.remarks)] == ["2 pairs removed from training: they contain most of a held-out example"]
    twice = TextPairs(known.sources * 2, known.targets * 2)
    assert str(divide(twice).remarks[0]) == f"{len(known)} pairs skipped: duplicates of earlier examples"


def test_pairs_that_cannot_be_split_are_rejected() -> None:
    with pytest.raises(DataError, match="2 examples cannot be split into training and held-out examples"):
        divide(pairs(2))
    with pytest.raises(DataError, match="too few training examples are left after copies were removed"):
        divide(pairs(3), validation=pairs(3), test=pairs(1, start=9))
    assert len(divide(pairs(1), pairs(1, start=5), pairs(1, start=9)).train) == 1


def test_texts_with_several_labels_are_reported() -> None:
    data = examples(10)
    also = LabelledTexts((*data.texts, *data.texts[:3]), (*data.labels, "c", "c", "c"))
    remark, skipped = map(str, divide(also).remarks)
    assert remark.startswith("2 texts with more than one label, of which the first is used")
    assert f"{data.texts[0]!r} is labelled 'a' and 'c'" in remark and "Choose one label for each" in remark
    assert "3 texts skipped" in skipped, "the third is a copy with the same label"
