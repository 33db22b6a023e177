"""Near copies: the definition, whatever the batches."""

import random

import numpy as np
import pytest
from tests.text.conftest import SENTENCES

from kotha.text.clean import duplicates
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


def stay(signatures, threshold=0.7):
    """The definition: which share no band with one that stays, or are too unlike it."""
    kept, flags = [], []
    for signature in map(np.array, signatures):
        bands = [(signature == other).reshape(32, 4) for other in kept]
        flags.append(not any(same.all(axis=1).any() and same.mean() >= threshold for same in bands))
        if flags[-1]:
            kept.append(signature)
    return flags


def test_the_answers_are_those_of_the_definition_whatever_the_batches(monkeypatch):
    monkeypatch.setattr("kotha.text.clean.leakage._BATCH_CHARACTERS", 3000)
    texts = texts_of(1)
    exact = duplicates.ExactDuplicates()
    new = [text for text in texts if exact.is_new(text)]
    signatures = duplicates.Signer()(new)
    answers = iter(stay([signature.digest() for signature in signatures if signature]))
    expected = [text for text, signature in zip(new, signatures, strict=True) if not signature or next(answers)]
    found = list(duplicates.told_apart(texts, "near", LocalPool(1)))
    assert [text for text, _ in found] == texts
    assert [text for text, is_new in found if is_new] == expected
    assert 100 < len(expected) < len(new) < 400, "copies were to be found, and not everywhere"


def test_a_changed_word_is_a_near_copy_and_half_the_text_is_not():
    words = " ".join(SENTENCES).split()[:200]
    changed = [*words[:100], "অন্য", *words[101:]]  # 5 of 196 shingles change on each side: J = 191 / 201
    half = [*words[:100], *reversed(words[100:])]
    texts = [" ".join(each) for each in (words, changed, half, ["…"], ["!"], words[:2])]
    found = duplicates.told_apart(texts, "near", LocalPool(1))
    assert [is_new for _, is_new in found] == [True, False, True, True, True, True]
