"""Near copies by files are those of the twin in memory, whatever the batches and however the files grow."""

import random

import pytest
from tests.text.conftest import SENTENCES

from kotha.text.clean import copies as near_copies
from kotha.text.clean.copies import told_apart
from kotha.text.clean.duplicates import ExactDuplicates, NearDuplicates
from kotha.text.parallel.local import LocalPool

pytest.importorskip("rensa", reason="near-duplicates need rensa: pip install 'kotha[clean]'")


def texts_of(seed: int) -> list[str]:
    """Texts of which half are earlier ones with a few words changed; some have no words, some are equal."""
    chooser = random.Random(seed)
    words = " ".join(SENTENCES).split()
    texts: list[str] = []
    for _ in range(400):
        if texts and chooser.random() < 0.5:
            copy = chooser.choice(texts).split()
            for _ in range(chooser.randrange(6)):
                copy[chooser.randrange(len(copy))] = chooser.choice(words)
            texts.append(" ".join(copy))
        else:
            texts.append(" ".join(chooser.choices([*words, "…"], k=chooser.choice([1, 3, 30, 60]))))
    return texts


@pytest.mark.parametrize(("seed", "at_once"), [(0, 256), (1, 7), (2, 1)])
def test_the_answers_are_those_of_the_twin_in_memory(seed, at_once, tmp_path, monkeypatch):
    monkeypatch.setattr(near_copies, "_FIRST_ROOM", 8)  # so that the files grow several times
    monkeypatch.setattr(near_copies, "_AT_ONCE", at_once)
    monkeypatch.setattr("kotha.text.clean.leakage._BATCH_CHARACTERS", 3000)
    texts = texts_of(seed)
    exact, near = ExactDuplicates(), NearDuplicates()
    expected = [exact.is_new(text) and near.find_or_add(text) is None for text in texts]
    found = list(told_apart(texts, "near", LocalPool(1), tmp_path))
    assert found == list(zip(texts, expected, strict=True))
    assert 100 < sum(expected) < 390, "copies were to be found, and not everywhere"
    assert not list(tmp_path.iterdir()), "the files are gone"


def test_files_hold_what_memory_need_not(tmp_path):
    """A thousand texts more are files that grow: the object itself holds nothing else."""
    near = near_copies.NearCopies(tmp_path)
    signatures, has_words = near_copies.Signer()([f"{number} " * 9 for number in range(2000)])
    assert has_words.all()
    assert near.stay(signatures).all()
    sizes = {path.name: path.stat().st_size for path in tmp_path.iterdir()}
    assert sizes == {"signatures": 2048 * 512, "before": 2048 * 256, "first": 65536 * 8}
    assert not near.stay(signatures).any(), "what it has seen is no longer new"
