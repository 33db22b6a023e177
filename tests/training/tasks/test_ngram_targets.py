"""Targets sampled from an n-gram model: the distribution is Kneser-Ney, excluding the position itself."""

from collections import Counter

import numpy as np
import pytest

from kotha.training.tasks.ngram_targets import DISCOUNT, ORDER, NgramSampler

LINE = np.random.default_rng(3).choice(6, 400, p=[0.4, 0.25, 0.15, 0.1, 0.07, 0.03])


def probabilities(line: list[int], before: list[int], left_out: int, vocab_size: int) -> np.ndarray:
    """Kneser-Ney with a single discount, computed with dictionaries, without the n-grams that end at a position."""
    result = np.zeros(vocab_size)
    for order in range(1, ORDER + 1):
        context = tuple(before[len(before) - order + 1 :])
        places = [i for i in range(order - 1, len(line)) if tuple(line[i - order + 1 : i]) == context]
        if order == ORDER:
            counts = Counter(line[i] for i in places if i != left_out)
        else:  # the number of different preceding tokens; without the position, one of them may be missing
            kinds = {(line[i - order], line[i]) for i in places if i >= order and i != left_out}
            counts = Counter(token for _, token in kinds)
        total = sum(counts.values())
        if not total:
            continue
        backed_off = result
        result = np.array([counts[token] / total for token in range(vocab_size)])
        if order > 1:
            kept = np.array([max(counts[token] - DISCOUNT, 0) / total for token in range(vocab_size)])
            result = kept + (1 - kept.sum()) * backed_off
    return result


@pytest.mark.parametrize("position", [7, 60, 61, 222, 399])
def test_samples_have_the_kneser_ney_distribution(position: int) -> None:
    sampler, n_samples = NgramSampler(LINE, 6), 20_000
    sequence = LINE[None, position - ORDER : position + 1].astype(np.int64)
    draws = np.random.default_rng(0).random((1, ORDER, n_samples, ORDER, 2))
    sampled = sampler.sample(sequence, draws)[0, -1]
    wanted = probabilities(LINE.tolist(), LINE[position - ORDER : position].tolist(), position, 6)
    found = np.bincount(sampled, minlength=6) / n_samples
    assert np.abs(found - wanted).max() < 0.02, f"{found} sampled, {wanted} by dictionaries"


def test_a_position_never_samples_itself() -> None:
    line = np.arange(50)  # no n-gram occurs twice, so only unigrams are left
    sampled = NgramSampler(line, 50).sample(line[None], np.random.default_rng(0).random((1, 49, 8, ORDER, 2)))
    assert not (sampled[0] == line[1:, None]).any()


def test_unseen_text_and_short_lines() -> None:
    draws = np.random.default_rng(0).random((1, 3, 2, ORDER, 2))
    assert set(NgramSampler(np.array([1, 2]), 9).sample(np.array([[7, 8, 7, 8]]), draws).ravel()) <= {1, 2}
    assert set(NgramSampler(np.array([4]), 9).sample(np.array([[4, 4, 4, 4]]), draws).ravel()) <= {4}
